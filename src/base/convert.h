// Conversion of elements in host memory: item() and to_vector() need no kernel.
#pragma once
#include <cstddef>
#include <cstdint>

#include "ingot/dtype.h"

namespace ingot {

float half_to_float(uint16_t h);
float bfloat_to_float(uint16_t h);

/// Reads n elements of type `from` at src and writes them as `to` at dst, by the rules of
/// a cast: floating to integer drops the fraction, to bool tests for not 0, to 16-bit
/// floats rounds to nearest even.
void convert_elements(void* dst, DType to, const void* src, DType from, size_t n);

}  // namespace ingot
