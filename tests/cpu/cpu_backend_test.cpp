// Generated kernels on the CPU backend: thousands of random ones, and the shapes that matter by
// hand.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/jit/row_code.h"
#include "backend/cpu/kernel/pieces.h"
#include "backend/cpu/kernel/tile_types.h"
#include "backend/cpu/support/threads.h"
#include "random_spec.h"

using namespace ingot;
using namespace ingot::test;

namespace {

struct Runner {
  std::unique_ptr<Backend> backend = make_cpu_backend();

  void run(std::span<const KernelSpec> parts, std::vector<Bytes>& data, const RunArgs& args) {
    auto exe = backend->compile(0, parts);
    std::vector<void*> ptrs;
    for (Bytes& b : data) ptrs.push_back(b.data());
    void* scratch = backend->allocate(0, exe->scratch_bytes);
    backend->launch(0, *exe, ptrs.data(), scratch, args);
    backend->synchronize(0);
    backend->deallocate(0, scratch, exe->scratch_bytes);
  }
};

/// Empty when equal; else which element of which buffer differs.
std::string difference(const KernelSpec& k, const std::vector<Bytes>& got,
                       const std::vector<Bytes>& want, size_t first = 0) {
  for (size_t b = 0; b < k.buffers.size(); ++b) {
    if (got[first + b] == want[b]) continue;
    for (int64_t i = 0; i < k.buffers[b].numel; ++i) {
      const Number x = read_number(got[first + b], k.buffers[b].dtype, i),
                   y = read_number(want[b], k.buffers[b].dtype, i);
      const bool same =
          is_float(k.buffers[b].dtype) ? x.f == y.f || (x.f != x.f && y.f != y.f) : x.i == y.i;
      if (!same)
        return "buffer " + std::to_string(b) + " element " + std::to_string(i) + ": " +
               std::to_string(x.f) + "/" + std::to_string(x.i) + ", should be " +
               std::to_string(y.f) + "/" + std::to_string(y.i);
    }
  }
  return {};
}

// The interpreter's one thread says nothing about threads, and the thread sanitizer makes it twenty
// times slower.
#if defined(__SANITIZE_THREAD__)
constexpr int kShare = 5;
#else
constexpr int kShare = 1;
#endif
const double kArgs[] = {2, 3};
const uint64_t kSeeds[] = {0x123456789abcdefull}, kOffsets[] = {40};

}  // namespace

static void compare_random_kernels(bool floats) {
  Runner r;
  const char* env = std::getenv("INGOT_RANDOM_SPECS");
  const int count = env ? std::atoi(env) : 3000 / kShare;
  const char* first = std::getenv("INGOT_RANDOM_SEED");
  for (int seed = first ? std::atoi(first) : 1, end = seed + count; seed < end; ++seed) {
    SpecMaker maker(static_cast<uint64_t>(seed), floats);
    std::vector<Bytes> data, want;
    const KernelSpec k = maker.make(data);
    REQUIRE_NOTHROW(verify(k));
    want = data;
    RunStatus s1, s2;
    if (maker.chance(5)) s1.code = s2.code = RunStatus::NonFinite;
    std::vector<Bytes*> refs;
    for (Bytes& b : want) refs.push_back(&b);
    interpret(k, refs, {kArgs, kSeeds, kOffsets, &s1});
    if (seed % 16 == 0) set_num_threads(1 + seed / 16 % 3);
    r.run({&k, 1}, data, {kArgs, kSeeds, kOffsets, &s2});
    CHECK(s1.code == s2.code);
    if (s1.code == RunStatus::IndexError) {
      CHECK(s2.site == 7);
      bool predicated = false;  // whether it is stored depends on when the error is met
      for (const Store& s : k.stores) predicated |= s.predicated;
      if (predicated) continue;
    }
    const std::string diff = difference(k, data, want);
    if (!diff.empty()) FAIL("seed " << seed << ": " << diff << "\n" << to_string(k));
  }
}

TEST_CASE("random kernels equal the interpreter") { compare_random_kernels(false); }

TEST_CASE("random kernels of float32 equal the interpreter, as machine code and over tiles") {
  cpu::set_machine_code(true, 0);
  const int64_t before = cpu::machine_code_made();
  compare_random_kernels(true);
  if (cpu::use_machine_code()) CHECK(cpu::machine_code_made() - before > 500 / kShare);
  cpu::set_machine_code(false, 0);
  compare_random_kernels(true);
  cpu::set_machine_code(true, 1024);
}

