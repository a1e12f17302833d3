// The front end's own rules: promotion, shapes, indexing, host data in and out, random numbers,
// printing.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <cmath>
#include <set>
#include <sstream>

#include "codegen/philox.h"
#include "graph/cell.h"
#include "graph/node.h"
#include "support/oracle.h"

using namespace ingot;

namespace {

// The recorded graph's value, without the executor.
std::vector<double> values(const Tensor& x) {
  oracle::Oracle oracle;
  const oracle::Value& v = oracle(x.cell()->current());
  std::vector<double> out;
  for (int64_t k = 0; k < v.numel(); ++k) out.push_back(v.at(k));
  return out;
}

constexpr char kLetters[] = "DFHBlisbuo";
char letter(DType t) { return kLetters[static_cast<int>(t)]; }

}  // namespace

TEST_CASE("promotion is PyTorch's") {
  // Rows and columns in the order of DType; from torch.result_type.
  const char* same_rank[] = {"DDDDDDDDDD", "DFFFFFFFFF", "DFHFHHHHHH", "DFFBBBBBBB", "DFHBllllll",
                             "DFHBliiiii", "DFHBlissss", "DFHBlisbsb", "DFHBlissuu", "DFHBlisbuo"};
  const char* with_0d[] = {"DDDDDDDDDD", "FFFFFFFFFF", "HHHHHHHHHH", "BBBBBBBBBB", "DFHBllllll",
                           "DFHBiiiiii", "DFHBssssss", "DFHBbbbbbb", "DFHBuuuuuu", "DFHBlisbuo"};
  const char* with_bool = "DFHBlisbuo";
  const char* with_int = "DFHBlisbul";
  const char* with_float = "DFHBFFFFFF";
  for (int i = 0; i < kDTypeCount; ++i) {
    DType a = static_cast<DType>(i);
    Tensor x = ones({2}, a), x0 = ones({}, a);
    for (int j = 0; j < kDTypeCount; ++j) {
      DType b = static_cast<DType>(j);
      Tensor y = ones({2}, b), y0 = ones({}, b);
      CAPTURE(name_of(a));
      CAPTURE(name_of(b));
      CHECK(letter(result_type(x, y)) == same_rank[i][j]);
      CHECK(letter(result_type(x0, y0)) == same_rank[i][j]);
      CHECK(letter(result_type(x, y0)) == with_0d[i][j]);
      CHECK(letter(result_type(y0, x)) == with_0d[i][j]);
      CHECK(letter((x + y).dtype()) == same_rank[i][j]);
      CHECK(letter((x * y0).dtype()) == with_0d[i][j]);
      CHECK((x < y).dtype() == bool_);
    }
    CHECK(letter(result_type(x, true)) == with_bool[i]);
    CHECK(letter(result_type(x, 1)) == with_int[i]);
    CHECK(letter(result_type(x0, 1.5)) == with_float[i]);
    CHECK(letter((x + 1).dtype()) == with_int[i]);
    CHECK(letter((1.5f * x).dtype()) == with_float[i]);
    CHECK((x / x).dtype() == (is_float(a) ? a : float32));
    CHECK(exp(x).dtype() == (is_float(a) ? a : float32));
    CHECK(sum(x).dtype() == (is_float(a) ? a : int64));
  }
}

TEST_CASE("numbers keep their kind") {
  CHECK(tensor({1, 2}).dtype() == int64);
  CHECK(tensor({1.5}).dtype() == float32);
  CHECK(tensor({true}).dtype() == bool_);
  CHECK(tensor({1, 2.5}).dtype() == float32);
  CHECK(tensor(std::vector<int>{1}).dtype() == int32);
  CHECK(tensor(std::vector<double>{1}).dtype() == float64);
  CHECK(tensor({{{{1, 2}}}}).shape() == Dims{1, 1, 1, 2});
  CHECK(tensor(7).shape() == Dims{});
  CHECK(values(tensor({1, 2, 300}, uint8)) == std::vector<double>{1, 2, 44});
  CHECK(values(full({2}, 3.9, int64)) == std::vector<double>{3, 3});
  CHECK(values(ones({2}, int64) + 1e30 * 0) == std::vector<double>{1, 1});
  CHECK((ones({3}, float16) * 2).dtype() == float16);
}

TEST_CASE("shapes: 0-d, empty, ten dims") {
  CHECK((zeros({}) + zeros({})).shape() == Dims{});
  CHECK((zeros({0, 3}) + zeros({1, 3})).shape() == Dims{0, 3});
  CHECK((zeros({2, 1, 3}) + zeros({4, 1})).shape() == Dims{2, 4, 3});
  Tensor deep = zeros({1, 2, 1, 2, 1, 2, 1, 2, 1, 2});
  CHECK((deep + zeros({2})).shape() == deep.shape());
  CHECK(deep.squeeze().shape() == Dims{2, 2, 2, 2, 2});
  CHECK(sum(zeros({0})).shape() == Dims{});
  CHECK(zeros({0, 3}).reshape({3, -1}).shape() == Dims{3, 0});
  CHECK(zeros({2, 3, 4}).flatten(1, 2).shape() == Dims{2, 12});
  CHECK(zeros({2, 3, 4}).mean({0, 2}).shape() == Dims{3});
  CHECK(zeros({2, 3, 4}).mean({0, 2}, true).shape() == Dims{1, 3, 1});
  CHECK(split(zeros({7, 2}), 3).size() == 3);
  CHECK(chunk(zeros({7, 2}), 4).size() == 4);
  CHECK(cat({zeros({2, 3}), zeros({0}), zeros({4, 3})}).shape() == Dims{6, 3});
}

