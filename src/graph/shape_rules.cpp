#include "graph/shape_rules.h"

namespace ingot::shape_rules {

void fail(ErrorKind kind, Op op, std::string what, const SourceLoc& loc, std::string fix) {
  throw Error(kind, info(op).name, std::move(what), loc, std::move(fix));
}

namespace {

using Inputs = std::span<Node* const>;

std::string both(Inputs in) { return describe(*in[0]) + " and " + describe(*in[1]); }

}  // namespace

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
  if (over)
    fail(ErrorKind::Shape, op, "shape " + to_string(shape) + " has more than 2^60 elements", loc);
}

void check_device(const ShapeCall& c) {
  const Inputs in = c.in;
  for (size_t i = 1; i < in.size(); ++i)
    if (in[i]->device != in[0]->device) {
      // Suggest moving what is on the CPU: data usually follows the parameters.
      Node *stay = in[0], *go = in[i];
      if (go->device.type() != DeviceType::CPU && stay->device.type() == DeviceType::CPU)
        std::swap(stay, go);
      throw Error(
          ErrorKind::Device, name_of(c.op, c.spec.attrs),
          "operands are on different devices: " + describe(*in[0]) + " and " + describe(*in[i]),
          c.loc,
          "move one of them: the " + std::string(name_of(go->dtype)) + to_string(go->shape) +
              " with .to(\"" + stay->device.name() + "\")");
    }
}

void check_same_dtype(Op op, const Node& a, const Node& b, const SourceLoc& loc) {
  if (a.dtype != b.dtype)
    fail(ErrorKind::DType, op, "operands differ in type: " + describe(a) + " and " + describe(b),
         loc, "convert one of them: .to(" + std::string(name_of(promote(a.dtype, b.dtype))) + ")");
}

