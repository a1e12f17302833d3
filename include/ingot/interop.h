// Memory shared with other libraries: NumPy's buffers, DLPack, any holder of a pointer.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "ingot/tensor.h"

namespace ingot {

/// Where a value is stored: row-major, without gaps. It stays there, unchanged by Ingot, as long as
/// `owner` (or a copy of it) lives.
struct SharedMemory {
  void* data = nullptr;
  std::shared_ptr<void> owner;
};

/// The memory that holds x's value now: computed first if it was pending, and waited for. Later
/// in-place calls give x other memory, so the holder keeps the value it saw; what the holder writes
/// is seen by x until then. Throws Error(State) for an undefined tensor or inside a captured
/// function, and what the run throws.
SharedMemory share_memory(const Tensor& x, SourceLoc loc = SourceLoc::current());

/// A tensor on another library's memory, not copied: shape.numel() elements in row-major order on
/// `device`, ready to be read. on_release is called, from any thread, when no tensor needs it any
/// more. Throws Error(Shape) for a bad shape, Error(Value) for null data that should have elements.
Tensor from_shared_memory(void* data, DType dtype, const Dims& shape, const Device& device,
                          std::function<void()> on_release, SourceLoc loc = SourceLoc::current());

/// An array as another library describes it. Nothing of it is trusted before it is checked, except
/// that its elements are where it says.
struct ForeignArray {
  void* data = nullptr;  ///< of the element at index 0 in each dim
  DType dtype = DType::Float32;
  Dims shape;
  std::optional<Dims> strides;  ///< in bytes; not given: row-major
  Device device;
};

/// A tensor of its elements: on the same memory where that is row-major, aligned and, of bools, all
/// 0 or 1; else, or with `copy`, a copy on the CPU. on_release is called once: when no tensor needs
/// the memory any more, or before this throws. Throws Error(Shape) for a negative size or more than
/// 2^60 elements, Error(Value) for null data or elements outside the address space,
/// Error(Unsupported) for GPU memory that would have to be copied by strides, OutOfMemory.
Tensor from_foreign(const ForeignArray& array, bool copy, std::function<void()> on_release,
                    SourceLoc loc = SourceLoc::current());

/// For bindings to a language with a global lock, set once before the first call. begin() is called
/// before a thread computes or copies values; it releases the thread's lock and returns a token
/// (null: the thread does not hold the lock). end() is called afterwards with that token and takes
/// the lock again.
void set_host_wait(void* (*begin)(), void (*end)(void*));

}  // namespace ingot
