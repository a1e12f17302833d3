// Library calls of the CPU backend against plain loops: matmul of any stride and type, scatter-add,
// copy.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/support/threads.h"
#include "spec_interpreter.h"

using namespace ingot;
using namespace ingot::test;

namespace {

struct Case {
  std::mt19937_64 rng;
  std::unique_ptr<Backend> backend = make_cpu_backend();
  explicit Case(uint64_t seed) : rng(seed) {}
  int pick(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(rng); }

  /// An operand of this shape whose axes are in a random order in memory (rows first, mostly), and
  /// its data.
  OperandSpec operand(DType t, Dims shape, Bytes& data, bool may_broadcast) {
    OperandSpec o{t, shape, Dims::filled(shape.size(), 0), 0};
    std::vector<int> order;
    for (int a = 0; a < shape.size(); ++a) order.push_back(a);
    if (pick(0, 1) && shape.size() >= 2)
      std::swap(order[order.size() - 1], order[order.size() - 2]);
    if (pick(0, 4) == 0) std::shuffle(order.begin(), order.end(), rng);
    int64_t stride = pick(0, 9) == 0 ? 2 : 1;
    for (size_t q = order.size(); q-- > 0;) {
      if (may_broadcast && order[q] < shape.size() - 2 && pick(0, 2) == 0) continue;
      o.stride[order[q]] = stride;
      stride *= shape[order[q]] + (pick(0, 4) == 0 ? 1 : 0);
    }
    o.offset = pick(0, 3);
    data.assign(static_cast<size_t>(stride + 4) * size_of(t), 0);
    for (int64_t i = 0; i < stride + 4; ++i) {
      const int v = t == DType::Bool || t == DType::UInt8 ? pick(0, 1) : pick(-2, 2);
      write_number(data, t, i, {static_cast<double>(v), v});
    }
    return o;
  }

  void launch(const LibrarySpec& s, std::vector<Bytes>& data, RunStatus* status = nullptr) {
    auto exe = backend->prepare(0, s);
    std::vector<void*> p;
    for (Bytes& b : data) p.push_back(b.data());
    void* scratch = backend->allocate(0, exe->scratch_bytes);
    RunArgs args;
    args.status = status;
    backend->launch(0, *exe, p.data(), scratch, args);
    backend->deallocate(0, scratch, exe->scratch_bytes);
  }
};

int64_t at(const OperandSpec& o, const std::vector<int64_t>& i) {
  int64_t p = o.offset;
  for (size_t a = 0; a < i.size(); ++a) p += o.stride[static_cast<int>(a)] * i[a];
  return p;
}

template <class F>
void each(const Dims& shape, F f) {
  std::vector<int64_t> i(static_cast<size_t>(shape.size()), 0);
  for (int64_t n = shape.numel(); n > 0; --n) {
    f(i);
    for (size_t a = i.size(); a-- > 0;) {
      if (++i[a] < shape[static_cast<int>(a)]) break;
      i[a] = 0;
    }
  }
}

void reference_matmul(const LibrarySpec& s, std::vector<Bytes>& d) {
  const OperandSpec &c = s.operands[0], &a = s.operands[1], &b = s.operands[2];
  const size_t r = static_cast<size_t>(c.shape.size());
  const int64_t K = a.shape.back();
  each(c.shape, [&](const std::vector<int64_t>& i) {
    Number sum;
    std::vector<int64_t> ia = i, ib = i;
    for (int64_t k = 0; k < K; ++k) {
      ia[r - 1] = ib[r - 2] = k;
      const Number x = read_number(d[1], a.dtype, at(a, ia)),
                   y = read_number(d[2], b.dtype, at(b, ib));
      sum.f += x.f * y.f;
      sum.i += x.i * y.i;
    }
    if (s.has(Epilogue::Bias)) {
      const Number v = read_number(d[3], s.operands[3].dtype, at(s.operands[3], {i[r - 1]}));
      sum.f += v.f;
      sum.i += v.i;
    }
    if (s.has(Epilogue::Relu)) sum = {std::max(sum.f, 0.0), std::max<int64_t>(sum.i, 0)};
    if (s.accumulate) {
      const Number old = read_number(d[0], c.dtype, at(c, i));
      sum.f += old.f;
      sum.i += old.i;
    }
    write_number(d[0], c.dtype, at(c, i), to_type(sum, c.dtype));
  });
}

}  // namespace

