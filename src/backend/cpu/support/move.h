// Moving elements between strided boxes of memory and dense tiles: copies, fills, transpositions,
// streaming stores.
#pragma once
#include <cstdint>

#include "codegen/kernel_spec.h"

namespace ingot::cpu {

/// A transposition runs along the rows of the side that is not in the cache: the source, or the
/// result. Memory: the result is written bypassing the caches where it is aligned (finish_stream()
/// when all is done).
enum class Far : uint8_t { Source, Result, Memory };

/// dst[sum ds*i] = src[sum ss*i] for all i in the box e[0..nd), elements of esize bytes, strides in
/// elements.
void copy_box(void* dst, const int64_t* ds, const void* src, const int64_t* ss, const int64_t* e,
              int nd, int esize);
/// The same with a dense destination (or source) in row-major order, which is assumed to be in the
/// cache.
void gather_box(void* dst, const void* src, const int64_t* ss, const int64_t* e, int nd, int esize);
void scatter_box(void* dst, const int64_t* ds, const void* src, const int64_t* e, int nd, int esize,
                 Far far = Far::Result);

/// dst[to[i] + j] = src[j * stride + i] for i < n, j < width.
void transpose_to_rows(float* dst, const int64_t* to, const float* src, int64_t stride, int64_t n,
                       int64_t width);
/// dst[j * stride + i] = src[from[i] + j], summed with the count - 1 others that follow it, `step`
/// apart.
void transpose_from_rows(float* dst, int64_t stride, const float* src, const int64_t* from,
                         int64_t n, int64_t width, int64_t count, int64_t step);

void fill_elements(void* dst, const void* value, int esize, int64_t n);
/// Each of `count` elements `times` times in a row.
void repeat_each(void* dst, const void* src, int esize, int64_t count, int64_t times);
/// The `count` elements one after the other, `times` times.
void repeat_all(void* dst, const void* src, int esize, int64_t count, int64_t times);
/// memcpy that bypasses the caches, for results too large to stay in them.
void stream_copy(void* dst, const void* src, int64_t bytes);
/// `rows` rows of `bytes` each, their starts `pitch` bytes apart in dst and `bytes` in src.
void stream_rows(void* dst, int64_t pitch, const void* src, int64_t rows, int64_t bytes);
void finish_stream();
/// Is so much written, of all that a call moves, that it would not stay in the caches? In bytes.
inline bool worth_streaming(int64_t written, int64_t moved) {
  return written >= (int64_t{4} << 20) && moved >= (int64_t{28} << 20);
}

}  // namespace ingot::cpu
