// The text of an error: what went wrong, where, and the call that fixes it.
#include "ingot/error.h"

#include <utility>

#include "base/context.h"

namespace ingot {

std::string (*current_layer)() = nullptr;

Error::Error(ErrorKind kind, std::string op, std::string what, SourceLoc where, std::string fix)
    : kind_(kind),
      op_(std::move(op)),
      reason_(std::move(what)),
      fix_(std::move(fix)),
      where_(user_loc(where)) {
  message_ = "[" + op_ + "] " + reason_;
  if (where_.line)
    message_ += std::string("\n  at ") + where_.file + ":" + std::to_string(where_.line);
  if (current_layer)
    if (std::string layer = current_layer(); !layer.empty()) message_ += "\n  in layer " + layer;
  if (!fix_.empty()) message_ += "\n  fix: " + fix_;
}

OutOfMemory::OutOfMemory(std::string what, size_t asked, size_t used, size_t most, SourceLoc where)
    : Error(ErrorKind::OutOfMemory, "memory", std::move(what), where,
            "use a smaller batch, drop tensors that are no longer needed, or raise the limit with "
            "Device::set_memory_limit"),
      requested(asked),
      in_use(used),
      limit(most) {}

}  // namespace ingot
