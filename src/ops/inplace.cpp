// In place: nothing is overwritten. The cell is rebound to a node with the new value, which every
// copy of the handle then sees. A view's value is first pushed back through the movement ops it was
// taken by, down to its base: an element that the view does not show keeps the base's value. Old
// values stay reachable by whoever recorded them, so gradients never see a changed one. What is
// written without gradients leaves the history of the tensor as it was, as in PyTorch.
#include "ingot/inplace.h"

#include "graph/custom_backward.h"
#include "graph/leaf.h"
#include "graph/lift.h"
#include "graph/thread_state.h"
#include "ingot/autograd.h"
#include "ingot/capture.h"
#include "ops/common.h"
#include "ops/custom_function.h"

namespace ingot {
namespace {

// The movement ops from a view's base to the view, base first.
std::vector<NodeRef> chain(const ViewState& s) {
  if (s.via) return {s.via, s.node};
  return {s.node};
}

// Windows of the last dim that do not overlap: each is cut from the `step` elements it begins.
NodeRef push_windows_back(const Node* op, Node* parent, NodeRef value, const SourceLoc& loc) {
  const int last = parent->rank() - 1;
  const int64_t count = op->shape[last], size = parent->shape[last];
  const int64_t step = count == 1 ? op->shape.back() : op->attrs.as<WindowAttrs>().stride[0];
  const int64_t used = count * step;
  Dims shape = parent->shape, split = op->shape;
  shape[last] = used;
  split[last + 1] = step;
  NodeRef n(parent);
  if (used > size)  // the last window ends before its step does
    n = record(Op::Pad, {n}, {PadAttrs{Dims::filled(n->rank(), 0), 0}, shape}, loc);
  n = reshape_to(corner(n, shape, loc), split, loc);
  const SliceAttrs first{Dims::filled(split.size(), 0), Dims::filled(split.size(), 1)};
  n = record(Op::SliceAssign, {n, std::move(value)}, {first}, loc);
  n = reshape_to(n, shape, loc);
  if (used >= size) return corner(n, parent->shape, loc);
  const SliceAttrs front{Dims::filled(last + 1, 0), Dims::filled(last + 1, 1)};
  return record(Op::SliceAssign, {NodeRef(parent), std::move(n)}, {front}, loc);
}

bool overlap(const Node& windows) {
  const Dims& shape = windows.shape;
  const WindowAttrs& a = windows.attrs.as<WindowAttrs>();
  return a.stride.size() != 1 || (shape.back() > a.stride[0] && shape[shape.size() - 2] > 1);
}

// value: what op's result is to be. Returns what its input, now `parent`, becomes by that.
NodeRef push_back(const Node* op, Node* parent, NodeRef value, const char* name,
                  const SourceLoc& loc) {
  switch (op->op) {
    case Op::Reshape:
      return reshape_to(value.get(), parent->shape, loc);
    case Op::Alias:
      return value;
    case Op::Permute: {
      const Dims& order = op->attrs.as<PermuteAttrs>().order;
      Dims inverse = order;
      for (int i = 0; i < op->rank(); ++i) inverse[static_cast<int>(order[i])] = i;
      return record(Op::Permute, {value.get()}, {PermuteAttrs{inverse}}, loc);
    }
    case Op::Slice:
      return record(Op::SliceAssign, {parent, value.get()}, {op->attrs}, loc);
    case Op::Window:
      if (!overlap(*op)) return push_windows_back(op, parent, std::move(value), loc);
      [[fallthrough]];
    default:
      fail(ErrorKind::State, name,
           "several elements of the view " + describe(*op) +
               " are one element of its base: it cannot be written to",
           loc, "write to a copy: x = x.clone()");
  }
}

void check_leaf(Cell* c, const char* name, const SourceLoc& loc, bool view) {
  if (!c->meta || !c->meta->requires_grad || !grad_enabled()) return;
  fail(ErrorKind::Autograd, name,
       std::string(view ? "a view of a leaf" : "a leaf") +
           " that requires gradients is changed in place: " + describe(c->current()),
       loc, "wrap the update in { NoGrad guard; ... }, or write to x.detach()");
}

// The gradient of a value that was written without gradients: that of the value before.
struct KeptHistory final : CustomBackward {
  std::vector<std::pair<NodeRef, Tensor>> backward(const std::vector<Tensor>& grads) override {
    return {{inputs[0], grads[0]}};
  }
};

bool hooked(const Node& n) {
  const NodeExt* ext = n.ext.get();
  return ext && ext->hooked;
}

void keep_history(const NodeRef& old, Node& now) {
  NodeRef from = old;
  // Of many such writes only the last holds on to the value with the history.
  const auto earlier = std::dynamic_pointer_cast<KeptHistory>(custom_of(*old));
  if (earlier && !hooked(*old)) from = earlier->inputs[0];
  auto kept = std::make_shared<KeptHistory>();
  kept->name = "in-place";
  kept->inputs.push_back(std::move(from));
  add_output(kept, now);
}

// What the cell names after the write. A failed run must leave the old value of what the program
// holds on to; a value that was never computed needs no care.
NodeRef assigned(const Cell& c, const NodeRef& old, NodeRef value, bool tracked,
                 const SourceLoc& loc) {
  const ThreadScope<&ThreadState::grad> history(tracked);
  const bool keeps = !tracked && !c.meta && old->requires_grad;
  NodeRef n = std::move(value);
  if (old->computed.load(std::memory_order_acquire) || c.meta)
    n = record(Op::Assign, {old, std::move(n)}, kNoAttrs, loc);
  else if (keeps || (!tracked && n->requires_grad))
    n = record(Op::Alias, {std::move(n)}, kNoAttrs, loc);
  if (c.meta) become_leaf_of(c, *n);
  if (keeps) keep_history(old, *n);
  return n;
}

// Everything that can fail is recorded before the first cell is rebound. False: the cell no longer
// names `seen` (null: whatever it names), whose elements the value has around what is written.
bool write(Cell* c, const NodeRef* seen, NodeRef value, const char* name, const SourceLoc& loc,
           bool view, bool detached) {
  const ViewState s = c->view();
  if (seen && s.node != *seen) return false;
  if (!s.base) {
    if (!detached) check_leaf(c, name, loc, view);
    NodeRef n = assigned(*c, s.node, std::move(value), grad_enabled() && !detached, loc);
    if (seen) return c->rebind_if(s.node, n);
    c->rebind(std::move(n));
    return true;
  }
  std::vector<NodeRef> ops = chain(s);
  std::vector<NodeRef> parents{s.base_node};  // the base's value now, seen through the first i ops
  for (size_t i = 0; i + 1 < ops.size(); ++i)
    parents.push_back(record(ops[i]->op, {parents[i]}, spec_of(*ops[i]), loc));
  for (size_t i = ops.size(); i-- > 0;) {
    value = push_back(ops[i].get(), parents[i].get(), std::move(value), name, loc);
    detached = detached || ops[i]->op == Op::Alias;
  }
  return write(s.base, &s.base_node, std::move(value), name, loc, true, detached);
}

bool can_cast(DType from, DType to) {
  if (is_float(from)) return is_float(to);
  return to != DType::Bool || from == DType::Bool;
}

Tensor& arithmetic(Op op, Tensor& x, const Operand& v, const char* name, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  const DType dtype = x.dtype(loc);
  NodeRef r;
  {
    LocScope scope(loc);
    r = node_of(
        op == Op::Div ? div(x, v, loc) : tensor_of(binary_node(op, node_of(x, name, loc), v, loc)),
        name, loc);
  }
  if (!can_cast(r->dtype, dtype))
    fail(ErrorKind::DType, name,
         "the result is " + std::string(name_of(r->dtype)) + " and does not go into " + describe(x),
         loc,
         "compute a new tensor (x = x " +
             std::string(op == Op::Div   ? "/"
                         : op == Op::Mul ? "*"
                         : op == Op::Sub ? "-"
                                         : "+") +
             " v), or convert x first");
  write_through(x, std::move(r), name, loc);
  return x;
}

}  // namespace

void write_through(const Tensor& x, NodeRef value, const char* op, const SourceLoc& loc) {
  Cell* c = x.cell();
  {
    const NodeRef n = c->current();
    Dims both;
    if (!broadcast_shapes(n->shape, value->shape, both) || !(both == n->shape))
      fail(ErrorKind::Shape, op, describe(*value) + " does not fit into " + describe(*n), loc,
           "the value must broadcast to " + to_string(n->shape));
    value = cast_to(std::move(value), n->dtype, loc);
    value = move_to(std::move(value), n->device, loc);
    value = expand_to(std::move(value), n->shape, loc);
  }
  // A view's base may get another value meanwhile, which this one must not undo.
  while (!write(c, nullptr, value, op, loc, false, false)) {
  }
  value = NodeRef();
  c->current();  // the view shows what was written
  if (is_eager() && !is_capturing()) x.eval_(loc);
}

void write_result(const Tensor& x, const Tensor& value, const char* op, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, op, loc), v = node_of(value, op, loc);
  if (!can_cast(v->dtype, n->dtype))
    fail(ErrorKind::DType, op,
         "the result is " + std::string(name_of(v->dtype)) + " and does not go into " + describe(x),
         loc, "compute a new tensor, or convert x first");
  n = NodeRef();
  write_through(x, std::move(v), op, loc);
}

