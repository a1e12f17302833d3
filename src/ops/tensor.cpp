// Tensor's own: what it is, how its value gets to the host, and its methods, each the function of
// ops.h of that name.
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

// ---- Methods

Tensor Tensor::reshape(const Dims& shape, SourceLoc loc) const {
  return ingot::reshape(*this, shape, loc);
}
Tensor Tensor::flatten(int64_t start, int64_t end, SourceLoc loc) const {
  return ingot::flatten(*this, start, end, loc);
}
Tensor Tensor::squeeze(SourceLoc loc) const { return ingot::squeeze(*this, loc); }
Tensor Tensor::squeeze(int64_t dim, SourceLoc loc) const { return ingot::squeeze(*this, dim, loc); }
Tensor Tensor::unsqueeze(int64_t dim, SourceLoc loc) const {
  return ingot::unsqueeze(*this, dim, loc);
}
Tensor Tensor::permute(const Dims& dims, SourceLoc loc) const {
  return ingot::permute(*this, dims, loc);
}
Tensor Tensor::transpose(int64_t a, int64_t b, SourceLoc loc) const {
  return ingot::transpose(*this, a, b, loc);
}
Tensor Tensor::t(SourceLoc loc) const { return ingot::t(*this, loc); }
Tensor Tensor::expand(const Dims& shape, SourceLoc loc) const {
  return ingot::expand(*this, shape, loc);
}
Tensor Tensor::narrow(int64_t dim, int64_t start, int64_t length, SourceLoc loc) const {
  return ingot::narrow(*this, dim, start, length, loc);
}
Tensor Tensor::select(int64_t dim, int64_t index, SourceLoc loc) const {
  return ingot::select(*this, dim, index, loc);
}
Tensor Tensor::slice(int64_t dim, const Slice& range, SourceLoc loc) const {
  return ingot::slice(*this, dim, range, loc);
}
Tensor Tensor::flip(const Axes& dims, SourceLoc loc) const { return ingot::flip(*this, dims, loc); }
Tensor Tensor::repeat(const Dims& times, SourceLoc loc) const {
  return ingot::repeat(*this, times, loc);
}
std::vector<Tensor> Tensor::split(int64_t size, int64_t dim, SourceLoc loc) const {
  return ingot::split(*this, size, dim, loc);
}
std::vector<Tensor> Tensor::chunk(int64_t chunks, int64_t dim, SourceLoc loc) const {
  return ingot::chunk(*this, chunks, dim, loc);
}
Tensor Tensor::tril(int64_t diagonal, SourceLoc loc) const {
  return ingot::tril(*this, diagonal, loc);
}
Tensor Tensor::triu(int64_t diagonal, SourceLoc loc) const {
  return ingot::triu(*this, diagonal, loc);
}

#define INGOT_METHOD(name) \
  Tensor Tensor::name(SourceLoc loc) const { return ingot::name(*this, loc); }
INGOT_METHOD(neg)
INGOT_METHOD(abs)
INGOT_METHOD(sign)
INGOT_METHOD(exp)
INGOT_METHOD(exp2)
INGOT_METHOD(expm1)
INGOT_METHOD(log)
INGOT_METHOD(log2)
INGOT_METHOD(log10)
INGOT_METHOD(log1p)
INGOT_METHOD(sqrt)
INGOT_METHOD(rsqrt)
INGOT_METHOD(reciprocal)
INGOT_METHOD(square)
INGOT_METHOD(sin)
INGOT_METHOD(cos)
INGOT_METHOD(tan)
INGOT_METHOD(tanh)
INGOT_METHOD(erf)
INGOT_METHOD(sigmoid)
INGOT_METHOD(relu)
INGOT_METHOD(floor)
INGOT_METHOD(ceil)
INGOT_METHOD(round)
INGOT_METHOD(trunc)
INGOT_METHOD(isnan)
INGOT_METHOD(isinf)
INGOT_METHOD(isfinite)
INGOT_METHOD(logical_not)
INGOT_METHOD(max)
INGOT_METHOD(min)
INGOT_METHOD(norm)
#undef INGOT_METHOD

