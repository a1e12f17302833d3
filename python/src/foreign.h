// Another library's memory as DLPack and Python's buffer protocol describe it, read into a
// ForeignArray. Independent of Python.
#pragma once
#include <ingot/interop.h>

#include <cstdint>

namespace ingot_python {

// ---- DLPack (dmlc/dlpack, ABI 1): the structures as the standard lays them out.

struct DLDevice {
  int32_t type, id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
constexpr int kDLCpu = 1, kDLCuda = 2;

DLDataType dl_type(ingot::DType t);
/// Throws Error(Unsupported) for a type, a device or a number of dims that Ingot does not have,
/// Error(Value) for what no array has, Error(Device) for a GPU that is not available.
ingot::ForeignArray foreign_array(const DLTensor& t);

// ---- The buffer protocol

/// The fields of a Py_buffer, asked for without suboffsets.
struct HostBuffer {
  void* data;
  const char* format;  // as the module struct writes it; null: bytes
  int64_t item_bytes, bytes;
  int ndim;
  const int64_t* shape;    // null: one dim of all items
  const int64_t* strides;  // null: row-major
};
/// The same errors; Error(DType) for elements that are of no type of Ingot's.
ingot::ForeignArray foreign_array(const HostBuffer& b);

}  // namespace ingot_python
