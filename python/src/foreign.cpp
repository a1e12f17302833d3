// See foreign.h.
#include "foreign.h"

#include <ingot/error.h>

#include <cstring>
#include <string>

namespace ingot_python {

using namespace ingot;

namespace {

[[noreturn]] void refuse(ErrorKind kind, const std::string& what) {
  throw Error(kind, "from_foreign", what);
}

Dims dims_of(const int64_t* sizes, int ndim) {
  if (ndim < 0 || ndim > kMaxDims)
    refuse(ErrorKind::Unsupported, "an array of " + std::to_string(ndim) +
                                       " dims: an Ingot tensor has at most " +
                                       std::to_string(kMaxDims));
  if (ndim && !sizes) refuse(ErrorKind::Value, "an array has dims but no shape");
  return Dims(sizes, ndim);
}

bool from_dl_type(const DLDataType& d, DType& out) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const DLDataType mine = dl_type(static_cast<DType>(i));
    if (mine.code != d.code || mine.bits != d.bits || d.lanes != 1) continue;
    out = static_cast<DType>(i);
    return true;
  }
  return false;
}

bool from_format(const char* format, int64_t size, DType& out) {
  if (!format) format = "B";
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  if (std::strlen(format) != 1) return false;
  if (std::strchr("bhilqn", *format))
    out = size == 1   ? DType::Int8
          : size == 2 ? DType::Int16
          : size == 4 ? DType::Int32
                      : DType::Int64;
  else if (*format == 'B')
    out = DType::UInt8;
  else if (*format == '?')
    out = DType::Bool;
  else if (*format == 'e')
    out = DType::Float16;
  else if (*format == 'f')
    out = DType::Float32;
  else if (*format == 'd')
    out = DType::Float64;
  else
    return false;
  return size == static_cast<int64_t>(size_of(out));
}

bool fills(const HostBuffer& b, const Dims& shape) {
  __int128 bytes = b.item_bytes;  // counted up to the first product that overflows the limit
  bool none = false;
  for (const int64_t n : shape) {
    if (n < 0) return false;
    none = none || n == 0;
    if (n > 1 && bytes <= b.bytes) bytes *= n;
  }
  return b.bytes == (none ? 0 : bytes);
}

}  // namespace

DLDataType dl_type(DType t) {
  const auto bits = static_cast<uint8_t>(8 * size_of(t));
  if (t == DType::Bool) return {6, 8, 1};
  if (t == DType::BFloat16) return {4, 16, 1};
  return {static_cast<uint8_t>(is_float(t) ? 2 : t == DType::UInt8 ? 1 : 0), bits, 1};
}

ForeignArray foreign_array(const DLTensor& t) {
  ForeignArray a;
  if (!from_dl_type(t.dtype, a.dtype) || (t.device.type != kDLCpu && t.device.type != kDLCuda))
    refuse(ErrorKind::Unsupported, "type code " + std::to_string(t.dtype.code) + " of " +
                                       std::to_string(t.dtype.bits) + " bits on device type " +
                                       std::to_string(t.device.type) + " has no Ingot tensor");
  a.shape = dims_of(t.shape, t.ndim);
  if (t.strides) {
    a.strides = Dims(t.strides, t.ndim);
    for (int64_t& s : *a.strides)
      if (__builtin_mul_overflow(s, static_cast<int64_t>(size_of(a.dtype)), &s))
        refuse(ErrorKind::Value, "a stride is outside the address space");
  }
  uintptr_t first = 0;
  if (__builtin_add_overflow(reinterpret_cast<uintptr_t>(t.data), t.byte_offset, &first))
    refuse(ErrorKind::Value, "byte_offset is outside the address space");
  a.data = t.data ? reinterpret_cast<void*>(first) : nullptr;
  a.device =
      t.device.type == kDLCpu ? Device("cpu") : Device("cuda:" + std::to_string(t.device.id));
  return a;
}

ForeignArray foreign_array(const HostBuffer& b) {
  ForeignArray a;
  if (!from_format(b.format, b.item_bytes, a.dtype))
    refuse(ErrorKind::DType,
           std::string("elements of type '") + (b.format ? b.format : "B") + "' and " +
               std::to_string(b.item_bytes) +
               " bytes have no Ingot dtype (there are float64, float32, float16, bfloat16, "
               "int64, int32, int16, int8, uint8, bool)");
  a.data = b.data;
  a.shape = b.shape || b.ndim != 1 ? dims_of(b.shape, b.ndim) : Dims{b.bytes / b.item_bytes};
  if (b.strides) a.strides = Dims(b.strides, a.shape.size());
  if (!fills(b, a.shape)) refuse(ErrorKind::Value, "a buffer's bytes do not fill its shape");
  a.device = Device("cpu");
  return a;
}

}  // namespace ingot_python