#define INGOT_METHOD(name) \
  Tensor Tensor::name(const Operand& b, SourceLoc loc) const { return ingot::name(*this, b, loc); }
INGOT_METHOD(add)
INGOT_METHOD(sub)
INGOT_METHOD(mul)
INGOT_METHOD(div)
INGOT_METHOD(pow)
INGOT_METHOD(maximum)
INGOT_METHOD(minimum)
INGOT_METHOD(eq)
INGOT_METHOD(ne)
INGOT_METHOD(lt)
INGOT_METHOD(le)
INGOT_METHOD(gt)
INGOT_METHOD(ge)
INGOT_METHOD(logical_and)
INGOT_METHOD(logical_or)
INGOT_METHOD(logical_xor)
#undef INGOT_METHOD

Tensor Tensor::clamp(const Scalar& lo, const Scalar& hi, SourceLoc loc) const {
  return ingot::clamp(*this, lo, hi, loc);
}
Tensor Tensor::clamp_min(const Scalar& lo, SourceLoc loc) const {
  return ingot::clamp_min(*this, lo, loc);
}
Tensor Tensor::clamp_max(const Scalar& hi, SourceLoc loc) const {
  return ingot::clamp_max(*this, hi, loc);
}
Tensor Tensor::masked_fill(const Tensor& mask, const Operand& value, SourceLoc loc) const {
  return ingot::masked_fill(*this, mask, value, loc);
}

#define INGOT_METHOD(name)                                                  \
  Tensor Tensor::name(const Axes& dim, bool keepdim, SourceLoc loc) const { \
    return ingot::name(*this, dim, keepdim, loc);                           \
  }
INGOT_METHOD(sum)
INGOT_METHOD(mean)
INGOT_METHOD(prod)
INGOT_METHOD(amax)
INGOT_METHOD(amin)
INGOT_METHOD(any)
INGOT_METHOD(all)
INGOT_METHOD(logsumexp)
#undef INGOT_METHOD
Tensor Tensor::var(const Axes& dim, double correction, bool keepdim, SourceLoc loc) const {
  return ingot::var(*this, dim, correction, keepdim, loc);
}
Tensor Tensor::std(const Axes& dim, double correction, bool keepdim, SourceLoc loc) const {
  return ingot::std(*this, dim, correction, keepdim, loc);
}
ValuesIndices Tensor::max(int64_t dim, bool keepdim, SourceLoc loc) const {
  return ingot::max(*this, dim, keepdim, loc);
}
ValuesIndices Tensor::min(int64_t dim, bool keepdim, SourceLoc loc) const {
  return ingot::min(*this, dim, keepdim, loc);
}
Tensor Tensor::argmax(::std::optional<int64_t> dim, bool keepdim, SourceLoc loc) const {
  return ingot::argmax(*this, dim, keepdim, loc);
}
Tensor Tensor::argmin(::std::optional<int64_t> dim, bool keepdim, SourceLoc loc) const {
  return ingot::argmin(*this, dim, keepdim, loc);
}

Tensor Tensor::matmul(const Tensor& other, SourceLoc loc) const {
  return ingot::matmul(*this, other, loc);
}
Tensor Tensor::gather(int64_t dim, const Tensor& index, SourceLoc loc) const {
  return ingot::gather(*this, dim, index, loc);
}
Tensor Tensor::index_select(int64_t dim, const Tensor& index, SourceLoc loc) const {
  return ingot::index_select(*this, dim, index, loc);
}
Tensor Tensor::softmax(int64_t dim, SourceLoc loc) const { return ingot::softmax(*this, dim, loc); }
Tensor Tensor::log_softmax(int64_t dim, SourceLoc loc) const {
  return ingot::log_softmax(*this, dim, loc);
}

}  // namespace ingot