TEST_CASE("a copy shares the cell, a handle can be rebound") {
  Tensor a = zeros({2}), b = a;
  a += 1;
  CHECK(values(b) == std::vector<double>{1, 1});
  a = zeros({3});
  CHECK(b.shape() == Dims{2});
  Tensor none;
  CHECK(!none.defined());
  none = a;
  CHECK(none.defined());
  a.set_name("weights");
  CHECK(none.name() == "weights");
}

TEST_CASE("slices are Python's") {
  std::vector<std::optional<int64_t>> bounds{std::nullopt, -9, -5, -3, -1, 0, 1, 2, 4, 5, 9};
  Tensor x = arange(5);
  for (auto start : bounds)
    for (auto stop : bounds)
      for (std::optional<int64_t> step :
           {std::optional<int64_t>{}, {1}, {2}, {3}, {7}, {-1}, {-2}, {-7}}) {
        // slice.indices() of CPython, by stepping.
        int64_t n = 5, s = step.value_or(1), lo = s > 0 ? 0 : -1, hi = s > 0 ? n : n - 1;
        auto clip = [&](int64_t v) { return std::min(std::max(v < 0 ? v + n : v, lo), hi); };
        int64_t from = start   ? clip(*start)
                       : s > 0 ? lo
                               : hi,
                to = stop    ? clip(*stop)
                     : s > 0 ? hi
                             : lo;
        std::vector<double> want;
        for (int64_t i = from; s > 0 ? i < to : i > to; i += s)
          want.push_back(static_cast<double>(i));
        CAPTURE(start.value_or(99));
        CAPTURE(stop.value_or(99));
        CAPTURE(s);
        CHECK(values(x[Slice{start, stop, step}]) == want);
      }
}

TEST_CASE("indices of every kind") {
  Tensor x = arange(24).reshape({2, 3, 4});
  CHECK(x[1].shape() == Dims{3, 4});
  CHECK(x[{1, -1}].shape() == Dims{4});
  CHECK(values(x[{1, 2, 3}]) == std::vector<double>{23});
  CHECK(x[{Ellipsis}].shape() == x.shape());
  CHECK(x[Ellipsis].shape() == x.shape());
  CHECK(x[{Ellipsis, 0}].shape() == Dims{2, 3});
  CHECK(x[{0, Ellipsis, NewAxis}].shape() == Dims{3, 4, 1});
  CHECK(x[NewAxis].shape() == Dims{1, 2, 3, 4});
  CHECK(x[{Slice{}, NewAxis, Slice{1, 3}, Slice{{}, {}, -2}}].shape() == Dims{2, 1, 2, 2});
  CHECK(values(x[{0, 0, Slice{{}, {}, -2}}]) == std::vector<double>{3, 1});
  CHECK(x[{1, Ellipsis, 2, 3}].shape() == Dims{});
  size_t at = 1;
  std::vector<IndexItem> list{at, Slice{0, 2}};
  CHECK(x[list].shape() == Dims{2, 4});
}