TEST_CASE("kernels cut where their bounds change compute the same") {
  Runner r;
  int cut = 0, decided = 0;
  for (uint64_t seed = 1; seed <= 6000 / kShare; ++seed) {
    SpecMaker maker(seed, seed % 2 == 0);
    std::vector<Bytes> data, want;
    const KernelSpec k = maker.make(data);
    const std::vector<KernelSpec> pieces = cpu::pieces_of(k, 0, 1);
    if (pieces.size() == 1) continue;
    ++cut;
    want = data;
    std::vector<Bytes*> refs;
    for (Bytes& b : want) refs.push_back(&b);
    RunStatus s1, s2;
    interpret(k, refs, {kArgs, kSeeds, kOffsets, &s1});
    size_t bounds = 0, left = 0;
    for (const Instr& i : k.instrs) bounds += pieces.size() * i.bounds.size();
    for (const KernelSpec& piece : pieces) {
      for (const Instr& i : piece.instrs) left += i.bounds.size();
      r.run({&piece, 1}, data, {kArgs, kSeeds, kOffsets, &s2});
    }
    CHECK(left < bounds);
    decided += left == 0;
    CHECK(s1.code == s2.code);
    if (s1.code != 0) continue;
    const std::string diff = difference(k, data, want);
    if (!diff.empty()) FAIL("seed " << seed << ": " << diff << "\n" << to_string(k));
  }
  CHECK(cut > 200 / kShare);
  CHECK(decided > 150 / kShare);
}

TEST_CASE("joined and padded tensors of some size are cut, and equal the interpreter") {
  // out[i, j, k] = a where j < 4, b where 4 <= j < 10, elsewhere 7; and c, padded by one in i.
  KernelSpec k;
  k.extent = {20, 12, 96};
  k.n_outer = 3;
  k.buffers = {{DType::Float32, 20 * 4 * 96},
               {DType::Float32, 20 * 6 * 96},
               {DType::Float32, 18 * 12 * 96},
               {DType::Float32, 20 * 12 * 96, true}};
  auto load = [](int buffer, Affine map, Bound bound, double fill) {
    Instr i;
    i.kind = InstrKind::Load, i.buffer = buffer, i.map = std::move(map),
    i.bounds = {std::move(bound)}, i.fvalue = fill;
    return i;
  };
  auto add = [](int a, int b) {
    Instr i;
    i.kind = InstrKind::Compute, i.op = Op::Add, i.arg[0] = a, i.arg[1] = b;
    return i;
  };
  k.instrs = {load(0, {0, {384, 96, 1}}, {{0, {0, 96, 1}}, 384}, 0),
              load(1, {-384, {576, 96, 1}}, {{-4, {0, 1, 0}}, 6}, 7), add(0, 1),
              load(2, {-1152, {1152, 96, 1}}, {{-1, {1, 0, 0}}, 18}, -1), add(2, 3)};
  k.stores = {{4, 3, {0, {1152, 96, 1}}}};
  verify(k);
  const std::vector<KernelSpec> pieces = cpu::pieces_of(k);
  CHECK(pieces.size() == 9);
  for (const KernelSpec& piece : pieces)
    for (const Instr& i : piece.instrs) CHECK(i.bounds.empty());
  std::vector<Bytes> data, want;
  for (const BufferSpec& b : k.buffers) {
    data.emplace_back(static_cast<size_t>(b.numel) * 4);
    for (int64_t i = 0; i < b.numel; ++i)
      reinterpret_cast<float*>(data.back().data())[i] = static_cast<float>(i % 1009);
  }
  want = data;
  std::vector<Bytes*> refs;
  for (Bytes& b : want) refs.push_back(&b);
  RunStatus status;
  interpret(k, refs, {kArgs, kSeeds, kOffsets, &status});
  Runner r;
  r.run({&k, 1}, data, {kArgs, kSeeds, kOffsets, &status});
  CHECK(difference(k, data, want) == "");
}

TEST_CASE("several parts are one launch") {
  Runner r;
  for (int seed = 1; seed <= 60; ++seed) {
    std::vector<KernelSpec> parts;
    std::vector<Bytes> data;
    std::vector<std::vector<Bytes>> wants;
    for (int p = 0; p < 20; ++p) {
      SpecMaker maker(static_cast<uint64_t>(seed * 1000 + p % 7));
      std::vector<Bytes> d;
      parts.push_back(maker.make(d));
      wants.push_back(d);
      for (Bytes& b : d) data.push_back(b);
    }
    RunStatus s1, s2;
    bool bad = false;
    for (size_t p = 0; p < parts.size(); ++p) {
      std::vector<Bytes*> refs;
      for (Bytes& b : wants[p]) refs.push_back(&b);
      interpret(parts[p], refs, {kArgs, kSeeds, kOffsets, &s1});
      bad |= s1.code != 0;
    }
    r.run(parts, data, {kArgs, kSeeds, kOffsets, &s2});
    if (bad) continue;
    size_t first = 0;
    for (size_t p = 0; p < parts.size(); ++p) {
      CHECK(difference(parts[p], data, wants[p], first) == "");
      first += parts[p].buffers.size();
    }
  }
}

