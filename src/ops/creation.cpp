// New tensors. Constants stay symbolic (a number, expanded); host data is copied to the device at
// once.
#include <cmath>
#include <functional>

#include "ops/common.h"
#include "runtime/storage.h"

namespace ingot {
namespace {

Tensor filled(const Dims& shape, const Scalar& value, DType dtype, Device device, const char* op,
              const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  check_new_shape(shape, op, loc);
  NodeRef c = fitting(value, dtype, device, op, loc);
  return tensor_of(expand_to(c.get(), shape, loc));
}

Tensor filled_like(const Tensor& x, const Scalar& value, const Options& o, const char* op,
                   const SourceLoc& loc) {
  NodeRef n = node_of(x, op, user_loc(loc));
  return filled(n->shape, value, dtype_or(o, n->dtype), o.device ? *o.device : n->device, op, loc);
}

}  // namespace

Tensor empty(const Dims& shape, const Options& o, SourceLoc loc) {
  return filled(shape, 0, dtype_or(o, DType::Float32), device_or_default(o), "empty", loc);
}
Tensor zeros(const Dims& shape, const Options& o, SourceLoc loc) {
  return filled(shape, 0, dtype_or(o, DType::Float32), device_or_default(o), "zeros", loc);
}
Tensor ones(const Dims& shape, const Options& o, SourceLoc loc) {
  return filled(shape, 1, dtype_or(o, DType::Float32), device_or_default(o), "ones", loc);
}
Tensor full(const Dims& shape, const Scalar& value, const Options& o, SourceLoc loc) {
  return filled(shape, value, dtype_or(o, default_dtype(value)), device_or_default(o), "full", loc);
}
Tensor empty_like(const Tensor& x, const Options& o, SourceLoc loc) {
  return filled_like(x, 0, o, "empty_like", loc);
}
Tensor zeros_like(const Tensor& x, const Options& o, SourceLoc loc) {
  return filled_like(x, 0, o, "zeros_like", loc);
}
Tensor ones_like(const Tensor& x, const Options& o, SourceLoc loc) {
  return filled_like(x, 1, o, "ones_like", loc);
}
Tensor full_like(const Tensor& x, const Scalar& value, const Options& o, SourceLoc loc) {
  return filled_like(x, value, o, "full_like", loc);
}

Tensor scalar(const Scalar& value, const Options& o, SourceLoc loc) {
  return tensor_of(
      constant(value, dtype_or(o, default_dtype(value)), device_or_default(o), user_loc(loc)));
}

Tensor argument(double value, const Options& o, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  const DType t = dtype_or(o, DType::Float32);
  if (t != DType::Float32 && t != DType::Float64)
    fail(ErrorKind::DType, "argument", "is float32 or float64, not " + std::string(name_of(t)),
         loc);
  return tensor_of(record_argument(value, t, device_or_default(o), loc));
}

// ---- Sequences

Tensor arange(const Scalar& start, const Scalar& stop, const Scalar& step, const Options& o,
              SourceLoc where) {
  SourceLoc loc = user_loc(where);
  bool floating = start.kind == Scalar::Kind::Float || stop.kind == Scalar::Kind::Float ||
                  step.kind == Scalar::Kind::Float;
  double a = start.f, b = stop.f, s = step.f;
  if (s == 0 || !std::isfinite(a) || !std::isfinite(b) || !std::isfinite(s))
    fail(ErrorKind::Value, "arange",
         s == 0 ? "the step is 0" : "start, stop and step must be finite", loc);
  if ((b - a) * s < 0)
    fail(ErrorKind::Value, "arange",
         "a step of " + text_of(s) + " does not lead from " + text_of(a) + " to " + text_of(b), loc,
         "change the sign of the step");
  if ((b - a) / s > 0x1p60)
    fail(ErrorKind::Shape, "arange",
         "from " + text_of(a) + " to " + text_of(b) + " in steps of " + text_of(s) +
             " there are more than 2^60 elements",
         loc);
  int64_t n = floating ? static_cast<int64_t>(std::ceil((b - a) / s))
                       : (stop.i - start.i + step.i - (step.i > 0 ? 1 : -1)) / step.i;
  DType t = dtype_or(o, floating ? DType::Float32 : DType::Int64);
  Device d = device_or_default(o);
  NodeRef x = iota_along(n, 0, 1, d, loc);
  // Computed in the widest type and rounded once.
  DType wide = floating ? DType::Float64 : DType::Int64;
  x = cast_to(x.get(), wide, loc);
  if (s != 1) x = record2(Op::Mul, x.get(), constant(step, wide, d, loc).get(), loc);
  if (a != 0) x = record2(Op::Add, x.get(), constant(start, wide, d, loc).get(), loc);
  return tensor_of(cast_to(x.get(), t, loc));
}
Tensor arange(const Scalar& start, const Scalar& stop, const Options& o, SourceLoc loc) {
  return arange(start, stop, 1, o, loc);
}
Tensor arange(const Scalar& stop, const Options& o, SourceLoc loc) {
  return arange(0, stop, 1, o, loc);
}

Tensor linspace(double start, double stop, int64_t steps, const Options& o, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  if (steps < 0)
    fail(ErrorKind::Value, "linspace",
         "the number of steps cannot be negative: " + std::to_string(steps), loc);
  DType t = dtype_or(o, DType::Float32);
  Device d = device_or_default(o);
  double width = steps > 1 ? (stop - start) / static_cast<double>(steps - 1) : 0;
  // Counted from both ends, so that both are met exactly.
  Tensor i = arange(steps, d), f = i.to(DType::Float64);
  Tensor up = f * width + start, down = stop - (static_cast<double>(steps - 1) - f) * width;
  return (steps > 1 ? where(i < steps / 2, up, down) : up).to(t);
}

Tensor eye(int64_t n, std::optional<int64_t> m, const Options& o, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  check_new_shape({n, m.value_or(n)}, "eye", loc);
  Device d = device_or_default(o);
  NodeRef row = iota_along(n, 0, 2, d, loc), col = iota_along(m.value_or(n), 1, 2, d, loc);
  NodeRef same = record2(Op::Eq, row.get(), col.get(), loc);
  return tensor_of(cast_to(same.get(), dtype_or(o, DType::Float32), loc));
}

// ---- Host data

namespace {

size_t bytes_of(const Dims& shape, DType dtype, const char* op, const SourceLoc& loc) {
  check_new_shape(shape, op, loc);
  return static_cast<size_t>(shape.numel()) * size_of(dtype);
}

}  // namespace

Tensor from_data(const void* data, DType dtype, const Dims& shape, const Options& o,
                 SourceLoc where) {
  SourceLoc loc = user_loc(where);
  size_t bytes = bytes_of(shape, dtype, "from_data", loc);
  if (!data && bytes) fail(ErrorKind::Value, "from_data", "data is null", loc);
  Device d = device_or_default(o);
  Ref<Storage> s = allocate_storage(d, bytes, "from_data");
  if (bytes) copy_from_host(*s, data, bytes);
  NodeRef n = make_leaf(std::move(s), dtype, shape, d);
  n->loc = loc;
  return tensor_of(cast_to(n.get(), dtype_or(o, dtype), loc));
}

Tensor wrap(void* data, DType dtype, const Dims& shape, const Options& o, void (*on_release)(void*),
            void* context, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  size_t bytes = bytes_of(shape, dtype, "wrap", loc);
  Device d = device_or_default(o);
  if (!d.is_cpu())
    fail(ErrorKind::Device, "wrap", "host memory cannot be used in place on " + d.name(), loc,
         "copy it: from_data(data, shape, \"" + d.name() + "\")");
  if (!data && bytes) fail(ErrorKind::Value, "wrap", "data is null", loc);
  if (o.dtype && *o.dtype != dtype)
    fail(ErrorKind::DType, "wrap",
         "memory of " + std::string(name_of(dtype)) + " cannot be used in place as " +
             std::string(name_of(*o.dtype)),
         loc, "wrap it as it is and convert with .to()");
  std::function<void()> release;
  if (on_release) release = [on_release, context] { on_release(context); };
  NodeRef n = make_leaf(wrap_storage(d, data, bytes, std::move(release)), dtype, shape, d);
  n->loc = loc;
  return tensor_of(std::move(n));
}

template <Number T>
Tensor tensor(const std::vector<T>& values, const Dims& shape, const Options& o, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  check_new_shape(shape, "tensor", loc);
  if (shape.numel() != static_cast<int64_t>(values.size()))
    fail(ErrorKind::Shape, "tensor",
         "a vector of " + std::to_string(values.size()) + " elements does not fill shape " +
             to_string(shape) + ", which holds " + std::to_string(shape.numel()),
         loc);
  if constexpr (std::is_same_v<T, bool>) {
    std::vector<uint8_t> bytes(values.begin(), values.end());
    return from_data(bytes.data(), DType::Bool, shape, o, loc);
  } else {
    return from_data(static_cast<const void*>(values.data()), dtype_of<T>(), shape, o, loc);
  }
}
#define INGOT_TENSOR(T) \
  template Tensor tensor(const std::vector<T>&, const Dims&, const Options&, SourceLoc);
INGOT_TENSOR(bool)
INGOT_TENSOR(char)
INGOT_TENSOR(signed char)
INGOT_TENSOR(unsigned char)
INGOT_TENSOR(short)
INGOT_TENSOR(unsigned short)
INGOT_TENSOR(int)
INGOT_TENSOR(unsigned)
INGOT_TENSOR(long)
INGOT_TENSOR(unsigned long)
INGOT_TENSOR(long long)
INGOT_TENSOR(unsigned long long)
INGOT_TENSOR(float)
INGOT_TENSOR(double)
#undef INGOT_TENSOR

Tensor tensor(const std::vector<Scalar>& values, const Dims& shape, const Options& o,
              SourceLoc where) {
  SourceLoc loc = user_loc(where);
  auto kind = Scalar::Kind::Bool;
  for (const Scalar& s : values) kind = std::max(kind, s.kind);
  if (values.empty()) kind = Scalar::Kind::Float;
  Options target(dtype_or(o, kind == Scalar::Kind::Float ? DType::Float32
                             : kind == Scalar::Kind::Int ? DType::Int64
                                                         : DType::Bool),
                 device_or_default(o));
  auto copied = [&]<class T>(T) {
    std::vector<T> v;
    for (const Scalar& s : values) v.push_back(s.to<T>());
    return tensor(v, shape, target, loc);
  };
  // Literals go through the widest type of their kind, straight to float32 where that is asked for.
  if (kind != Scalar::Kind::Float) return copied(int64_t{});
  return *target.dtype == DType::Float64 || !is_float(*target.dtype) ? copied(double{})
                                                                     : copied(float{});
}

void detail::ListReader::read(int, const Scalar& v) { values.push_back(v); }

Tensor detail::ListReader::finish(const Options& options, const SourceLoc& loc) const {
  if (ragged || static_cast<int64_t>(values.size()) != shape.numel())
    fail(ErrorKind::Shape, "tensor", "the lists within the list differ in length", user_loc(loc),
         "every row must have the same number of elements");
  return tensor(values, shape, options, loc);
}

}  // namespace ingot
