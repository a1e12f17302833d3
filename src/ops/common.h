// What the front-end functions share: promotion, constants, casts and the checks of dims, in a
// node's terms. Functions here take the user's line, already looked up.
#pragma once
#include <string>

#include "graph/checks.h"
#include "graph/handle.h"
#include "graph/node.h"
#include "ingot/ops.h"

namespace ingot {

inline const OpSpec kNoAttrs{};

/// Throws the error of an op; short, so that checks stay readable.
[[noreturn]] void fail(ErrorKind kind, const char* op, std::string what, const SourceLoc& loc,
                       std::string fix = {});

/// 1.5, not 1.500000.
std::string text_of(double v);
/// Error(Shape) for a new tensor with a negative size or too many elements.
void check_new_shape(const Dims& shape, const char* op, const SourceLoc& loc);

/// describe() of a tensor's node.
std::string describe(const Tensor& x);

/// A 0-d constant, converted to dtype here; an integer wraps, as in PyTorch's arithmetic.
NodeRef constant(const Scalar& s, DType dtype, Device device, const SourceLoc& loc);
/// The same of a number that is written into a tensor: one that an integer type cannot hold is an
/// error.
NodeRef fitting(const Scalar& s, DType dtype, Device device, const char* op, const SourceLoc& loc);
/// n itself when it has the type.
NodeRef cast_to(NodeRef n, DType dtype, const SourceLoc& loc);
/// n itself when it is there.
NodeRef move_to(NodeRef n, Device device, const SourceLoc& loc);
/// n under another shape; n itself when it has it.
NodeRef reshape_to(NodeRef n, const Dims& shape, const SourceLoc& loc);
/// The first elements of each dim.
NodeRef corner(const NodeRef& n, const Dims& shape, const SourceLoc& loc);
/// n broadcast to shape, with leading dims of size 1 added where needed. The caller has checked
/// that it fits.
NodeRef expand_to(NodeRef n, const Dims& shape, const SourceLoc& loc);

/// The type that a number alone takes: bool, int64 or float32.
DType default_dtype(const Scalar& s);
/// PyTorch's promotion: tensors with dims outrank 0-d ones of the same kind, which outrank numbers.
DType promoted(const Node* a, const Node* b);
DType promoted(const Node* a, const Scalar& b);

/// dim in 0..rank-1, or Error(Dim). A 0-d tensor takes 0 and -1, as one of rank 1 would.
int wrap_dim(int64_t dim, const Node* x, const char* op, const SourceLoc& loc);
/// The same in 0..n-1 for a rank that is not x's (unsqueeze, stack).
int wrap_dim_of(int64_t dim, int n, const Node* x, const char* op, const SourceLoc& loc);
/// Bits of the dims; all of them for Axes(). Error(Dim) for a dim outside or named twice.
uint32_t axes_mask(const Axes& axes, const Node* x, const char* op, const SourceLoc& loc);

/// Records one elementwise op of two nodes that already agree in type and device.
inline NodeRef record2(Op op, NodeRef a, NodeRef b, const SourceLoc& loc) {
  return record(op, {std::move(a), std::move(b)}, kNoAttrs, loc);
}
inline NodeRef record1(Op op, NodeRef a, const SourceLoc& loc) {
  return record(op, {std::move(a)}, kNoAttrs, loc);
}

/// Promotes, moves 0-d operands to the other's device and records.
NodeRef binary_node(Op op, NodeRef a, NodeRef b, const SourceLoc& loc);
NodeRef binary_node(Op op, NodeRef a, const Operand& b, const SourceLoc& loc);

/// Indices of a dim of this size with negative ones counted from its end.
NodeRef from_end(NodeRef index, int64_t size, const SourceLoc& loc);
/// int64 zeros of ok's shape (bool) whose computation fails, with `check`'s words, where ok is
/// false. A value that must not be used unchecked adds them.
NodeRef require(NodeRef ok, Check check, const SourceLoc& loc);
/// x, whose computation fails with `check`'s words where an element of `sound` (bool) is false.
Tensor checked(const Tensor& x, const Tensor& sound, Check check, const SourceLoc& loc);

/// Iota of n along one dim of a rank: shape [1, .., n, .., 1].
NodeRef iota_along(int64_t n, int dim, int rank, Device device, const SourceLoc& loc);

/// Type and device asked for, or the default.
inline DType dtype_or(const Options& o, DType otherwise) { return o.dtype ? *o.dtype : otherwise; }
inline Device device_or_default(const Options& o) {
  return o.device ? *o.device : default_device();
}

/// query key^T * scale with a mask of any kind (or none), or the causal one.
Tensor attention_scores(const Tensor& query, const Tensor& key, const Tensor& mask, bool causal,
                        double scale, const SourceLoc& loc);
/// Attention as one op with its own gradient (ops/attention_call.cpp). `bias` is added to the
/// scores; it may be undefined and gets no gradient.
Tensor fused_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias,
                       bool causal, double scale, const SourceLoc& loc);

/// Writes value (any type, broadcastable) into x's cell as `op`; see inplace.cpp.
void write_through(const Tensor& x, NodeRef value, const char* op, const SourceLoc& loc);
/// The same for the result of a computation: Error(DType) when its type does not go into x's.
void write_result(const Tensor& x, const Tensor& value, const char* op, const SourceLoc& where);

}  // namespace ingot