namespace {

/// sum over the inner axis of exp(x - max) and of x, stored with exp(x - max): all paths of a split
/// Row kernel.
KernelSpec row_kernel(int64_t outer, int64_t inner, bool columns) {
  KernelSpec k;
  k.extent = {outer, inner};
  k.n_outer = 1;
  const Affine whole{0, columns ? std::vector<int64_t>{1, outer} : std::vector<int64_t>{inner, 1}},
      kept{0, {1, 0}};
  k.buffers = {{float32, outer * inner, false, false},
               {float32, outer * inner, true, false},
               {float32, outer, true, false},
               {float32, outer, true, false}};
  auto add = [&](InstrKind kind, Op op, Level level, int a, int b) {
    Instr i;
    i.kind = kind;
    i.op = op;
    i.level = level;
    i.arg[0] = a;
    i.arg[1] = b;
    i.map = kind == InstrKind::Load ? whole : Affine{0, {0, 0}};
    i.buffer = kind == InstrKind::Load ? 0 : -1;
    k.instrs.push_back(i);
    return static_cast<int>(k.instrs.size()) - 1;
  };
  const int x = add(InstrKind::Load, Op::Leaf, Level::Elem, -1, -1),
            m = add(InstrKind::Reduce, Op::Max, Level::Outer, x, -1);
  const int e = add(InstrKind::Compute, Op::Exp, Level::Elem,
                    add(InstrKind::Compute, Op::Sub, Level::Elem, x, m), -1);
  const int s = add(InstrKind::Reduce, Op::Sum, Level::Outer, e, -1),
            t = add(InstrKind::Reduce, Op::Sum, Level::Outer, x, -1);
  k.stores = {{e, 1, whole, false}, {s, 2, kept, false}, {t, 3, kept, false}};
  return k;
}

void fill_noise(Bytes& b, uint64_t seed) {
  std::mt19937_64 rng(seed);
  for (size_t i = 0; i + 4 <= b.size(); i += 4) {
    const float v = std::normal_distribution<float>(0, 2)(rng);
    std::memcpy(b.data() + i, &v, 4);
  }
}

}  // namespace

TEST_CASE("bits do not depend on the number of threads") {
  Runner r;
  for (bool columns : {false, true})
    for (auto [outer, inner] :
         {std::pair<int64_t, int64_t>{1, 300000}, {3, 90000}, {700, 500}, {2000, 40}, {30000, 7}}) {
      const KernelSpec k = row_kernel(outer, inner, columns);
      std::vector<Bytes> first;
      for (int threads : {1, 2, 5}) {
        std::vector<Bytes> data;
        for (const BufferSpec& b : k.buffers) data.emplace_back(static_cast<size_t>(b.numel) * 4);
        fill_noise(data[0], 3);
        set_num_threads(threads);
        r.run({&k, 1}, data, {});
        if (first.empty()) first = data;
        CHECK(data == first);
      }
    }
}

TEST_CASE("several threads launch at once") {
  Runner r;
  set_num_threads(3);
  std::vector<std::string> wrong(4);
  std::vector<std::thread> users;
  for (size_t u = 0; u < wrong.size(); ++u)
    users.emplace_back([&, u] {
      for (int seed = 1; seed <= 60 && wrong[u].empty(); ++seed) {
        SpecMaker maker(static_cast<uint64_t>(seed) + 1000 * u);
        std::vector<Bytes> data, want;
        const KernelSpec k = maker.make(data);
        want = data;
        RunStatus s1, s2;
        std::vector<Bytes*> refs;
        for (Bytes& b : want) refs.push_back(&b);
        interpret(k, refs, {kArgs, kSeeds, kOffsets, &s1});
        r.run({&k, 1}, data, {kArgs, kSeeds, kOffsets, &s2});
        if (s1.code == 0) wrong[u] = difference(k, data, want);
      }
    });
  for (std::thread& t : users) t.join();
  for (const std::string& w : wrong) CHECK(w == "");
}