void set_data(const Tensor& x, const Tensor& value, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "set_data", loc), v = node_of(value, "set_data", loc);
  Cell& c = *x.cell();
  if (n->requires_grad && !c.meta)
    fail(ErrorKind::Autograd, "set_data", describe(x) + " is the result of an operation", loc,
         "only tensors without a history can be given other data; write to it with copy_()");
  if (c.meta && c.meta->requires_grad && !is_float(v->dtype))
    fail(ErrorKind::DType, "set_data",
         describe(value) + " cannot require gradients, as " + describe(x) + " does", loc,
         "convert it to a floating type");
  NoGrad guard;
  NodeRef own = record(Op::Alias, {std::move(v)}, kNoAttrs, loc);
  c.leave_base();
  rebind_leaf(c, std::move(own));
}

Tensor& Tensor::add_(const Operand& v, SourceLoc loc) {
  return arithmetic(Op::Add, *this, v, "add_", loc);
}
Tensor& Tensor::sub_(const Operand& v, SourceLoc loc) {
  return arithmetic(Op::Sub, *this, v, "sub_", loc);
}
Tensor& Tensor::mul_(const Operand& v, SourceLoc loc) {
  return arithmetic(Op::Mul, *this, v, "mul_", loc);
}
Tensor& Tensor::div_(const Operand& v, SourceLoc loc) {
  return arithmetic(Op::Div, *this, v, "div_", loc);
}

