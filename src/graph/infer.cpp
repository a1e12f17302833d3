// Result type, shape and device of every primitive: the only place that knows, and the last check before a
// node is made. Front-end functions check what needs the user's own words (dims, options); what is said here
// names operands.
#include <cstdlib>

#include "graph/infer_conv.h"
#include "graph/node.h"

namespace ingot {
namespace {

using Inputs = std::span<Node* const>;

[[noreturn]] void fail(ErrorKind kind, Op op, std::string what, const SourceLoc& loc, std::string fix = {}) {
  throw Error(kind, info(op).name, std::move(what), loc, std::move(fix));
}

std::string both(Inputs in) { return describe(*in[0]) + " and " + describe(*in[1]); }

// Elements are counted in int64 and bytes in size_t: 2^60 elements of 8 bytes fit both.
void check_shape(Op op, const Dims& shape, const SourceLoc& loc) {
  int64_t n = 1;
  bool over = false;
  for (int64_t s : shape) {
    if (s < 0) fail(ErrorKind::Shape, op, "a size cannot be negative: " + to_string(shape), loc);
    if (s == 0) return;
    over = over || n > (int64_t{1} << 60) / s;
    if (!over) n *= s;
  }
  if (over) fail(ErrorKind::Shape, op, "shape " + to_string(shape) + " has more than 2^60 elements", loc);
}

void check_device(Op op, Inputs in, const SourceLoc& loc) {
  for (size_t i = 1; i < in.size(); ++i)
    if (in[i]->device != in[0]->device) {
      // Suggest moving what is on the CPU: data usually follows the parameters.
      Node *stay = in[0], *go = in[i];
      if (go->device.type() != DeviceType::CPU && stay->device.type() == DeviceType::CPU) std::swap(stay, go);
      fail(ErrorKind::Device, op,
           "operands are on different devices: " + describe(*in[0]) + " and " + describe(*in[i]), loc,
           "move one of them: the " + std::string(name_of(go->dtype)) + to_string(go->shape) +
               " with .to(\"" + stay->device.name() + "\")");
    }
}

void check_same_dtype(Op op, const Node& a, const Node& b, const SourceLoc& loc) {
  if (a.dtype != b.dtype)
    fail(ErrorKind::DType, op, "operands differ in type: " + describe(a) + " and " + describe(b), loc,
         "convert one of them: .to(" + std::string(name_of(promote(a.dtype, b.dtype))) + ")");
}

[[noreturn]] void fail_broadcast(Op op, const Node& a, const Node& b, const SourceLoc& loc) {
  std::string where;
  int r = std::max(a.rank(), b.rank());
  for (int i = 1; i <= r; ++i) {
    int64_t x = i <= a.rank() ? a.shape[a.rank() - i] : 1, y = i <= b.rank() ? b.shape[b.rank() - i] : 1;
    if (x != y && x != 1 && y != 1) {
      where = "dim -" + std::to_string(i) + " is " + std::to_string(x) + " in the first and " +
              std::to_string(y) + " in the second";
      break;
    }
  }
  std::string fix = "sizes must be equal or 1, counted from the last dim";
  // A vector along the first dim of a matrix is the usual slip.
  const Node &small = a.rank() < b.rank() ? a : b, &large = a.rank() < b.rank() ? b : a;
  if (small.rank() == 1)
    for (int i = 0; i + 1 < large.rank(); ++i)
      if (large.shape[i] == small.shape[0]) {
        Dims d = Dims::filled(large.rank() - i, 1);
        d[0] = small.shape[0];
        fix = "to line it up with dim " + std::to_string(i) + ", use .reshape({";
        for (int k = 0; k < d.size(); ++k) fix += (k ? ", " : "") + std::to_string(d[k]);
        fix += "})";
        break;
      }
  fail(ErrorKind::Shape, op, "cannot broadcast " + describe(a) + " with " + describe(b) + ": " + where, loc,
       fix);
}

void check_rule(Op op, const Node& x, const SourceLoc& loc) {
  DType t = x.dtype;
  switch (info(op).rule) {
    case TypeRule::Float:
      if (!is_float(t))
        fail(ErrorKind::DType, op, "needs a floating type, not " + describe(x), loc,
             "convert with .to(float32)");
      break;
    case TypeRule::Int:
      if (is_float(t))
        fail(ErrorKind::DType, op, "needs bool or an integer type, not " + describe(x), loc,
             "convert with .to(int64)");
      break;
    case TypeRule::Num:
      if (t == DType::Bool)
        fail(ErrorKind::DType, op, "is not defined for bool: " + describe(x), loc,
             op == Op::Sub   ? "use logical_xor(a, b), or convert with .to(int64)"
             : op == Op::Neg ? "use logical_not(x) or !x, or convert with .to(int64)"
                             : "convert with .to(int64) or .to(float32)");
      break;
    case TypeRule::Same:
    case TypeRule::Bool:
      break;
  }
}

Inferred elementwise(Op op, Inputs in, const SourceLoc& loc) {
  const Node& a = *in[0];
  Inferred r{info(op).rule == TypeRule::Bool ? DType::Bool : a.dtype, a.shape, a.device};
  check_rule(op, a, loc);
  if (in.size() == 1) return r;
  const Node& b = *in[1];
  if (a.device != b.device) check_device(op, in, loc);
  if (a.dtype != b.dtype) check_same_dtype(op, a, b, loc);
  if (!(a.shape == b.shape)) {
    if (!broadcast_shapes(a.shape, b.shape, r.shape)) fail_broadcast(op, a, b, loc);
    check_shape(op, r.shape, loc);
  }
  return r;
}

Inferred where(Inputs in, const SourceLoc& loc) {
  check_device(Op::Where, in, loc);
  if (in[0]->dtype != DType::Bool)
    fail(ErrorKind::DType, Op::Where, "the condition must be bool, not " + describe(*in[0]), loc,
         "compare it, as in condition != 0");
  check_same_dtype(Op::Where, *in[1], *in[2], loc);
  Inferred r{in[1]->dtype, {}, in[0]->device};
  Dims ab;
  if (!broadcast_shapes(in[1]->shape, in[2]->shape, ab)) fail_broadcast(Op::Where, *in[1], *in[2], loc);
  if (!broadcast_shapes(in[0]->shape, ab, r.shape))
    fail_broadcast(Op::Where, *in[0], ab == in[1]->shape ? *in[1] : *in[2], loc);
  check_shape(Op::Where, r.shape, loc);
  return r;
}

Inferred reshape(const Node& x, const Dims& shape, const SourceLoc& loc) {
  check_shape(Op::Reshape, shape, loc);
  if (shape.numel() != x.numel())
    fail(ErrorKind::Shape, Op::Reshape,
         describe(x) + " has " + std::to_string(x.numel()) + " elements, shape " + to_string(shape) +
             " would have " + std::to_string(shape.numel()),
         loc, "let one size be worked out: -1");
  return {x.dtype, shape, x.device};
}

Inferred permute(const Node& x, const Dims& order, const SourceLoc& loc) {
  uint32_t seen = 0;
  Dims shape = Dims::filled(x.rank(), 0);
  bool ok = order.size() == x.rank();
  for (int i = 0; ok && i < order.size(); ++i) {
    ok = order[i] >= 0 && order[i] < x.rank() && !(seen >> order[i] & 1);
    if (!ok) break;
    seen |= 1u << order[i];
    shape[i] = x.shape[static_cast<int>(order[i])];
  }
  if (!ok)
    fail(ErrorKind::Dim, Op::Permute,
         to_string(order) + " does not name each of the " + std::to_string(x.rank()) + " dims of " +
             describe(x) + " once",
         loc, "list every dim from 0 to " + std::to_string(x.rank() - 1) + " once");
  return {x.dtype, shape, x.device};
}

Inferred expand(const Node& x, const Dims& shape, const SourceLoc& loc) {
  bool ok = shape.size() == x.rank();
  for (int i = 0; ok && i < x.rank(); ++i) ok = x.shape[i] == shape[i] || x.shape[i] == 1;
  if (!ok)
    fail(ErrorKind::Shape, Op::Expand, "cannot expand " + describe(x) + " to " + to_string(shape), loc,
         "only dims of size 1 can be repeated; use unsqueeze() to make one");
  check_shape(Op::Expand, shape, loc);
  return {x.dtype, shape, x.device};
}

// out[i] = in[start + i * step] must stay inside for every i.
void check_range(Op op, const Node& x, const Attrs& a, const Dims& out, const SourceLoc& loc) {
  bool ok = a.d0.size() == x.rank() && a.d1.size() == x.rank() && out.size() == x.rank();
  for (int i = 0; ok && i < x.rank(); ++i) {
    if (out[i] == 0) continue;
    int64_t last = a.d0[i] + (out[i] - 1) * a.d1[i];
    ok = out[i] > 0 && a.d1[i] != 0 && a.d0[i] >= 0 && a.d0[i] < x.shape[i] && last >= 0 && last < x.shape[i];
  }
  if (!ok)
    fail(ErrorKind::Index, op,
         "start " + to_string(a.d0) + ", step " + to_string(a.d1) + ", sizes " + to_string(out) + " leave " +
             describe(x),
         loc);
}

Inferred slice(const Node& x, const Attrs& a, const SourceLoc& loc) {
  check_shape(Op::Slice, a.shape, loc);
  check_range(Op::Slice, x, a, a.shape, loc);
  return {x.dtype, a.shape, x.device};
}

Inferred slice_assign(Inputs in, const Attrs& a, const SourceLoc& loc) {
  check_device(Op::SliceAssign, in, loc);
  check_same_dtype(Op::SliceAssign, *in[0], *in[1], loc);
  check_range(Op::SliceAssign, *in[0], a, in[1]->shape, loc);
  return {in[0]->dtype, in[0]->shape, in[0]->device};
}

Inferred pad(const Node& x, const Attrs& a, const SourceLoc& loc) {
  bool ok = a.shape.size() == x.rank() && a.d0.size() == x.rank();
  for (int i = 0; ok && i < x.rank(); ++i) ok = a.d0[i] >= 0 && a.d0[i] + x.shape[i] <= a.shape[i];
  if (!ok)
    fail(ErrorKind::Shape, Op::Pad,
         "cannot pad " + describe(x) + " to " + to_string(a.shape) + " with " + to_string(a.d0) + " in front",
         loc);
  check_shape(Op::Pad, a.shape, loc);
  return {x.dtype, a.shape, x.device};
}

Inferred reduce(Op op, const Node& x, const Attrs& a, const SourceLoc& loc) {
  if (a.mask >> x.rank())
    fail(ErrorKind::Dim, op, "reduces a dim that " + describe(x) + " does not have", loc);
  if ((op == Op::Sum || op == Op::Prod) && x.dtype == DType::Bool)
    fail(ErrorKind::DType, op, "is not defined for bool: " + describe(x), loc, "convert with .to(int64)");
  Inferred r{op == Op::ArgMax || op == Op::ArgMin ? DType::Int64 : x.dtype, x.shape, x.device};
  int64_t n = 1;
  for (int i = 0; i < x.rank(); ++i)
    if (a.mask >> i & 1) {
      n *= x.shape[i];
      r.shape[i] = 1;
    }
  if (n == 0 && op != Op::Sum && op != Op::Prod)
    fail(ErrorKind::Shape, op, "has no answer over no elements: " + describe(x), loc,
         "check that the tensor is not empty, or reduce over other dims");
  return r;
}

// src and index (or result and index) have the same sizes but for the axis.
void check_indexed(Op op, const Dims& src, const Node& index, int64_t axis, const SourceLoc& loc) {
  if (index.dtype != DType::Int64 && index.dtype != DType::Int32)
    fail(ErrorKind::DType, op, "the index must be int64 or int32, not " + describe(index), loc,
         "convert with .to(int64)");
  bool ok = src.size() == index.rank() && axis >= 0 && axis < src.size();
  for (int i = 0; ok && i < src.size(); ++i) ok = i == axis || src[i] == index.shape[i];
  if (!ok)
    fail(ErrorKind::Shape, op,
         "index " + describe(index) + " does not fit shape " + to_string(src) + " along dim " +
             std::to_string(axis),
         loc, "index and data must agree in all other dims");
}

// The front end checked the operands before it chose the fused op.
Inferred attention(Inputs in, const SourceLoc& loc) {
  check_device(Op::Attention, in, loc);
  Dims out = in[0]->shape;
  out[3] = in[2]->shape[3];
  return {in[0]->dtype, out, in[0]->device};
}

// The same of an LSTM's steps.
Inferred lstm(Inputs in, const SourceLoc& loc) {
  check_device(Op::Lstm, in, loc);
  const Dims& z = in[0]->shape;
  return {in[0]->dtype, Dims{z[0], z[1], z[2] / 4}, in[0]->device};
}

Inferred picked(const Node& x, const Attrs& a, const SourceLoc& loc) {
  if (x.op == Op::Attention && a.i == 1)
    return {DType::Float32, Dims{x.shape[0], x.shape[1], x.shape[2]}, x.device};
  const auto like = [&](int k) { return a.i == 1 || a.i == 2 ? held_input(x, k) : NodeRef(); };
  if (x.op == Op::AttentionGrad)
    if (const NodeRef n = like(static_cast<int>(a.i))) return {n->dtype, n->shape, x.device};
  if (x.op == Op::Lstm)
    if (const NodeRef n = like(a.i == 1 ? 0 : 2))
      return a.i == 1 ? Inferred{x.dtype, n->shape, x.device} : Inferred{n->dtype, x.shape, x.device};
  if (x.op == Op::LstmGrad)
    if (const NodeRef n = like(2)) return {n->dtype, n->shape, x.device};
  fail(ErrorKind::Internal, Op::Pick, "has no such result", loc);
}

Inferred gather(Inputs in, const Attrs& a, const SourceLoc& loc) {
  check_device(Op::Gather, in, loc);
  check_indexed(Op::Gather, in[0]->shape, *in[1], a.i, loc);
  return {in[0]->dtype, in[1]->shape, in[0]->device};
}

Inferred scatter_add(Inputs in, const Attrs& a, const SourceLoc& loc) {
  check_device(Op::ScatterAdd, in, loc);
  check_indexed(Op::ScatterAdd, a.shape, *in[0], a.i, loc);
  check_shape(Op::ScatterAdd, a.shape, loc);
  if (!(in[0]->shape == in[1]->shape))
    fail(ErrorKind::Shape, Op::ScatterAdd, "index and value differ in shape: " + both(in), loc);
  if (in[1]->dtype == DType::Bool)
    fail(ErrorKind::DType, Op::ScatterAdd, "cannot add bool: " + describe(*in[1]), loc,
         "convert with .to(int64)");
  return {in[1]->dtype, a.shape, in[0]->device};
}

Inferred scatter(Inputs in, const Attrs& a, const SourceLoc& loc) {
  check_device(Op::Scatter, in, loc);
  check_same_dtype(Op::Scatter, *in[0], *in[2], loc);
  check_indexed(Op::Scatter, in[0]->shape, *in[1], a.i, loc);
  if (!(in[1]->shape == in[2]->shape))
    fail(ErrorKind::Shape, Op::Scatter, "index and value differ in shape: " + both(in.subspan(1)), loc);
  return {in[0]->dtype, in[0]->shape, in[0]->device};
}

Inferred scan(const Node& x, const Attrs& a, const SourceLoc& loc) {
  auto kind = static_cast<ScanKind>(a.mask);
  if (a.i < 0 || a.i >= x.rank())
    fail(ErrorKind::Dim, Op::Scan, "runs along a dim that " + describe(x) + " does not have", loc);
  if (kind == ScanKind::LogSum && !is_float(x.dtype))
    fail(ErrorKind::DType, Op::Scan, "needs a floating type, not " + describe(x), loc,
         "convert with .to(float32)");
  if (kind < ScanKind::ArgMax && x.dtype == DType::Bool)
    fail(ErrorKind::DType, Op::Scan, "is not defined for bool: " + describe(x), loc,
         "convert with .to(int64)");
  return {kind >= ScanKind::ArgMax ? DType::Int64 : x.dtype, x.shape, x.device};
}

Inferred sort(const Node& x, const Attrs& a, const SourceLoc& loc) {
  bool ok = a.i >= 0 && a.i < x.rank() && a.shape.size() == x.rank();
  for (int i = 0; ok && i < x.rank(); ++i)
    ok = i == a.i ? a.shape[i] >= 0 && a.shape[i] <= x.shape[i] : a.shape[i] == x.shape[i];
  if (!ok)
    fail(ErrorKind::Shape, Op::Sort, "cannot give places " + to_string(a.shape) + " of " + describe(x), loc);
  return {DType::Int64, a.shape, x.device};
}

Inferred matmul(Inputs in, const SourceLoc& loc) {
  const Node &a = *in[0], &b = *in[1];
  check_device(Op::Matmul, in, loc);
  check_same_dtype(Op::Matmul, a, b, loc);
  if (a.dtype == DType::Bool)
    fail(ErrorKind::DType, Op::Matmul, "is not defined for bool: " + both(in), loc,
         "convert with .to(float32)");
  int r = a.rank();
  bool ok = r >= 2 && b.rank() == r;
  for (int i = 0; ok && i < r - 2; ++i) ok = a.shape[i] == b.shape[i];
  if (!ok) fail(ErrorKind::Shape, Op::Matmul, "batch dims do not fit: " + both(in), loc);
  if (a.shape[r - 1] != b.shape[r - 2])
    fail(ErrorKind::Shape, Op::Matmul,
         "inner sizes differ: " + describe(a) + " ends in " + std::to_string(a.shape[r - 1]) + ", but " +
             describe(b) + " has " + std::to_string(b.shape[r - 2]) + " rows",
         loc, a.shape[r - 1] == b.shape[r - 1] ? "transpose the second: b.transpose(-1, -2)" : "");
  Inferred out{a.dtype, a.shape, a.device};
  out.shape[r - 1] = b.shape[r - 1];
  check_shape(Op::Matmul, out.shape, loc);
  return out;
}

// The front end checked that the operands are square and fit.
Inferred linalg(Inputs in, const Attrs& a, const SourceLoc& loc) {
  check_device(Op::Linalg, in, loc);
  LinalgKind kind = static_cast<LinalgKind>(a.i & 255);
  size_t want = kind == LinalgKind::Solve || kind == LinalgKind::Triangular ? 2 : 1;
  if (in.size() != want || in[0]->rank() < 2)
    fail(ErrorKind::Internal, Op::Linalg, "has wrong operands", loc);
  Dims out = in[want - 1]->shape;
  if (kind == LinalgKind::Slogdet) {
    out.resize(out.size() - 1);
    out[out.size() - 1] = 2;
  }
  return {in[0]->dtype, out, in[0]->device};
}

Inferred source(Op op, const Attrs& a, const SourceLoc& loc) {
  switch (op) {
    case Op::Const:
    case Op::Arg:
      return {a.dtype, {}, a.device};
    case Op::Iota:
      if (a.shape.size() != 1)
        fail(ErrorKind::Internal, op, "wants one size, not " + to_string(a.shape), loc);
      check_shape(op, a.shape, loc);
      return {DType::Int64, a.shape, a.device};
    case Op::Random:
      check_shape(op, a.shape, loc);
      return {DType::Int32, a.shape, a.device};
    default:
      check_shape(op, a.shape, loc);
      return {a.dtype, a.shape, a.device};
  }
}

Inferred uniform(const Node& x, const Attrs& a, const SourceLoc& loc) {
  if (x.dtype != DType::Int32 || (a.dtype != DType::Float32 && a.dtype != DType::Float64))
    fail(ErrorKind::DType, Op::Uniform, "makes float32 or float64 of int32 bits, not " + describe(x), loc);
  return {a.dtype, x.shape, x.device};
}

Inferred assign(Inputs in, const SourceLoc& loc) {
  // What a program gives was checked when it was written down.
  if (in[1]->op == Op::Program) return {in[0]->dtype, in[0]->shape, in[0]->device};
  check_device(Op::Assign, in, loc);
  check_same_dtype(Op::Assign, *in[0], *in[1], loc);
  if (!(in[0]->shape == in[1]->shape))
    fail(ErrorKind::Shape, Op::Assign, "old and new value differ: " + both(in), loc);
  return {in[0]->dtype, in[0]->shape, in[0]->device};
}

Inferred cat(Inputs in, const Attrs& a, const SourceLoc& loc) {
  check_device(Op::Cat, in, loc);
  const int axis = static_cast<int>(a.i);
  Dims shape = in[0]->shape;
  if (in.size() > kCatInputs || axis < 0 || axis >= shape.size())
    fail(ErrorKind::Internal, Op::Cat, "has too many parts or a wrong axis", loc);
  shape[axis] = 0;
  for (Node* n : in) {
    check_same_dtype(Op::Cat, *in[0], *n, loc);
    Dims other = n->shape;
    if (other.size() == shape.size()) other[axis] = shape[axis];
    if (!(other == shape))
      fail(ErrorKind::Shape, Op::Cat, "parts differ: " + describe(*in[0]) + " and " + describe(*n), loc);
    shape[axis] += n->shape[axis];
  }
  return {in[0]->dtype, shape, in[0]->device};
}

}  // namespace

bool broadcast_shapes(const Dims& a, const Dims& b, Dims& out) {
  const Dims &large = a.size() >= b.size() ? a : b, &small = a.size() >= b.size() ? b : a;
  Dims r = large;
  int shift = large.size() - small.size();
  for (int i = 0; i < small.size(); ++i) {
    int64_t x = large[i + shift], y = small[i];
    if (x == y || y == 1) continue;
    if (x != 1) return false;
    r[i + shift] = y;
  }
  out = r;
  return true;
}

Inferred infer(Op op, std::span<Node* const> in, const Attrs& a, const SourceLoc& loc) {
  const OpInfo& o = info(op);
  if (o.arity != 255 && in.size() != o.arity)
    fail(ErrorKind::Internal, op,
         "takes " + std::to_string(o.arity) + " operands, not " + std::to_string(in.size()), loc);
  if (op > Op::Matmul) return elementwise(op, in, loc);
  if (op <= Op::Random) return source(op, a, loc);
  const Node& x = *in[0];
  switch (op) {
    case Op::Reshape:
      return reshape(x, a.shape, loc);
    case Op::Permute:
      return permute(x, a.d0, loc);
    case Op::Expand:
      return expand(x, a.shape, loc);
    case Op::Slice:
      return slice(x, a, loc);
    case Op::Pad:
      return pad(x, a, loc);
    case Op::Cast:
      return {a.dtype, x.shape, x.device};
    case Op::Where:
      return where(in, loc);
    case Op::Uniform:
      return uniform(x, a, loc);
    case Op::Assign:
      return assign(in, loc);
    case Op::SliceAssign:
      return slice_assign(in, a, loc);
    case Op::ToDevice:
      return {x.dtype, x.shape, a.device};
    case Op::Gather:
      return gather(in, a, loc);
    case Op::ScatterAdd:
      return scatter_add(in, a, loc);
    case Op::Scatter:
      return scatter(in, a, loc);
    case Op::Scan:
      return scan(x, a, loc);
    case Op::Sort:
      return sort(x, a, loc);
    case Op::Cat:
      return cat(in, a, loc);
    case Op::Linalg:
      return linalg(in, a, loc);
    case Op::Matmul:
      return matmul(in, loc);
    case Op::Window:
      return infer_window(x, a, loc);
    case Op::Fold:
      return infer_fold(in, a, loc);
    case Op::Conv:
    case Op::ConvGradInput:
    case Op::ConvGradWeight:
      return infer_conv(op, in, a, loc);
    case Op::Attention:
      return attention(in, loc);
    case Op::Lstm:
      return lstm(in, loc);
    case Op::AttentionGrad:
    case Op::LstmGrad:
      return {x.dtype, x.shape, x.device};
    case Op::Program:
      return {x.dtype, {}, x.device};
    case Op::Pick:
      return picked(x, a, loc);
    default:
      break;
  }
  if (is_reduce(op)) return reduce(op, x, a, loc);
  return {x.dtype, x.shape, x.device};  // Alias, Fence
}

}  // namespace ingot