TEST_CASE("matmul of random shapes, strides, types and epilogues") {
  for (int seed = 1; seed <= 400; ++seed) {
    Case c(static_cast<uint64_t>(seed));
    const DType t = c.pick(0, 1) ? DType::Float32 : static_cast<DType>(c.pick(0, 8));
    const bool big = seed % 8 == 0;
    Dims batch;
    for (int n = c.pick(0, 2); n > 0; --n) batch.push_back(c.pick(1, big ? 3 : 5));
    auto size = [&] { return c.pick(0, 5) == 0 ? 1 : c.pick(1, big ? 150 : 40); };
    const int64_t M = size(), N = size(), K = big ? c.pick(1, 600) : size();
    auto shape = [&](int64_t x, int64_t y) {
      Dims d = batch;
      d.push_back(x);
      d.push_back(y);
      return d;
    };
    LibrarySpec s;
    std::vector<Bytes> data(3);
    s.operands = {c.operand(t, shape(M, N), data[0], false),
                  c.operand(t, shape(M, K), data[1], true),
                  c.operand(t, shape(K, N), data[2], true)};
    if (c.pick(0, 2) == 0) {
      s.epilogues.set(Epilogue::Bias);
      data.emplace_back();
      s.operands.push_back(c.operand(t, {N}, data[3], false));
    }
    s.accumulate = c.pick(0, 3) == 0;
    if (c.pick(0, 2) == 0) s.epilogues.set(Epilogue::Relu);
    if (!c.backend->best_offer(s)) continue;
    std::vector<Bytes> want = data;
    reference_matmul(s, want);
    set_num_threads(1 + seed % 3);
    c.launch(s, data);
    double worst = 0;
    for (size_t i = 0; i < data[0].size() / size_of(t); ++i) {
      const Number x = read_number(data[0], t, static_cast<int64_t>(i)),
                   y = read_number(want[0], t, static_cast<int64_t>(i));
      worst = std::max({worst, std::fabs(x.f - y.f) / (1 + std::fabs(y.f)),
                        static_cast<double>(std::llabs(x.i - y.i))});
    }
    if (worst > 0) FAIL("seed " << seed << ": off by " << worst << " in " << to_string(s));
  }
}

TEST_CASE("matmul of few rows by a large weight, lying either way") {
  for (DType t : {DType::Float32, DType::Float64})
    for (bool columns : {false, true})  // B [K, N] by columns: a layer's weight [N, K]
      for (bool bias : {false, true})
        for (int64_t M : {32, 40, 64}) {
          Case c(static_cast<uint64_t>(M));
          const int64_t N = 512, K = 100;
          LibrarySpec s;
          std::vector<Bytes> data(3);
          s.operands = {c.operand(t, {M, N}, data[0], false), c.operand(t, {M, K}, data[1], true),
                        c.operand(t, columns ? Dims{N, K} : Dims{K, N}, data[2], true)};
          for (OperandSpec& o : s.operands) o.stride = row_major(o.shape), o.offset = 0;
          for (size_t k = 0; k < 3; ++k)
            data[k].resize(static_cast<size_t>(s.operands[k].shape.numel()) * size_of(t));
          if (columns) s.operands[2].shape = {K, N}, s.operands[2].stride = {1, K};
          s.epilogues.set(Epilogue::Bias, bias);
          if (bias) {
            data.emplace_back();
            s.operands.push_back(c.operand(t, {N}, data[3], false));
            s.epilogues.set(Epilogue::Relu);
          }
          std::vector<Bytes> want = data;
          reference_matmul(s, want);
          set_num_threads(2);
          c.launch(s, data);
          CAPTURE(to_string(s));
          CHECK(data[0] == want[0]);
        }
}