Tensor& Tensor::clamp_(const Scalar& lo, const Scalar& hi, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  write_through(*this, node_of(ingot::clamp(*this, lo, hi, loc), "clamp_", loc), "clamp_", loc);
  return *this;
}

namespace {

void copy_into(const Tensor& x, const Operand& v, const char* op, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  const auto as_constant = [&] {
    const NodeRef n = node_of(x, op, loc);
    return fitting(v.scalar, n->dtype, n->device, op, loc);
  };
  write_through(x, v.tensor ? node_of(*v.tensor, op, loc) : as_constant(), op, loc);
}

}  // namespace

Tensor& Tensor::copy_(const Operand& v, SourceLoc loc) {
  copy_into(*this, v, "copy_", loc);
  return *this;
}

Tensor& Tensor::fill_(const Scalar& v, SourceLoc loc) { return copy_(Operand(v, loc), loc); }
Tensor& Tensor::fill_(const Tensor& v, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  if (node_of(v, "fill_", loc)->rank() != 0)
    fail(ErrorKind::Shape, "fill_", "takes a number or a 0-d tensor, not " + describe(v), loc,
         "use copy_()");
  return copy_(Operand(v, loc), loc);
}
Tensor& Tensor::zero_(SourceLoc loc) { return copy_(Operand(0, loc), loc); }

void Tensor::operator=(const Operand& v) && { copy_into(*this, v, "assignment", v.loc); }

Tensor& Tensor::fill_diagonal_(const Scalar& value, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  if (node_of(*this, "fill_diagonal_", loc)->rank() != 2)
    fail(ErrorKind::Dim, "fill_diagonal_", "takes a matrix, not " + describe(*this), loc);
  ingot::diagonal(*this, 0, 0, 1, loc).fill_(value, loc);
  return *this;
}

// ---- Random numbers

namespace {

Options same(const Tensor& x, const char* op, const SourceLoc& loc) {
  NodeRef n = node_of(x, op, loc);
  return {n->dtype, n->device};
}

}  // namespace

Tensor& Tensor::uniform_(double from, double to, const Generator& g, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  write_result(*this, uniform(from, to, shape(loc), same(*this, "uniform_", loc), g, loc),
               "uniform_", loc);
  return *this;
}
Tensor& Tensor::normal_(double mean, double std, const Generator& g, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  write_result(*this, normal(mean, std, shape(loc), same(*this, "normal_", loc), g, loc), "normal_",
               loc);
  return *this;
}
Tensor& Tensor::bernoulli_(double p, const Generator& g, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  write_result(*this, bernoulli(shape(loc), p, same(*this, "bernoulli_", loc), g, loc),
               "bernoulli_", loc);
  return *this;
}
Tensor& Tensor::random_(int64_t from, int64_t to, const Generator& g, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  write_result(*this, randint(from, to, shape(loc), same(*this, "random_", loc), g, loc), "random_",
               loc);
  return *this;
}
Tensor& Tensor::exponential_(double lambd, const Generator& g, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  if (!(lambd > 0))
    fail(ErrorKind::Value, "exponential_", "lambd must be positive, not " + text_of(lambd), loc);
  Options o = same(*this, "exponential_", loc);
  // 1 - u is in (0, 1], so the logarithm is finite.
  Tensor u =
      rand(shape(), {*o.dtype == DType::Float64 ? DType::Float64 : DType::Float32, *o.device}, g);
  write_result(*this, ingot::log(1.0 - u) / -lambd, "exponential_", loc);
  return *this;
}

}  // namespace ingot