TEST_CASE("host data in and out") {
  std::vector<float> data{1, 2, 3, 4, 5, 6};
  Tensor x = from_data(data.data(), {2, 3});
  data[0] = 99;
  CHECK(x.to_vector<float>() == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(x.t().to_vector<int>() == std::vector<int>{1, 4, 2, 5, 3, 6});
  CHECK((x > 3).to_vector<bool>() == std::vector<bool>{false, false, false, true, true, true});
  CHECK(x[{1, 2}].item() == 6);
  CHECK(x[{1, 2}].item<int>() == 6);
  CHECK(scalar(2.5).item<float>() == 2.5f);
  int64_t out[6];
  x.to(int64).copy_to(out);
  CHECK(out[5] == 6);
  x.copy_to(out, int64);
  CHECK(out[4] == 5);
  CHECK(zeros({0, 2}).to_vector<float>().empty());

  int released = 0;
  auto on_release = [](void* p) { ++*static_cast<int*>(p); };
  {
    Tensor w = wrap(data.data(), {6}, {}, on_release, &released);
    CHECK((w + 1).to_vector<float>()[0] == 100);
    CHECK(released == 0);
  }
  CHECK(released == 1);
}

TEST_CASE("random numbers: bits, stretches, seeds") {
  Generator g(42);
  Tensor u = rand({3, 3}, {}, g);
  CHECK(g.offset() == 3);
  Tensor d = rand({2}, float64, g);
  CHECK(g.offset() == 4);
  std::vector<double> got = values(u);
  for (uint64_t k = 0; k < 9; ++k)
    CHECK(got[k] == static_cast<double>(philox(k / 4, 42).v[k % 4] >> 8) * 0x1p-24);
  CHECK(values(d)[1] == static_cast<double>(philox(3, 42).v[1]) * 0x1p-32);
  Generator again(42), shared = again;
  CHECK(values(rand({3, 3}, {}, shared)) == got);
  CHECK(again.offset() == 3);
  again.manual_seed(42);
  CHECK(values(rand({3, 3}, {}, again)) == got);
  again.set_offset(0);
  CHECK(values(rand({9}, {}, again)) == got);

  manual_seed(7);
  std::vector<double> a = values(randn({1000}));
  manual_seed(7);
  CHECK(values(randn({1000})) == a);
  double mean = 0, square = 0;
  for (double v : a) {
    mean += v / 1000;
    square += v * v / 1000;
  }
  CHECK(std::abs(mean) < 0.1);
  CHECK(std::abs(square - 1) < 0.15);
  std::vector<double> dice = values(randint(1, 7, {600}));
  CHECK(std::set<double>(dice.begin(), dice.end()) == std::set<double>{1, 2, 3, 4, 5, 6});
  double ones_seen = 0;
  for (double v : values(bernoulli({1000}, 0.25))) ones_seen += v;
  CHECK(std::abs(ones_seen - 250) < 50);
  for (double v : values(rand({1000}, bfloat16))) CHECK(v < 1);
  std::vector<double> kept = values(dropout(ones({1000}), 0.2));
  CHECK(std::set<double>(kept.begin(), kept.end()) == std::set<double>{0, 1.25});
}

TEST_CASE("printing") {
  auto print = [](const Tensor& x) {
    std::ostringstream s;
    s << x;
    return s.str();
  };
  CHECK(print(tensor({{1, 2}, {3, 40}})) == "[[ 1,  2],\n [ 3, 40]]\nint64[2, 2] on cpu");
  CHECK(print(tensor({{1.0, 2.5}, {-3.0, std::nan("")}})) ==
        "[[ 1.0000,  2.5000],\n [-3.0000,     nan]]\nfloat32[2, 2] on cpu");
  CHECK(print(tensor({1.0, 2.0})) == "[1., 2.]\nfloat32[2] on cpu");
  CHECK(print(tensor({1e-5, 1.0})) == "[1.0000e-05, 1.0000e+00]\nfloat32[2] on cpu");
  CHECK(print(tensor({true, false})) == "[ true, false]\nbool[2] on cpu");
  CHECK(print(tensor(3.14159)) == "3.1416\nfloat32[] on cpu");
  CHECK(print(zeros({0, 3})) == "[]\nfloat32[0, 3] on cpu");
  CHECK(print(zeros({2})) == "[0., 0.]\nfloat32[2] on cpu");
  CHECK(print(arange(8).reshape({2, 2, 2})) ==
        "[[[0, 1],\n  [2, 3]],\n\n [[4, 5],\n  [6, 7]]]\nint64[2, 2, 2] on cpu");
  CHECK(print(arange(2000).reshape({20, 100})) ==
        "[[   0,    1,    2, ...,   97,   98,   99],\n"
        " [ 100,  101,  102, ...,  197,  198,  199],\n"
        " [ 200,  201,  202, ...,  297,  298,  299],\n"
        " ...,\n"
        " [1700, 1701, 1702, ..., 1797, 1798, 1799],\n"
        " [1800, 1801, 1802, ..., 1897, 1898, 1899],\n"
        " [1900, 1901, 1902, ..., 1997, 1998, 1999]]\n"
        "int64[20, 100] on cpu");
  CHECK(print(arange(30) * 1.5).find("10.5000,\n 12.0000") != std::string::npos);
  CHECK(Tensor().to_string() == "undefined tensor");
  Tensor named = zeros({1});
  CHECK(print(named.set_name("bias")) == "[0.]\nfloat32[1] on cpu (bias)");
}

TEST_CASE("powers become products at the line") {
  Tensor x = ones({2});
  CHECK(pow(x, 2).cell()->current()->op == Op::Mul);
  CHECK(pow(x, 0.5).cell()->current()->op == Op::Sqrt);
  CHECK(pow(x, -1).cell()->current()->op == Op::Reciprocal);
  CHECK(pow(x, 1.5).cell()->current()->op == Op::Pow);
}

TEST_CASE("movement that changes nothing records nothing") {
  Tensor x = ones({2, 3});
  CHECK(x.reshape({2, -1}).cell() == x.cell());
  CHECK(x.permute({0, 1}).cell() == x.cell());
  CHECK(x.expand({2, 3}).cell() == x.cell());
  CHECK(x.to(float32).cell() == x.cell());
  CHECK(x[Ellipsis].cell() == x.cell());
  CHECK(x.contiguous().cell() == x.cell());
  CHECK(x.clone().cell() != x.cell());
}
