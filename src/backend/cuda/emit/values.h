// Types, constants, conversions and elementwise functions as CUDA C text.
//
// A value in a register has the register type of its dtype (16-bit floats: float, rounded after
// each instruction); in memory it has the memory type (16-bit floats: unsigned short, converted by
// ig_up_* and ig_down_*).
#pragma once
#include <set>
#include <string>

#include "codegen/kernel_spec.h"

namespace ingot::cuda {

const char* register_type(DType t);
const char* memory_type(DType t);
size_t register_bytes(DType t);
inline size_t memory_bytes(DType t) { return size_of(t); }

/// Text that turns a value between memory and register form.
std::string to_register(DType t, const std::string& x);
std::string to_memory(DType t, const std::string& x);
/// Text of a conversion between register forms, with Cast's semantics.
std::string cast(DType from, DType to, const std::string& x);
/// Rounds a register value to its dtype (16-bit floats only).
std::string rounded(DType t, const std::string& x);

/// A constant of the dtype, in register form.
std::string literal(DType t, double f, int64_t i);

/// The C functions that a kernel's Compute instructions call; each is defined once, from the op
/// table's row.
class ElementwiseFunctions {
 public:
  /// Text of op applied to operands of type t.
  std::string call(Op op, DType t, const std::string& a, const std::string& b);
  std::string definitions() const;

 private:
  std::set<std::string> defined_;
};

/// The neutral element of a reduction and the name of the function that combines two.
std::string reduce_identity(Op op, DType t);
const char* reduce_function(Op op);

}  // namespace ingot::cuda
