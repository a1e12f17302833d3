// The oracle itself, against numbers from elsewhere: IEEE tables, the Philox paper's test vectors,
// hand calculation.
#include <doctest/doctest.h>

#include <cmath>

#include <ingot/ingot.h>

#include "codegen/philox.h"
#include "graph/cell.h"
#include "support/oracle.h"

using namespace ingot;
using namespace ingot::oracle;

static std::vector<double> floats(const Tensor& t) { return Oracle()(t.cell()->current()).f; }
static std::vector<int64_t> ints(const Tensor& t) { return Oracle()(t.cell()->current()).i; }

TEST_CASE("rounding to 16 bits") {
  CHECK(round_to(float16, 0.1) == 0.0999755859375);
  CHECK(round_to(float16, 2049) == 2048);  // ties to even
  CHECK(round_to(float16, 2051) == 2052);
  CHECK(round_to(float16, 65519) == 65504);
  CHECK(round_to(float16, 65520) == INFINITY);
  CHECK(round_to(float16, 0x1p-24) == 0x1p-24);
  CHECK(round_to(float16, 0x1p-25) == 0);
  CHECK(round_to(bfloat16, 0.1) == 0.10009765625);
  CHECK(round_to(bfloat16, 257) == 256);
  CHECK(round_to(bfloat16, 259) == 260);
  CHECK(round_to(bfloat16, -3.4e38) == -INFINITY);
  CHECK(round_to(float32, 0.1) == 0.1f);
  CHECK(std::isnan(round_to(float16, NAN)));
}

TEST_CASE("integers wrap") {
  CHECK(wrap_to(int8, 200) == -56);
  CHECK(wrap_to(uint8, -1) == 255);
  CHECK(wrap_to(bool_, 7) == 1);
  CHECK(int_element(Op::FloorDiv, int64, -7, 2) == -4);
  CHECK(int_element(Op::Remainder, int64, -7, 2) == 1);
  CHECK(int_element(Op::Fmod, int64, -7, 2) == -1);
  CHECK(int_element(Op::Pow, int64, 3, 4) == 81);
  CHECK(int_element(Op::Shl, int8, 1, 8) == 0);
  CHECK(float_element(Op::Remainder, -7.5, 2) == 0.5);
  CHECK(float_element(Op::FloorDiv, -7.5, 2) == -4);
}

TEST_CASE("Philox 4x32-10 gives the published numbers") {
  PhiloxBlock b = philox(0, 0);
  CHECK(b.v[0] == 0x6627e8d5u);
  CHECK(b.v[1] == 0xe169c58du);
  CHECK(b.v[2] == 0xbc57ac4cu);
  CHECK(b.v[3] == 0x9b00dbd8u);
}

TEST_CASE("sums, views and products by hand") {
  Tensor x = tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}});
  CHECK(floats(x.sum(0)) == std::vector<double>{5, 7, 9});
  CHECK(floats(x.t().reshape({6})) == std::vector<double>{1, 4, 2, 5, 3, 6});
  CHECK(floats(x[{Slice{{}, {}, -1}, Slice{0, 3, 2}}].flatten()) ==
        std::vector<double>{4, 6, 1, 3});
  CHECK(floats(matmul(x, x.t()).flatten()) == std::vector<double>{14, 32, 32, 77});
  CHECK(floats(pad(x, {1, 0}, 9.0).flatten()) == std::vector<double>{9, 1, 2, 3, 9, 4, 5, 6});
  CHECK(ints(argmax(x, 1)) == std::vector<int64_t>{2, 2});
  CHECK(ints(argmax(tensor({1.0, NAN, 3.0, NAN}))) == std::vector<int64_t>{1});
  CHECK(std::isnan(floats(amax(tensor({1.0, NAN, 3.0})))[0]));
  CHECK(floats(gather(x, 1, tensor({{2, 0}, {1, 1}})).flatten()) ==
        std::vector<double>{3, 1, 5, 5});
  CHECK(floats(scatter_add_zeros({3}, 0, tensor({2, 0, 2}), tensor({1.0, 2.0, 4.0}))) ==
        std::vector<double>{2, 0, 5});
  CHECK_THROWS(floats(gather(x, 1, tensor({{3}, {0}}))));
}
