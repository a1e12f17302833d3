// The sorted order of the elements along an axis. Elements become unsigned keys of the same order
// (NaN the largest, both zeros equal; inverted for largest first), a key is joined with its
// position, and joined keys are all different: any way of sorting them is stable. Long lines are
// radix-sorted, short ones sorted by comparison.
#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "backend/cpu/library.h"
#include "backend/cpu/support/memory.h"
#include "backend/cpu/support/threads.h"
#include "backend/cpu/support/typed.h"

namespace ingot::cpu {
namespace {

template <class U>
U ordered(U bits, U exponent) {
  constexpr U sign = U(1) << (sizeof(U) * 8 - 1);
  if ((bits & U(~sign)) > exponent) return U(~U(0));
  if (bits == sign) bits = 0;
  return bits & sign ? U(~bits) : U(bits | sign);
}
uint64_t key_of(double x) { return ordered<uint64_t>(std::bit_cast<uint64_t>(x), 0x7ffull << 52); }
uint32_t key_of(float x) { return ordered<uint32_t>(std::bit_cast<uint32_t>(x), 0xffu << 23); }
uint16_t key_of(Half x) { return ordered<uint16_t>(x.bits, 0x7c00); }
uint16_t key_of(Brain x) { return ordered<uint16_t>(x.bits, 0x7f80); }
uint64_t key_of(int64_t x) { return static_cast<uint64_t>(x) ^ (uint64_t{1} << 63); }
uint32_t key_of(int32_t x) { return static_cast<uint32_t>(x) ^ (1u << 31); }
uint16_t key_of(int16_t x) { return static_cast<uint16_t>(x ^ 0x8000); }
uint8_t key_of(int8_t x) { return static_cast<uint8_t>(x ^ 0x80); }
uint8_t key_of(uint8_t x) { return x; }

/// A key and its position in one integer.
struct Joined {
  uint64_t v;
  static Joined of(uint64_t key, uint64_t place) { return {key << 32 | place}; }
  bool operator<(const Joined& o) const { return v < o.v; }
  uint64_t key() const { return v >> 32; }
  int64_t place() const { return static_cast<int64_t>(v & 0xffffffffu); }
};
/// For keys of 64 bits, and lines of more than 2^32 elements.
struct Pair {
  uint64_t k, p;
  static Pair of(uint64_t key, uint64_t place) { return {key, place}; }
  bool operator<(const Pair& o) const { return k != o.k ? k < o.k : p < o.p; }
  uint64_t key() const { return k; }
  int64_t place() const { return static_cast<int64_t>(p); }
};

constexpr int kDigit = 11, kBuckets = 1 << kDigit;

/// Sorts by key, 11 bits per pass from the lowest; a digit that is the same everywhere costs
/// nothing. Returns where the result is.
template <class E>
E* radix_sort(E* a, E* b, int64_t n, int bits) {
  const int passes = (bits + kDigit - 1) / kDigit;
  std::vector<int64_t> counts(static_cast<size_t>(passes) * kBuckets, 0);
  for (int64_t i = 0; i < n; ++i) {
    uint64_t k = a[i].key();
    for (int p = 0; p < passes; ++p, k >>= kDigit)
      ++counts[static_cast<size_t>(p) * kBuckets + (k & (kBuckets - 1))];
  }
  for (int p = 0; p < passes; ++p) {
    int64_t* count = &counts[static_cast<size_t>(p) * kBuckets];
    const int shift = p * kDigit;
    if (count[a[0].key() >> shift & (kBuckets - 1)] == n) continue;
    int64_t at = 0;
    for (int d = 0; d < kBuckets; ++d) at += std::exchange(count[d], at);
    for (int64_t i = 0; i < n; ++i) b[count[a[i].key() >> shift & (kBuckets - 1)]++] = a[i];
    std::swap(a, b);
  }
  return a;
}

class Sort final : public CpuExecutable {
 public:
  explicit Sort(const LibrarySpec& spec)
      : out_(spec.operands[0]),
        in_(spec.operands[1]),
        axis_(spec.attrs.as<SortAttrs>().axis),
        descending_(spec.attrs.as<SortAttrs>().descending),
        lines_(out_, in_, axis_, out_.shape.size()),
        length_(in_.shape[axis_]),
        wanted_(out_.shape[axis_]) {
    wide_ = size_of(in_.dtype) == 8 || length_ >> 32;
    pieces_ = std::min<int64_t>(lines_.count(), std::max(8, 2 * get_num_threads()));
    scratch_bytes =
        static_cast<size_t>(pieces_ * length_ * 2) * (wide_ ? sizeof(Pair) : sizeof(Joined)) + 64;
  }

  void run(void* const* buffers, void* scratch, const RunArgs&) override {
    auto* room = line_aligned(scratch);
    with_type(in_.dtype, [&](auto element) {
      using T = decltype(element);
      wide_ ? all<T, Pair>(buffers, room) : all<T, Joined>(buffers, room);
    });
  }

 private:
  template <class T, class E>
  void all(void* const* buffers, char* room) const {
    auto* out = static_cast<int64_t*>(buffers[0]);
    const T* in = static_cast<const T*>(buffers[1]);
    auto piece = [&](int64_t t) {
      E* a = reinterpret_cast<E*>(room) + t * length_ * 2;
      const int64_t end = lines_.count() * (t + 1) / pieces_;
      for (int64_t l = lines_.count() * t / pieces_; l < end; ++l) {
        int64_t o, i;
        lines_.place(l, o, i);
        line<T, E>(out + o, in + i, a);
      }
    };
    if (lines_.count() * length_ < 2048) {
      for (int64_t t = 0; t < pieces_; ++t) piece(t);
      return;
    }
    parallel_for(pieces_, 1, [&](int64_t b, int64_t e) {
      for (int64_t t = b; t < e; ++t) piece(t);
    });
  }

  template <class T, class E>
  void line(int64_t* out, const T* in, E* a) const {
    const int64_t si = in_.stride[axis_], so = out_.stride[axis_], n = length_;
    using K = decltype(key_of(T{}));
    for (int64_t k = 0; k < n; ++k) {
      const K key = key_of(in[k * si]);
      a[k] = E::of(descending_ ? K(~key) : key, static_cast<uint64_t>(k));
    }
    if (wanted_ * 64 <= n) {
      std::partial_sort(a, a + wanted_, a + n);
    } else if (n < 400) {
      if (wanted_ < n) std::nth_element(a, a + wanted_ - 1, a + n);
      std::sort(a, a + wanted_);
    } else if (wanted_ * 3 < n) {
      std::nth_element(a, a + wanted_ - 1, a + n);
      std::sort(a, a + wanted_);
    } else {
      a = radix_sort(a, a + n, n, static_cast<int>(sizeof(K)) * 8);
    }
    for (int64_t k = 0; k < wanted_; ++k) out[k * so] = a[k].place();
  }

  OperandSpec out_, in_;
  int axis_;
  bool descending_, wide_ = false;
  Lines lines_;
  int64_t length_, wanted_, pieces_ = 1;
};

}  // namespace

std::unique_ptr<CpuExecutable> prepare_sort(const LibrarySpec& spec, const char*&) {
  return std::make_unique<Sort>(spec);
}

}  // namespace ingot::cpu
