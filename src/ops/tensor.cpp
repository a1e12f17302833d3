// Tensor's own: what it is, and how its value gets to the host. methods.cpp has the methods that
// are functions of ops.h.
#include "ingot/tensor.h"

#include "base/convert.h"
#include "base/host_wait.h"
#include "graph/leaf.h"
#include "graph/sync.h"
#include "ingot/capture.h"
#include "ingot/runtime.h"
#include "ops/common.h"
#include "runtime/storage.h"

namespace ingot {

Dims Tensor::shape(SourceLoc loc) const { return node_of(*this, "shape", loc)->shape; }
int64_t Tensor::size(int64_t dim, SourceLoc where) const {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(*this, "size", loc);
  return n->shape[wrap_dim_of(dim, n->rank(), n, "size", loc)];
}
DType Tensor::dtype(SourceLoc loc) const { return node_of(*this, "dtype", loc)->dtype; }
Device Tensor::device(SourceLoc loc) const { return node_of(*this, "device", loc)->device; }

bool Tensor::requires_grad(SourceLoc loc) const {
  return node_of(*this, "requires_grad", loc)->requires_grad;
}

bool Tensor::is_leaf(SourceLoc loc) const {
  NodeRef n = node_of(*this, "is_leaf", loc);
  return n->leaf || !n->requires_grad;
}

std::string Tensor::name(SourceLoc loc) const {
  NodeRef n = node_of(*this, "name", loc);
  return ingot::name_of(*n, cell_->meta.get());
}
Tensor& Tensor::set_name(std::string name, SourceLoc loc) {
  NodeRef n = node_of(*this, "set_name", loc);
  const auto exchange = [](std::string& old, std::string& now, const void* of) {
    std::lock_guard lock(side_mutex(of));
    old.swap(now);
  };
  std::string copy = name;
  if (LeafMeta* meta = cell_->meta.get()) exchange(meta->name, copy, meta);
  exchange(n->extra().name, name, n->ext.get());
  return *this;
}

// ---- Running and reading

const Tensor& Tensor::eval_(SourceLoc where) const {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(*this, "eval", loc);
  if (n->computed.load(std::memory_order_acquire)) return *this;
  HostWait wait;
  Node* one = n;
  materialise({&one, 1}, loc);
  return *this;
}

void eval(const std::vector<Tensor>& tensors, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  std::vector<NodeRef> nodes;
  for (const Tensor& x : tensors) nodes.push_back(node_of(x, "eval", loc));
  HostWait wait;
  materialise(pointers(nodes), loc);
}

void synchronize(SourceLoc where) {
  HostWait wait;
  materialise({}, user_loc(where));
  for (const Device& d : Device::all()) {
    d.synchronize();
    check_runs(d, true);
    synchronised(d);
  }
}

// The value of the node that the tensor named when it was asked: other threads may write to the
// tensor.
static void read_value(Node* n, void* dst, const SourceLoc& loc) {
  const bool computed = n->computed.load(std::memory_order_acquire);
  if (n->bytes() == 0) return;
  if (!dst) fail(ErrorKind::Value, "copy_to", "the destination is null", loc);
  if (is_capturing())
    fail(ErrorKind::State, "copy_to",
         "a captured function reads the value of " + describe(*n) +
             ": a repetition would not see it",
         loc, "return the tensor and read it outside");
  HostWait wait;
  if (!computed) materialise({&n, 1}, loc);
  copy_to_host(dst, *n->storage, n->bytes());
  check_runs(n->device, true);
  synchronised(n->device);
}

static void read_value_as(Node* n, void* dst, DType as, const SourceLoc& loc) {
  if (n->dtype == as || n->bytes() == 0) return read_value(n, dst, loc);
  if (!dst) fail(ErrorKind::Value, "copy_to", "the destination is null", loc);
  std::vector<char> own(n->bytes());
  read_value(n, own.data(), loc);
  convert_elements(dst, as, own.data(), n->dtype, own.size() / size_of(n->dtype));
}

Tensor Tensor::snapshot(SourceLoc loc) const { return tensor_of(node_of(*this, "snapshot", loc)); }

void Tensor::copy_to(void* dst, SourceLoc where) const {
  SourceLoc loc = user_loc(where);
  NodeRef n(node_of(*this, "copy_to", loc));
  read_value(n.get(), dst, loc);
}
// Converted here rather than by a cast: reading a value must not cost a plan.
void Tensor::copy_to(void* dst, DType as, SourceLoc where) const {
  SourceLoc loc = user_loc(where);
  NodeRef n(node_of(*this, "copy_to", loc));
  read_value_as(n.get(), dst, as, loc);
}

Scalar Tensor::scalar_value(SourceLoc where) const {
  SourceLoc loc = user_loc(where);
  NodeRef n(node_of(*this, "item", loc));
  if (n->numel() != 1)
    fail(ErrorKind::Shape, "item", "needs a tensor of one element, not " + describe(*this), loc,
         n->numel() ? "take one with x[i], or all with x.to_vector<T>()" : "");
  if (is_float(n->dtype)) {
    if (n->op == Op::Const) return n->attrs.as<ConstAttrs>().f;
    if (n->op == Op::Arg) return n->attrs.as<ArgAttrs>().value;
    double v = 0;
    read_value_as(n.get(), &v, DType::Float64, loc);
    return v;
  }
  int64_t v = 0;
  if (n->op == Op::Const)
    v = n->attrs.as<ConstAttrs>().i;
  else
    read_value_as(n.get(), &v, DType::Int64, loc);
  return n->dtype == DType::Bool ? Scalar(v != 0) : Scalar(v);
}

// ---- Type, device and copies

Tensor Tensor::to(DType dtype, SourceLoc loc) const { return cast(*this, dtype, loc); }
Tensor Tensor::to(const Device& device, SourceLoc where) const {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(*this, "to", loc);
  return n->device == device ? *this : tensor_of(move_to(n, device, loc));
}
Tensor Tensor::cpu(SourceLoc loc) const { return to(Device(DeviceType::CPU, 0), loc); }
Tensor Tensor::clone(SourceLoc where) const {
  SourceLoc loc = user_loc(where);
  return tensor_of(record1(Op::Alias, node_of(*this, "clone", loc), loc));
}
Tensor Tensor::detach(SourceLoc where) const {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(*this, "detach", loc);
  bool on = grad_enabled();
  set_grad_enabled(false);
  NodeRef same = record1(Op::Alias, n, loc);
  set_grad_enabled(on);
  return view_of(*this, std::move(n), std::move(same));
}

// ---- New tensors

namespace {

Options like(const Tensor& x, const Options& o, const SourceLoc& loc) {
  return {dtype_or(o, x.dtype(loc)), o.device ? *o.device : x.device(loc)};
}

}  // namespace

Tensor Tensor::new_zeros(const Dims& shape, const Options& o, SourceLoc loc) const {
  return zeros(shape, like(*this, o, loc), loc);
}
Tensor Tensor::new_ones(const Dims& shape, const Options& o, SourceLoc loc) const {
  return ones(shape, like(*this, o, loc), loc);
}
Tensor Tensor::new_full(const Dims& shape, const Scalar& value, const Options& o,
                        SourceLoc loc) const {
  return full(shape, value, like(*this, o, loc), loc);
}
Tensor Tensor::where(const Tensor& condition, const Operand& other, SourceLoc loc) const {
  return ingot::where(condition, *this, other, loc);
}

}  // namespace ingot
