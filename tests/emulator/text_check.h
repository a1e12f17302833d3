// Memory, inputs and comparison for tests that run generated text: in the emulator and on a GPU.
#pragma once
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "emulator/text_cases.h"
#include "support/spec_interpreter.h"

namespace ingot::test {

/// Memory of a launch: all parts' buffers one after the other, 64-byte aligned, with margins that
/// must stay as they are.
class Memory {
 public:
  static constexpr size_t kMargin = 64;
  explicit Memory(const std::vector<KernelSpec>& parts) {
    std::mt19937 gen(5);
    for (const KernelSpec& k : parts)
      for (const BufferSpec& b : k.buffers) {
        add(static_cast<size_t>(b.numel) * size_of(b.dtype) + 2 * kMargin);
        for (int64_t i = 0; i < b.numel; ++i)
          write_element(b.dtype, pointers_.back(), i, sample(gen, b.dtype));
      }
  }
  Memory(const Memory& other) {
    for (size_t b = 0; b < other.sizes_.size(); ++b) {
      add(other.sizes_[b]);
      std::memcpy(blocks_[b].get(), other.blocks_[b].get(), sizes_[b]);
    }
  }
  void* const* pointers() const { return pointers_.data(); }
  void* operator[](size_t b) const { return pointers_[b]; }
  /// Numbers that keep every op well conditioned: floats in (-1, 1), small integers, now and then a
  /// zero.
  static Element sample(std::mt19937& gen, DType t) {
    double u = static_cast<double>(gen() % 20001) / 10000.0 - 1;
    if (is_float(t)) return {u, 0};
    if (t == bool_) return {0, static_cast<int64_t>(gen() % 2)};
    return {0, static_cast<int64_t>(gen() % 14) - (t == uint8 ? 0 : 5)};
  }

 private:
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  void add(size_t bytes) {
    blocks_.emplace_back(static_cast<char*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
    std::memset(blocks_.back().get(), 0x7f, bytes);
    sizes_.push_back(bytes);
    pointers_.push_back(blocks_.back().get() + kMargin);
  }
  std::vector<std::unique_ptr<char, Free>> blocks_;
  std::vector<size_t> sizes_;
  std::vector<void*> pointers_;
};

struct Inputs {
  double args[3] = {0.25, -1.5, 3};
  uint64_t seeds[2] = {42, 0x123456789abcdefull}, offsets[2] = {0, 77};
  RunStatus status;
  RunArgs run() { return {args, seeds, offsets, &status}; }
};

/// The widest type of loads and instructions that a kernel goes through decides how near results
/// must be.
inline double tolerance(const KernelSpec& k, DType stored) {
  auto eps = [](DType t) {
    return t == bfloat16 ? 1.6e-2 : t == float16 ? 2e-3 : t == float32 ? 4e-6 : 1e-12;
  };
  double e = eps(stored);
  for (const Instr& in : k.instrs)
    if (is_float(in.dtype) && in.kind != InstrKind::Load && in.kind != InstrKind::Const)
      e = std::max(e, eps(in.dtype));
  return e * (k.n_inner() > 0 ? 4 : 1);
}

inline void compare(const TextCase& c, const Memory& got, const Memory& want) {
  size_t b = 0;
  for (const KernelSpec& k : c.parts)
    for (size_t n = 0; n < k.buffers.size(); ++n, ++b) {
      const BufferSpec& spec = k.buffers[n];
      double tol = tolerance(k, spec.dtype);
      int wrong = 0;
      for (int64_t i = -8; i < spec.numel + 8 && wrong < 3; ++i) {
        Element g = read_element(spec.dtype, got[b], i), w = read_element(spec.dtype, want[b], i);
        bool same = is_float(spec.dtype)
                        ? g.f == w.f || (std::isnan(g.f) && std::isnan(w.f)) ||
                              std::fabs(g.f - w.f) <= tol * std::max(1.0, std::fabs(w.f))
                        : g.i == w.i;
        wrong += !same;
        INFO("buffer " << n << " element " << i << " of " << spec.numel << ": got " << g.f << " / "
                       << g.i << ", want " << w.f << " / " << w.i);
        CHECK(same);
      }
    }
}

inline bool same_bits(const TextCase& c, const Memory& x, const Memory& y) {
  size_t b = 0;
  for (const KernelSpec& k : c.parts)
    for (const BufferSpec& s : k.buffers) {
      if (std::memcmp(x[b], y[b], static_cast<size_t>(s.numel) * size_of(s.dtype)) != 0)
        return false;
      ++b;
    }
  return true;
}

}  // namespace ingot::test