TEST_CASE("exp of a difference in one loop has the bits of two") {
  Runner r;
  const int64_t outer = 37, inner = 523;
  const KernelSpec k = row_kernel(outer, inner, false);
  std::vector<Bytes> data;
  for (const BufferSpec& b : k.buffers) data.emplace_back(static_cast<size_t>(b.numel) * 4);
  fill_noise(data[0], 5);
  r.run({&k, 1}, data, {});
  const float* x = reinterpret_cast<const float*>(data[0].data());
  const float* e = reinterpret_cast<const float*>(data[1].data());
  for (int64_t o = 0; o < outer; ++o) {
    const float m = *std::max_element(x + o * inner, x + (o + 1) * inner);
    std::vector<float> want(static_cast<size_t>(inner));
    for (int64_t i = 0; i < inner; ++i) want[static_cast<size_t>(i)] = x[o * inner + i] - m;
    cpu::find_op(Op::Exp, cpu::TileType::F32, 0)(want.data(), want.data(), nullptr, nullptr, inner);
    CHECK(std::memcmp(want.data(), e + o * inner, static_cast<size_t>(inner) * 4) == 0);
  }
}

TEST_CASE("functions in machine code have the bits of the loops") {
  if (!cpu::use_machine_code()) return;
  Runner r;
  cpu::set_machine_code(true, 0);
  std::vector<float> x;
  std::mt19937 rng(5);
  for (int i = 0; i < 60000; ++i) {  // any bits, then ordinary numbers
    const uint32_t bits = static_cast<uint32_t>(rng());
    float f;
    std::memcpy(&f, &bits, 4);
    x.push_back(f);
  }
  for (int i = 0; i < 60003; ++i)
    x.push_back(static_cast<float>(static_cast<int>(rng() % 400001) - 200000) * 1e-4f);
  const float inf = std::numeric_limits<float>::infinity();
  for (float f : {0.0f, -0.0f, inf, -inf, std::nanf(""), 1e-45f, -1e-45f, 1.0f, 0.625f,
                  0.927734375f, 88.73f, -87.4f, -104.0f, 3e38f})
    x.push_back(f);
  const int64_t n = static_cast<int64_t>(x.size());
  for (Op op :
       {Op::Neg, Op::Abs, Op::Sign, Op::Relu, Op::Floor, Op::Ceil, Op::Round, Op::Trunc, Op::Sqrt,
        Op::Rsqrt, Op::Reciprocal, Op::Exp, Op::Log, Op::Tanh, Op::Erf, Op::Sigmoid}) {
    KernelSpec k;
    k.extent = {n};
    k.n_outer = 1;
    k.buffers = {{DType::Float32, n, false, false}, {DType::Float32, n, true, false}};
    Instr load, f;
    load.kind = InstrKind::Load;
    load.buffer = 0;
    load.map.stride = {1};
    f.kind = InstrKind::Compute;
    f.op = op;
    f.arg[0] = 0;
    k.instrs = {load, f};
    k.stores = {{1, 1, load.map, false}};
    std::vector<Bytes> data{Bytes(x.size() * 4), Bytes(x.size() * 4)};
    std::memcpy(data[0].data(), x.data(), x.size() * 4);
    const int64_t before = cpu::machine_code_made();
    r.run({&k, 1}, data, {});
    CHECK(cpu::machine_code_made() == before + 1);
    std::vector<float> want(x.size());
    cpu::find_op(op, cpu::TileType::F32, 0)(want.data(), x.data(), nullptr, nullptr, n);
    const float* got = reinterpret_cast<const float*>(data[1].data());
    int wrong = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(got[i]) && std::isnan(want[i])) continue;
      if (std::memcmp(&got[i], &want[i], 4) != 0 && ++wrong < 3) {
        INFO(static_cast<int>(op), " of ", x[i], ": ", got[i], ", the loop gives ", want[i]);
        CHECK(false);
      }
    }
    CHECK(wrong == 0);
  }
  cpu::set_machine_code(true, 1024);
}

TEST_CASE("a NaN anywhere in a row reaches the maximum") {
  Runner r;
  for (int64_t inner : {16, 37, 64, 130, 200}) {
    const int64_t outer = inner + 1;  // row o has its NaN at o; the last row has none
    const KernelSpec k = row_kernel(outer, inner, false);
    std::vector<Bytes> data;
    for (const BufferSpec& b : k.buffers) data.emplace_back(static_cast<size_t>(b.numel) * 4);
    fill_noise(data[0], 7);
    float* x = reinterpret_cast<float*>(data[0].data());
    for (int64_t o = 0; o < inner; ++o) x[o * inner + o] = std::nanf("");
    r.run({&k, 1}, data, {});
    const float* e = reinterpret_cast<const float*>(data[1].data());
    int64_t nans = 0;
    for (int64_t i = 0; i < outer * inner; ++i) nans += std::isnan(e[i]);
    CHECK(nans == inner * inner);
  }
}
