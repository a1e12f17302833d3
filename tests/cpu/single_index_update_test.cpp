// Kernels that change one place along an axis: which are taken for such, and what they write.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "backend/cpu/library.h"
#include "spec_interpreter.h"

using namespace ingot;
using namespace ingot::test;

namespace {

constexpr int64_t kHeads = 3, kPlaces = 7, kWidth = 20;

enum class Twist { None, NewByPlace, IndexInside, OtherType, TwoSteps, OldReadTwice };

/// cache[h, p, d] = where(p == number, new[h, d] * 2 (and the twist), cache[h, p, d])
KernelSpec kernel(Twist twist) {
  KernelSpec k;
  k.extent = {kHeads, kPlaces, kWidth};
  k.n_outer = 3;
  const int64_t all = kHeads * kPlaces * kWidth;
  k.buffers = {{DType::Float32, 2 * all}, {DType::Float32, all}, {DType::Float32, all}};
  k.buffers[1].may_alias = k.buffers[2].may_alias = k.buffers[2].written = true;
  auto push = [&](InstrKind kind, DType t) -> Instr& {
    k.instrs.emplace_back();
    k.instrs.back().kind = kind;
    k.instrs.back().dtype = t;
    return k.instrs.back();
  };
  auto compute = [&](Op op, DType t, int a, int b = -1, int c = -1) {
    Instr& i = push(InstrKind::Compute, t);
    i.op = op;
    i.arg[0] = a, i.arg[1] = b, i.arg[2] = c;
    return static_cast<int>(k.instrs.size()) - 1;
  };
  const Affine place{0, {kPlaces * kWidth, kWidth, 1}};
  push(InstrKind::Index, DType::Int64).map = {0, {0, 1, 0}};
  push(InstrKind::Arg, twist == Twist::OtherType ? DType::Int32 : DType::Float64).slot = 1;
  const int is = compute(Op::Eq, DType::Bool, 0, compute(Op::Cast, DType::Int64, 1));
  Instr& fresh = push(InstrKind::Load, DType::Float32);
  fresh.buffer = 0;
  fresh.map = twist == Twist::NewByPlace ? place : Affine{5, {kWidth, 0, 1}};
  int value = compute(Op::Add, DType::Float32, 4, 4);
  if (twist == Twist::IndexInside)
    value = compute(Op::Add, DType::Float32, value, compute(Op::Cast, DType::Float32, 0));
  if (twist == Twist::TwoSteps) {
    Instr& again = push(InstrKind::Load, DType::Float32);
    again.buffer = 0;
    again.map = place;
    value = compute(Op::Add, DType::Float32, value, static_cast<int>(k.instrs.size()) - 1);
  }
  Instr& old = push(InstrKind::Load, DType::Float32);
  old.buffer = 1;
  old.map = place;
  const int kept = static_cast<int>(k.instrs.size()) - 1;
  if (twist == Twist::OldReadTwice) value = compute(Op::Add, DType::Float32, value, kept);
  Store s;
  s.value = compute(Op::Where, DType::Float32, is, value, kept);
  s.buffer = 2;
  s.map = place;
  s.predicated = true;
  s.over = 1;
  k.stores = {s};
  verify(k);
  return k;
}

}  // namespace

TEST_CASE("a kernel that changes one place along an axis runs there alone") {
  for (Twist twist : {Twist::None, Twist::NewByPlace})
    for (double at : {0.0, 3.0, 6.0, 5.99, -0.5, -1.0, 7.0, 1e300, std::nan("")}) {
      CAPTURE(at);
      const std::vector<KernelSpec> parts(2, kernel(twist));
      auto pinned = cpu::prepare_single_index_update(parts);
      REQUIRE(pinned);
      std::vector<Bytes> data(4), want;
      for (size_t b = 0; b < 4; ++b) {
        const int64_t n = parts[0].buffers[b % 2].numel;
        data[b].resize(static_cast<size_t>(n) * 4);
        for (int64_t i = 0; i < n; ++i)
          write_number(data[b], DType::Float32, i,
                       {static_cast<double>(i % 89 - 40 + 100 * static_cast<int64_t>(b)), 0});
      }
      want = data;
      const double args[2] = {99, at};
      RunStatus status;
      const RunArgs run{args, nullptr, nullptr, &status, 2};
      std::vector<void*> p;
      for (size_t part = 0; part < 2; ++part) {
        Bytes &fresh = data[2 * part], &cache = data[2 * part + 1];
        p.insert(p.end(), {fresh.data(), cache.data(), cache.data()});
        Bytes old = want[2 * part + 1];  // the interpreter reads and writes apart
        if (at > -1 && at < kPlaces)
          interpret(parts[part], {&want[2 * part], &old, &want[2 * part + 1]}, run);
      }
      pinned->run(p.data(), nullptr, run);
      CHECK(data == want);
      // Nothing is written when the run has failed.
      want = data;
      write_number(data[0], DType::Float32, 7, {12345, 0});
      want[0] = data[0];
      status.code = RunStatus::NonFinite;
      pinned->run(p.data(), nullptr, run);
      CHECK(data == want);
    }
}

TEST_CASE("what hangs on the axis otherwise is not taken for such a kernel") {
  for (Twist twist : {Twist::IndexInside, Twist::OtherType, Twist::TwoSteps, Twist::OldReadTwice}) {
    const KernelSpec k = kernel(twist);
    CHECK(!cpu::prepare_single_index_update({&k, 1}));
  }
  KernelSpec k = kernel(Twist::None);
  k.stores[0].over = -1;  // the old values are stored elsewhere: all indices are written
  CHECK(!cpu::prepare_single_index_update({&k, 1}));
}
