// Every function against what PyTorch gives (golden*.inc, written by golden.py and golden_ops.py):
// type, shape and values.
#include "support/golden.h"

using namespace ingot;
using ingot::golden::INF;
using ingot::golden::V;

TEST_CASE("PyTorch's values") {
  auto [x, y, p, r, c, w, k, j, m, lab, idx, h, z, e, s, q, a, g] = golden::Inputs();
#include "golden.inc"
}
TEST_CASE("PyTorch's values: elementwise functions and activations") {
  auto [x, y, p, r, c, w, k, j, m, lab, idx, h, z, e, s, q, a, g] = golden::Inputs();
#include "golden_elementwise.inc"
}
TEST_CASE("PyTorch's values: NaN, infinities and zeros") {
  auto [x, y, p, r, c, w, k, j, m, lab, idx, h, z, e, s, q, a, g] = golden::Inputs();
#include "golden_special.inc"
}
TEST_CASE("PyTorch's values: movement and creation") {
  auto [x, y, p, r, c, w, k, j, m, lab, idx, h, z, e, s, q, a, g] = golden::Inputs();
#include "golden_arrange.inc"
}
TEST_CASE("PyTorch's values: losses and distances") {
  auto [x, y, p, r, c, w, k, j, m, lab, idx, h, z, e, s, q, a, g] = golden::Inputs();
#include "golden_loss.inc"
}
TEST_CASE("PyTorch's values: linear algebra") {
  auto [x, y, p, r, c, w, k, j, m, lab, idx, h, z, e, s, q, a, g] = golden::Inputs();
#include "golden_linalg.inc"
}
