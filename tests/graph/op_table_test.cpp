// The op table and the attributes of ops: what follows from the rows of graph/ops.def and from the
// fields that each attribute struct lists.
#include <doctest/doctest.h>

#include <ingot/ingot.h>

#include <limits>
#include <set>
#include <string>

#include "codegen/flops.h"
#include "graph/handle.h"
#include "graph/node.h"

using namespace ingot;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<uint64_t> words(const Attributes& a) {
  std::vector<uint64_t> w;
  a.append_words(w);
  return w;
}

void check_different(const Attributes& a, const Attributes& b) {
  CAPTURE(a.text());
  CAPTURE(b.text());
  CHECK(a == a);
  CHECK(b == b);
  CHECK_FALSE(a == b);
  CHECK(a.hash() != b.hash());
  CHECK(words(a) != words(b));
}

// The error of recording an op, or "".
template <class F>
std::string error_of(F record_it) {
  try {
    record_it();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

const SourceLoc here = SourceLoc::current();

}  // namespace

TEST_CASE("every op has a unique name, and the class that its row gives") {
  std::set<std::string> names;
  for (int i = 0; i < static_cast<int>(Op::Count_); ++i) {
    const OpInfo& o = info(static_cast<Op>(i));
    CAPTURE(o.name);
    CHECK(names.insert(o.name).second);
    CHECK(o.results >= 1);
    CHECK(o.in_table == (elementwise_row(static_cast<Op>(i)) >= 0));
    if (o.in_table) CHECK(o.kind == OpClass::Elementwise);
    if (o.kind == OpClass::Source) CHECK(o.arity == 0);
  }
  CHECK(elementwise_row(Op::Neg) == 0);
  CHECK(std::string(info(Op::Lstm).name) == "lstm");
  CHECK(info(Op::Lstm).results == 3);
  CHECK(info(Op::Lstm).arity == 4);
}

TEST_CASE("what may fail, what has a gradient and what takes long follow from the rows") {
  std::set<std::string> may_fail;
  for (int i = 0; i < static_cast<int>(Op::Count_); ++i)
    if (info(static_cast<Op>(i)).may_fail) may_fail.insert(info(static_cast<Op>(i)).name);
  CHECK(may_fail == std::set<std::string>{"gather", "scatter_add", "scatter", "linalg"});
  CHECK(info(Op::Matmul).differentiable);
  CHECK(info(Op::Attention).differentiable);
  CHECK_FALSE(info(Op::ArgMax).differentiable);
  CHECK_FALSE(info(Op::Uniform).differentiable);
  CHECK(info(Op::Exp).smooth);
  CHECK(info(Op::Sigmoid).smooth);
  CHECK_FALSE(info(Op::Floor).smooth);
  CHECK_FALSE(info(Op::Relu).smooth);
  CHECK_FALSE(info(Op::Pow).smooth);
}

TEST_CASE("attributes are equal when all their fields are, bit by bit") {
  check_different(NoAttrs{}, ReduceAttrs{1});
  check_different(ReduceAttrs{1}, ReduceAttrs{2});
  CHECK_FALSE(Attributes(CatAttrs{1}) ==
              Attributes(ReduceAttrs{1}));  // another struct, though the same words
  check_different(ConstAttrs{0.0}, ConstAttrs{-0.0});
  check_different(IndexAttrs{1, Check::Gather}, IndexAttrs{1, Check::Take});
  check_different(ScatterAttrs{1, ScatterMode::Max}, ScatterAttrs{1, ScatterMode::Min});
  check_different(SliceAttrs{{0, 1}, {1, 1}}, SliceAttrs{{0, 1}, {1, 2}});
  check_different(PermuteAttrs{{0, 1}}, PermuteAttrs{{0, 1, 2}});
  check_different(WindowAttrs{{1, 2}, {3}}, WindowAttrs{{1}, {2, 3}});  // sizes count
  check_different(ConvAttrs{{1}, {1}, {0}, {0}, 1}, ConvAttrs{{1}, {1}, {0}, {0}, 2});
  check_different(LinalgAttrs{.transposed = true}, LinalgAttrs{.upper = true});
  CHECK(Attributes(ConstAttrs{kNaN}) == Attributes(ConstAttrs{kNaN}));
  CHECK(Attributes(PadAttrs{{1}, kNaN}) == Attributes(PadAttrs{{1}, kNaN}));
  CHECK(Attributes(SliceAttrs{{0}, {1}}).hash() == Attributes(SliceAttrs{{0}, {1}}).hash());
}

TEST_CASE("the value of an argument is not part of what is computed") {
  CHECK(Attributes(ArgAttrs{1.0, nullptr}) == Attributes(ArgAttrs{2.0, nullptr}));
  CHECK(words(ArgAttrs{1.0, nullptr}).empty());
}

TEST_CASE("copies are independent of where they came from") {
  Attributes a = SliceAttrs{{1}, {2}}, b = a, c;
  CHECK(c.empty());
  c = b;
  a = ReduceAttrs{3};
  b = Attributes();
  CHECK(c.as<SliceAttrs>().step == Dims{2});
  CHECK(a.as<ReduceAttrs>().axes == 3);
  CHECK(b.empty());
  c = static_cast<const Attributes&>(c);
  CHECK(c.as<SliceAttrs>().start == Dims{1});
  CHECK(c.is<SliceAttrs>());
  CHECK_THROWS_AS(c.as<PadAttrs>(), std::bad_variant_access);
}

TEST_CASE("attributes print their fields by name") {
  CHECK(Attributes().text() == "");
  CHECK(Attributes(ReduceAttrs{5}).text() == "axes=[0, 2]");
  CHECK(Attributes(ScatterAttrs{1, ScatterMode::Max, Check::Scatter}).text() ==
        "axis=1 mode=max check=scatter");
  CHECK(Attributes(AttentionAttrs{AttentionMask::Causal, 0.5}).text() ==
        "mask=causal scale=0.500000");
  CHECK(Attributes(SliceAttrs{{1}, {-2}}).text() == "start=[1] step=[-2]");
}

TEST_CASE("an op recorded with another op's attributes, or other operands, is an internal error") {
  Tensor x = ones({2, 3});
  NodeRef n = node_of(x, "test", here);
  CHECK(error_of([&] {
          record(Op::Sum, {n}, {CatAttrs{0}}, here);
        }).find("[sum] was given the attributes of another op") == 0);
  CHECK(error_of([&] {
          record(Op::Permute, {n}, {}, here);
        }).find("[permute] was given the attributes of another op") == 0);
  CHECK(error_of([&] {
          record(Op::Matmul, {n}, {}, here);
        }).find("[matmul] takes 2 operands, not 1") == 0);
  CHECK(error_of([&] {
          record(Op::Result, {n}, {ResultAttrs{1}}, here);
        }).find("[result] has no such result") == 0);
}

TEST_CASE("operations are counted by the formulas of the rows") {
  auto operand = [](const Dims& s) { return OperandSpec{float32, s, row_major(s), 0}; };
  LibrarySpec l;
  l.operands = {operand({2, 3}), operand({2, 5}), operand({5, 3})};
  CHECK(flops_of(l) == 2.0 * 2 * 3 * 5);
  l.op = Op::Sort;
  l.attrs = SortAttrs{};
  CHECK(flops_of(l) == 0);
  l = LibrarySpec();
  l.op = Op::Attention;
  l.attrs = AttentionAttrs{};
  for (int k = 0; k < 4; ++k) l.operands.push_back(operand({1, 2, 8, 16}));
  const double all = flops_of(l);
  CHECK(all == 4.0 * 2 * 8 * 16 * 8);
  l.attrs = AttentionAttrs{AttentionMask::Causal};
  CHECK(flops_of(l) == all / 2);
  for (Op op : {Op::Conv, Op::ConvGradInput, Op::ConvGradWeight}) {
    const OperandSpec x = operand({2, 4, 9}), w = operand({6, 4, 3}), y = operand({2, 6, 7});
    l = LibrarySpec();
    l.op = op;
    l.operands = op == Op::Conv            ? std::vector{y, x, w}
                 : op == Op::ConvGradInput ? std::vector{x, y, w}
                                           : std::vector{w, x, y};
    CHECK(flops_of(l) == 2.0 * (2 * 6 * 7) * (4 * 3));
  }
}
