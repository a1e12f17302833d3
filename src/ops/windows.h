// What convolutions and poolings share: numbers per dim, windows as views, and their way back.
#pragma once
#include <string>

#include "ingot/conv.h"
#include "ops/common.h"

namespace ingot {

/// v as n numbers, each at least `least`; Error(Value) names what it is.
Dims per_dim(const PerDim& v, int n, int64_t least, const char* what, const char* op,
             const SourceLoc& loc);

/// Overlapping windows over the last strides.size() dims, which are padded with `fill` first: [..,
/// L..] ->
/// [.., O.., K..].
struct Windows {
  Dims kernel, stride, dilation, front, behind;  // of each dim
  double fill = 0;

  int n() const { return kernel.size(); }
  /// How many windows fit dim d of size `size`.
  int64_t count(int d, int64_t size) const;
};
Tensor window_view(const Tensor& x, const Windows& w, const SourceLoc& loc);
/// The way back of window_view without the padding: values [.., O.., K..] (or [.., O..] at
/// `position` in the flattened window) added up into `shape`.
Tensor fold_windows(const Tensor& value, const Tensor& position, const Windows& w,
                    const Dims& shape, const SourceLoc& loc);

/// The largest element of each window, [.., O..], and its index in the flattened window (uint8, or
/// int32 for large ones).
Tensor windowed_max(const Tensor& x, const Windows& w, const SourceLoc& loc);
Tensor windowed_argmax(const Tensor& x, const Windows& w, const SourceLoc& loc);

/// x padded in its last dims.
Tensor pad_last(const Tensor& x, const Dims& front, const Dims& behind, double fill,
                const SourceLoc& loc);

}  // namespace ingot
