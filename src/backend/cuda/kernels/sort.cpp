// See sort.h: which kernel takes a call, and the keys of its elements.
#include "backend/cuda/kernels/sort.h"

#include <algorithm>

#include "backend/cuda/kernels/lines.h"
#include "backend/cuda/kernels/radix_sort.h"

namespace ingot::cuda {
namespace {

constexpr int64_t kLongestShort = 2048;

const char* const kKeys = R"cuda(
// The bits of an element, and of a float those of infinity.
template <int kBytes> struct Bits;
template <> struct Bits<1> { typedef unsigned char U; typedef unsigned Key; };
template <> struct Bits<2> { typedef unsigned short U; typedef unsigned Key; };
template <> struct Bits<4> { typedef unsigned U; typedef unsigned Key; };
template <> struct Bits<8> { typedef ig_u64 U; typedef ig_u64 Key; };
template <class D> struct Infinity { static constexpr ig_u64 bits = 0; };
template <> struct Infinity<Float64> { static constexpr ig_u64 bits = 0x7ff0000000000000ull; };
template <> struct Infinity<Float32> { static constexpr ig_u64 bits = 0x7f800000u; };
template <> struct Infinity<Float16> { static constexpr ig_u64 bits = 0x7c00u; };
template <> struct Infinity<BFloat16> { static constexpr ig_u64 bits = 0x7f80u; };
// An unsigned key of the same order as the element: NaN the largest, both zeros equal, inverted for largest first.
template <class D, bool kDescending> struct SortKey {
  typedef typename D::Memory T;
  typedef typename Bits<(int)sizeof(T)>::Key K;
  IG_FN K of(T v) {
    union { T v; typename Bits<(int)sizeof(T)>::U u; } x; x.v = v;
    K u = (K)x.u;
    constexpr K sign = K(1) << (sizeof(T) * 8 - 1), infinity = K(Infinity<D>::bits);
    if (infinity) {
      if ((u & K(sign - 1)) > infinity) u = K(sign | K(sign - 1));
      else if (u == sign || u == 0) u = sign;
      else u = (u & sign) ? K(~u & (sign | K(sign - 1))) : K(u | sign);
    } else if (T(-1) < T(0)) {
      u ^= sign;
    }
    return kDescending ? K(~u & (sign | K(sign - 1))) : u;
  }
};
)cuda";

}  // namespace

std::string sort_text() { return std::string(kLinesText) + kKeys; }

const char* sort_refuses(const LibrarySpec& spec) {
  const OperandSpec& in = spec.operands[1];
  const int64_t length = in.shape[spec.attrs.as<SortAttrs>().axis];
  const int64_t tiles = (length + kRadixTile - 1) / kRadixTile;
  const bool fits = length < (int64_t{1} << 31) &&
                    in.shape.numel() / std::max<int64_t>(1, length) * tiles < (int64_t{1} << 31);
  return fits ? nullptr : "it has too many elements";
}

CudaKernel sort(const LibrarySpec& spec) {
  const OperandSpec &out = spec.operands[0], &in = spec.operands[1];
  const int axis = spec.attrs.as<SortAttrs>().axis;
  SortParams p{};
  set_lines(p, spec);
  p.length = in.shape[axis], p.wanted = out.shape[axis];
  p.out_stride = out.stride[axis], p.in_stride = in.stride[axis];
  return p.length <= kLongestShort ? sort_short(spec, p) : sort_long(spec, p);
}

}  // namespace ingot::cuda