namespace {

[[noreturn]] void fail_broadcast(Op op, const Node& a, const Node& b, const SourceLoc& loc) {
  std::string where;
  int r = std::max(a.rank(), b.rank());
  for (int i = 1; i <= r; ++i) {
    int64_t x = i <= a.rank() ? a.shape[a.rank() - i] : 1,
            y = i <= b.rank() ? b.shape[b.rank() - i] : 1;
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
  fail(ErrorKind::Shape, op,
       "cannot broadcast " + describe(a) + " with " + describe(b) + ": " + where, loc, fix);
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

}  // namespace

Inferred elementwise(const ShapeCall& c) {
  const Op op = c.op;
  const Node& a = *c.in[0];
  Inferred r{info(op).rule == TypeRule::Bool ? DType::Bool : a.dtype, a.shape, a.device};
  check_rule(op, a, c.loc);
  if (c.in.size() == 1) return r;
  const Node& b = *c.in[1];
  if (a.device != b.device) check_device(c);
  if (a.dtype != b.dtype) check_same_dtype(op, a, b, c.loc);
  if (!(a.shape == b.shape)) {
    if (!broadcast_shapes(a.shape, b.shape, r.shape)) fail_broadcast(op, a, b, c.loc);
    check_shape(op, r.shape, c.loc);
  }
  return r;
}

// --- Sources, and what only passes on

Inferred source(const ShapeCall& c) {
  const OpSpec& s = c.spec;
  check_shape(c.op, s.shape, c.loc);
  switch (c.op) {
    case Op::Const:
    case Op::Arg:
      return {s.dtype, {}, s.device};
    case Op::Iota:
      if (s.shape.size() != 1)
        fail(ErrorKind::Internal, c.op, "expects one size, not " + to_string(s.shape), c.loc);
      return {DType::Int64, s.shape, s.device};
    case Op::Random:
      return {DType::Int32, s.shape, s.device};
    default:
      return {s.dtype, s.shape, s.device};
  }
}

Inferred same(const ShapeCall& c) { return {c.x().dtype, c.x().shape, c.x().device}; }

Inferred cast(const ShapeCall& c) { return {c.spec.dtype, c.x().shape, c.x().device}; }

Inferred to_device(const ShapeCall& c) { return {c.x().dtype, c.x().shape, c.spec.device}; }

Inferred call(const ShapeCall& c) { return {c.x().dtype, {}, c.x().device}; }

Inferred uniform(const ShapeCall& c) {
  const DType t = c.spec.dtype;
  if (c.x().dtype != DType::Int32 || (t != DType::Float32 && t != DType::Float64))
    fail(ErrorKind::DType, c.op, "makes float32 or float64 of int32 bits, not " + describe(c.x()),
         c.loc);
  return {t, c.x().shape, c.x().device};
}

Inferred assign(const ShapeCall& c) {
  const Inferred r{c.x().dtype, c.x().shape, c.x().device};
  if (c.in[1]->op == Op::Call) return r;  // checked when the function was recorded
  check_device(c);
  check_same_dtype(c.op, *c.in[0], *c.in[1], c.loc);
  if (!(c.in[0]->shape == c.in[1]->shape))
    fail(ErrorKind::Shape, c.op, "old and new value differ: " + both(c.in), c.loc);
  return r;
}

// The operand whose gradient is result number i.
static int wanted_operand(const CompositeAttrs& a, int i) {
  int k = 0;
  for (; k < 32; ++k)
    if (a.wanted >> k & 1 && i-- == 0) break;
  return k;
}

Inferred composite(const ShapeCall& c) {
  check_device(c);
  return {c.spec.dtype, c.spec.shape, c.x().device};
}

Inferred composite_grad(const ShapeCall& c) {
  const Node& of = *c.in[static_cast<size_t>(wanted_operand(c.attrs<CompositeAttrs>(), 0))];
  return {of.dtype, of.shape, of.device};
}

// Forward: what is kept for each unit, and c. Backward: the gradients of the first states.
static Inferred recurrent_result(const Node& x, int i) {
  const DType wide = is_half(x.dtype) ? DType::Float32 : x.dtype;
  if (!is_recurrent_grad(x.op)) {
    Dims shape = x.shape;
    if (i != 1) return {wide, shape, x.device};
    shape[2] *= kKeptPerUnit;
    return {x.dtype, shape, x.device};
  }
  const NodeRef top = held_input(x, 2);
  return {wide, top ? Dims{top->shape[1], top->shape[2]} : Dims{}, x.device};
}

Inferred result(const ShapeCall& c) {
  const Node& x = c.x();
  const int i = c.attrs<ResultAttrs>().index;
  if (i < 1 || i >= info(x.op).results)
    fail(ErrorKind::Internal, c.op, "has no such result", c.loc);
  if (x.op == Op::CompositeGrad) {
    const NodeRef of = held_input(x, wanted_operand(x.attrs.as<CompositeAttrs>(), i));
    if (of) return {of->dtype, of->shape, of->device};
  }
  if (is_recurrent(x.op))
    if (Inferred r = recurrent_result(x, i); r.shape.size() > 0) return r;
  if (x.op == Op::Attention)
    return {DType::Float32, Dims{x.shape[0], x.shape[1], x.shape[2]}, x.device};
  // Of the type and shape of an operand, which another thread that computes x may release.
  const NodeRef like = held_input(x, i);
  if (!like)
    fail(ErrorKind::Internal, c.op, "was computed before all its results were asked for", c.loc);
  return {like->dtype, like->shape, x.device};
}

Inferred where(const ShapeCall& c) {
  const Inputs in = c.in;
  check_device(c);
  if (in[0]->dtype != DType::Bool)
    fail(ErrorKind::DType, Op::Where, "the condition must be bool, not " + describe(*in[0]), c.loc,
         "compare it, as in condition != 0");
  check_same_dtype(Op::Where, *in[1], *in[2], c.loc);
  Inferred r{in[1]->dtype, {}, in[0]->device};
  Dims ab;
  if (!broadcast_shapes(in[1]->shape, in[2]->shape, ab))
    fail_broadcast(Op::Where, *in[1], *in[2], c.loc);
  if (!broadcast_shapes(in[0]->shape, ab, r.shape))
    fail_broadcast(Op::Where, *in[0], ab == in[1]->shape ? *in[1] : *in[2], c.loc);
  check_shape(Op::Where, r.shape, c.loc);
  return r;
}

// --- Movement

Inferred reshape(const ShapeCall& c) {
  const Node& x = c.x();
  check_shape(c.op, c.shape(), c.loc);
  if (c.shape().numel() != x.numel())
    fail(ErrorKind::Shape, c.op,
         describe(x) + " has " + std::to_string(x.numel()) + " elements, shape " +
             to_string(c.shape()) + " would have " + std::to_string(c.shape().numel()),
         c.loc, "let one size be worked out: -1");
  return {x.dtype, c.shape(), x.device};
}

Inferred permute(const ShapeCall& c) {
  const Node& x = c.x();
  const Dims& order = c.attrs<PermuteAttrs>().order;
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
    fail(ErrorKind::Dim, c.op,
         to_string(order) + " does not name each of the " + std::to_string(x.rank()) + " dims of " +
             describe(x) + " once",
         c.loc, "list every dim from 0 to " + std::to_string(x.rank() - 1) + " once");
  return {x.dtype, shape, x.device};
}

Inferred expand(const ShapeCall& c) {
  const Node& x = c.x();
  const Dims& shape = c.shape();
  bool ok = shape.size() == x.rank();
  for (int i = 0; ok && i < x.rank(); ++i) ok = x.shape[i] == shape[i] || x.shape[i] == 1;
  if (!ok)
    fail(ErrorKind::Shape, c.op, "cannot expand " + describe(x) + " to " + to_string(shape), c.loc,
         "only dims of size 1 can be repeated; use unsqueeze() to make one");
  check_shape(c.op, shape, c.loc);
  return {x.dtype, shape, x.device};
}

// in[start + i * step] must stay inside for every i of out.
static void check_region(const ShapeCall& c, const Dims& out) {
  const Node& x = c.x();
  const auto& [start, step] = c.attrs<SliceAttrs>();
  bool ok = start.size() == x.rank() && step.size() == x.rank() && out.size() == x.rank();
  for (int i = 0; ok && i < x.rank(); ++i) {
    if (out[i] == 0) continue;
    int64_t last = start[i] + (out[i] - 1) * step[i];
    ok = out[i] > 0 && step[i] != 0 && start[i] >= 0 && start[i] < x.shape[i] && last >= 0 &&
         last < x.shape[i];
  }
  if (!ok)
    fail(ErrorKind::Index, c.op,
         "start " + to_string(start) + ", step " + to_string(step) + ", sizes " + to_string(out) +
             " leave " + describe(x),
         c.loc);
}

Inferred slice(const ShapeCall& c) {
  check_shape(c.op, c.shape(), c.loc);
  check_region(c, c.shape());
  return {c.x().dtype, c.shape(), c.x().device};
}

Inferred slice_assign(const ShapeCall& c) {
  check_device(c);
  check_same_dtype(c.op, *c.in[0], *c.in[1], c.loc);
  check_region(c, c.in[1]->shape);
  return same(c);
}

Inferred pad(const ShapeCall& c) {
  const Node& x = c.x();
  const Dims &shape = c.shape(), &front = c.attrs<PadAttrs>().front;
  bool ok = shape.size() == x.rank() && front.size() == x.rank();
  for (int i = 0; ok && i < x.rank(); ++i) ok = front[i] >= 0 && front[i] + x.shape[i] <= shape[i];
  if (!ok)
    fail(ErrorKind::Shape, c.op,
         "cannot pad " + describe(x) + " to " + to_string(shape) + " with " + to_string(front) +
             " before",
         c.loc);
  check_shape(c.op, shape, c.loc);
  return {x.dtype, shape, x.device};
}

// --- Reductions, indices

Inferred reduce(const ShapeCall& c) {
  const Node& x = c.x();
  const Op op = c.op;
  const uint32_t axes = c.attrs<ReduceAttrs>().axes;
  if (axes >> x.rank())
    fail(ErrorKind::Dim, op, "reduces a dim that " + describe(x) + " does not have", c.loc);
  if ((op == Op::Sum || op == Op::Prod) && x.dtype == DType::Bool)
    fail(ErrorKind::DType, op, "is not defined for bool: " + describe(x), c.loc,
         "convert with .to(int64)");
  Inferred r{op == Op::ArgMax || op == Op::ArgMin ? DType::Int64 : x.dtype, x.shape, x.device};
  int64_t n = 1;
  for (int i = 0; i < x.rank(); ++i)
    if (axes >> i & 1) {
      n *= x.shape[i];
      r.shape[i] = 1;
    }
  if (n == 0 && op != Op::Sum && op != Op::Prod)
    fail(ErrorKind::Shape, op, "cannot reduce over zero elements: " + describe(x), c.loc,
         "check that the tensor is not empty, or reduce over other dims");
  return r;
}

// The source (or result) and the index have the same sizes but for the axis.
static void check_indexed(const ShapeCall& c, const Dims& src, const Node& index, int axis) {
  if (index.dtype != DType::Int64 && index.dtype != DType::Int32)
    fail(ErrorKind::DType, c.op, "the index must be int64 or int32, not " + describe(index), c.loc,
         "convert with .to(int64)");
  bool ok = src.size() == index.rank() && axis >= 0 && axis < src.size();
  for (int i = 0; ok && i < src.size(); ++i) ok = i == axis || src[i] == index.shape[i];
  if (!ok)
    fail(ErrorKind::Shape, c.op,
         "index " + describe(index) + " does not fit shape " + to_string(src) + " along dim " +
             std::to_string(axis),
         c.loc, "index and data must agree in all other dims");
}

Inferred gather(const ShapeCall& c) {
  check_device(c);
  check_indexed(c, c.x().shape, *c.in[1], c.attrs<IndexAttrs>().axis);
  return {c.x().dtype, c.in[1]->shape, c.x().device};
}

Inferred scatter_add(const ShapeCall& c) {
  const Inputs in = c.in;
  check_device(c);
  check_indexed(c, c.shape(), *in[0], c.attrs<IndexAttrs>().axis);
  check_shape(c.op, c.shape(), c.loc);
  if (!(in[0]->shape == in[1]->shape))
    fail(ErrorKind::Shape, c.op, "index and value differ in shape: " + both(in), c.loc);
  if (in[1]->dtype == DType::Bool)
    fail(ErrorKind::DType, c.op, "cannot add bool: " + describe(*in[1]), c.loc,
         "convert with .to(int64)");
  return {in[1]->dtype, c.shape(), in[0]->device};
}

Inferred scatter(const ShapeCall& c) {
  const Inputs in = c.in;
  check_device(c);
  check_same_dtype(c.op, *in[0], *in[2], c.loc);
  check_indexed(c, in[0]->shape, *in[1], c.attrs<ScatterAttrs>().axis);
  if (!(in[1]->shape == in[2]->shape))
    fail(ErrorKind::Shape, c.op, "index and value differ in shape: " + both(in.subspan(1)), c.loc);
  return same(c);
}

Inferred scan(const ShapeCall& c) {
  const Node& x = c.x();
  const ScanAttrs& a = c.attrs<ScanAttrs>();
  if (a.axis < 0 || a.axis >= x.rank())
    fail(ErrorKind::Dim, c.op, "runs along a dim that " + describe(x) + " does not have", c.loc);
  if (a.kind == ScanKind::LogSum && !is_float(x.dtype))
    fail(ErrorKind::DType, c.op, "needs a floating type, not " + describe(x), c.loc,
         "convert with .to(float32)");
  if (a.kind < ScanKind::ArgMax && x.dtype == DType::Bool)
    fail(ErrorKind::DType, c.op, "is not defined for bool: " + describe(x), c.loc,
         "convert with .to(int64)");
  return {a.kind >= ScanKind::ArgMax ? DType::Int64 : x.dtype, x.shape, x.device};
}

Inferred sort(const ShapeCall& c) {
  const Node& x = c.x();
  const Dims& shape = c.shape();
  const int axis = c.attrs<SortAttrs>().axis;
  bool ok = axis >= 0 && axis < x.rank() && shape.size() == x.rank();
  for (int i = 0; ok && i < x.rank(); ++i)
    ok = i == axis ? shape[i] >= 0 && shape[i] <= x.shape[i] : shape[i] == x.shape[i];
  if (!ok)
    fail(ErrorKind::Shape, c.op, "cannot give positions " + to_string(shape) + " of " + describe(x),
         c.loc);
  return {DType::Int64, shape, x.device};
}

Inferred cat(const ShapeCall& c) {
  const Inputs in = c.in;
  check_device(c);
  const int axis = c.attrs<CatAttrs>().axis;
  Dims shape = in[0]->shape;
  if (in.size() > kCatInputs || axis < 0 || axis >= shape.size())
    fail(ErrorKind::Internal, c.op, "has too many parts or a wrong axis", c.loc);
  shape[axis] = 0;
  for (Node* n : in) {
    check_same_dtype(c.op, *in[0], *n, c.loc);
    Dims other = n->shape;
    if (other.size() == shape.size()) other[axis] = shape[axis];
    if (!(other == shape))
      fail(ErrorKind::Shape, c.op, "parts differ: " + describe(*in[0]) + " and " + describe(*n),
           c.loc);
    shape[axis] += n->shape[axis];
  }
  return {in[0]->dtype, shape, in[0]->device};
}

// --- Products, and calls whose operands the front end has checked

Inferred matmul(const ShapeCall& c) {
  const Node &a = *c.in[0], &b = *c.in[1];
  check_device(c);
  check_same_dtype(c.op, a, b, c.loc);
  if (a.dtype == DType::Bool)
    fail(ErrorKind::DType, c.op, "is not defined for bool: " + both(c.in), c.loc,
         "convert with .to(float32)");
  int r = a.rank();
  bool ok = r >= 2 && b.rank() == r;
  for (int i = 0; ok && i < r - 2; ++i) ok = a.shape[i] == b.shape[i];
  if (!ok) fail(ErrorKind::Shape, c.op, "batch dims do not fit: " + both(c.in), c.loc);
  if (a.shape[r - 1] != b.shape[r - 2])
    fail(ErrorKind::Shape, c.op,
         "inner sizes differ: " + describe(a) + " ends in " + std::to_string(a.shape[r - 1]) +
             ", but " + describe(b) + " has " + std::to_string(b.shape[r - 2]) + " rows",
         c.loc,
         a.shape[r - 1] == b.shape[r - 1] ? "transpose the second: b.transpose(-1, -2)" : "");
  Inferred out{a.dtype, a.shape, a.device};
  out.shape[r - 1] = b.shape[r - 1];
  check_shape(c.op, out.shape, c.loc);
  return out;
}

Inferred attention(const ShapeCall& c) {
  check_device(c);
  Dims out = c.x().shape;
  out[3] = c.in[2]->shape[3];
  return {c.x().dtype, out, c.x().device};
}

// Operands begin with z and the weight.
Inferred recurrent(const ShapeCall& c) {
  check_device(c);
  const Dims& z = c.x().shape;
  return {c.x().dtype, Dims{z[0], z[1], c.in[1]->shape[1]}, c.x().device};
}

Inferred linalg(const ShapeCall& c) {
  check_device(c);
  const LinalgKind kind = c.attrs<LinalgAttrs>().kind;
  const size_t want = kind == LinalgKind::Solve || kind == LinalgKind::Triangular ? 2 : 1;
  if (c.in.size() != want || c.x().rank() < 2)
    fail(ErrorKind::Internal, c.op, "has wrong operands", c.loc);
  Dims out = c.in[want - 1]->shape;
  if (kind == LinalgKind::Slogdet) {
    out.resize(out.size() - 1);
    out[out.size() - 1] = 2;
  }
  return {c.x().dtype, out, c.x().device};
}

}  // namespace ingot::shape_rules

namespace ingot {

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

namespace {

struct Row {
  Inferred (*shape)(const ShapeCall&);
  bool (*has_attrs)(const Attributes&);
};
constexpr Row rows[] = {
#define INGOT_OP(E, name, arity, results, kind, attrs, shape, ...) \
  {shape_rules::shape, [](const Attributes& a) { return a.is<attrs>(); }},
#include "graph/ops.def"
#undef INGOT_OP
};

}  // namespace

Inferred infer(Op op, std::span<Node* const> in, const OpSpec& spec, const SourceLoc& loc) {
  const OpInfo& o = info(op);
  const ShapeCall call{op, in, spec, loc};
  if (o.arity != OpInfo::any && in.size() != o.arity)
    shape_rules::fail(
        ErrorKind::Internal, op,
        "takes " + std::to_string(o.arity) + " operands, not " + std::to_string(in.size()), loc);
  if (o.in_table) return shape_rules::elementwise(call);
  const Row& row = rows[static_cast<size_t>(op)];
  // Assign has a result's number beside a call of a recorded function.
  if (!row.has_attrs(spec.attrs) && op != Op::Assign)
    shape_rules::fail(ErrorKind::Internal, op, "was given the attributes of another op", loc);
  return row.shape(call);
}

}  // namespace ingot
