// ingot::Error: what every public function throws on bad input. The message names the operation,
// its operands, the user's line and the call that fixes it.
#pragma once
#include <exception>
#include <string>

#include "ingot/source.h"

namespace ingot {

enum class ErrorKind {
  Shape,
  DType,
  Device,
  Dim,
  Index,
  Value,
  Autograd,
  OutOfMemory,
  Io,
  Unsupported,
  State,
  Internal
};

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string op, std::string what, SourceLoc where = {},
        std::string fix = {});
  ErrorKind kind() const { return kind_; }
  const std::string& op() const { return op_; }
  const SourceLoc& where() const { return where_; }
  /// What went wrong, and what to do about it ("" when there is nothing to say): the parts of
  /// what().
  const std::string& reason() const { return reason_; }
  const std::string& fix() const { return fix_; }
  /// "[op] what\n  at file:line\n  fix: ..."
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorKind kind_;
  std::string op_, reason_, fix_, message_;
  SourceLoc where_;
};

/// Thrown when a device has no room: the request, the limit and the largest live tensors are in the
/// message.
class OutOfMemory : public Error {
 public:
  OutOfMemory(std::string what, size_t requested, size_t in_use, size_t limit,
              SourceLoc where = {});
  size_t requested, in_use, limit;
};

}  // namespace ingot
