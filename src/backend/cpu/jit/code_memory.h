// Memory for machine code generated at run time. It is mapped execute-only; code is added by
// writing to the memory's file descriptor, also while other code of the same piece runs, and
// sealed when a piece is full.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

namespace ingot::cpu {

/// A piece of executable code; its memory is freed with the last piece that shares its mapping.
class Code {
 public:
  Code() = default;
  /// nullptr entry where the system forbids executable memory.
  explicit Code(const std::vector<uint8_t>& bytes);
  const void* entry() const { return entry_; }
  size_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<void> mapping_;
  const void* entry_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace ingot::cpu