TEST_CASE("scatter-add adds in order and reports bad indices") {
  for (int seed = 1; seed <= 300; ++seed) {
    Case c(static_cast<uint64_t>(seed));
    static const DType types[] = {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16,
                                  DType::Int64,   DType::Int32,   DType::Int8};
    const DType t = types[c.pick(0, 6)];
    const int rank = c.pick(1, 3), axis = c.pick(0, rank - 1);
    Dims shape, out;
    for (int a = 0; a < rank; ++a) shape.push_back(c.pick(1, seed % 7 == 0 ? 60 : 9));
    out = shape;
    out[axis] = 4;
    LibrarySpec s;
    s.op = Op::ScatterAdd;
    s.attrs = IndexAttrs{axis};
    s.site = 3;
    std::vector<Bytes> data(3);
    s.operands = {c.operand(t, out, data[0], false),
                  c.operand(c.pick(0, 1) ? DType::Int64 : DType::Int32, shape, data[1], false),
                  c.operand(t, shape, data[2], false)};
    if (c.pick(0, 1))  // rows: the index does not vary after the axis
      for (int a = axis + 1; a < rank; ++a) s.operands[1].stride[a] = 0;
    each(shape, [&](const std::vector<int64_t>& i) {
      const int64_t v = read_number(data[1], s.operands[1].dtype, at(s.operands[1], i)).i;
      write_number(data[1], s.operands[1].dtype, at(s.operands[1], i), {0, v < 0 ? v + 4 : v});
    });
    if (seed % 10 == 0) write_number(data[1], s.operands[1].dtype, s.operands[1].offset, {0, 4});
    std::vector<Bytes> want = data;
    each(out, [&](const std::vector<int64_t>& i) {
      write_number(want[0], t, at(s.operands[0], i), {0, 0});
    });
    bool bad = false;
    each(shape, [&](const std::vector<int64_t>& i) {
      int64_t v = read_number(data[1], s.operands[1].dtype, at(s.operands[1], i)).i;
      if (v < 0 || v >= 4) {
        bad = true;
        return;
      }
      std::vector<int64_t> o = i;
      o[static_cast<size_t>(axis)] = v;
      Number x = read_number(want[0], t, at(s.operands[0], o)),
             y = read_number(data[2], t, at(s.operands[2], i));
      write_number(want[0], t, at(s.operands[0], o), to_type({x.f + y.f, x.i + y.i}, t));
    });
    set_num_threads(1 + seed % 3);
    RunStatus status;
    c.launch(s, data, &status);
    CHECK((status.code == RunStatus::IndexError) == bad);
    if (bad) CHECK((status.site == 3 && status.extent == 4));
    if (data[0] != want[0]) {
      for (size_t i = 0; i < data[0].size() / size_of(t); ++i) {
        const Number x = read_number(data[0], t, static_cast<int64_t>(i)),
                     y = read_number(want[0], t, static_cast<int64_t>(i));
        if (x.f != y.f || x.i != y.i)
          FAIL("seed " << seed << " element " << i << ": " << x.f << "/" << x.i << " for " << y.f
                       << "/" << y.i << " in " << to_string(s));
      }
    }
  }
}

TEST_CASE("copy between layouts") {
  for (int seed = 1; seed <= 100; ++seed) {
    Case c(static_cast<uint64_t>(seed));
    Dims shape;
    for (int a = c.pick(0, 4); a > 0; --a) shape.push_back(c.pick(1, 20));
    const DType t = static_cast<DType>(c.pick(0, 9));
    LibrarySpec s;
    s.op = Op::ToDevice;
    std::vector<Bytes> data(2);
    s.operands = {c.operand(t, shape, data[0], false),
                  c.operand(t, shape, data[1], shape.size() > 2)};
    std::vector<Bytes> want = data;
    each(shape, [&](const std::vector<int64_t>& i) {
      write_number(want[0], t, at(s.operands[0], i), read_number(data[1], t, at(s.operands[1], i)));
    });
    c.launch(s, data);
    CHECK(data[0] == want[0]);
  }
}

TEST_CASE("freed memory comes back, aligned") {
  auto b = make_cpu_backend();
  for (size_t n : {size_t{1}, size_t{100}, size_t{70000}, size_t{5} << 20}) {
    void* p = b->allocate(0, n);
    CHECK(reinterpret_cast<uintptr_t>(p) % 64 == 0);
    std::memset(p, 1, n);
    b->deallocate(0, p, n);
    void* q = b->allocate(0, n);
    CHECK(p == q);
    b->deallocate(0, q, n);
  }
}
