// Settings of the process that plans depend on.
#include <atomic>

#include "base/env.h"
#include "compile/executor.h"
#include "ingot/runtime.h"

namespace ingot {
namespace {

std::atomic<bool> tf32{false};
std::atomic<bool> fusion{env::flag("INGOT_FUSE")};

}  // namespace

bool tf32_allowed() { return tf32.load(std::memory_order_relaxed); }
void set_matmul_precision(const std::string& precision, SourceLoc loc) {
  if (precision != "highest" && precision != "high")
    throw Error(ErrorKind::Value, "set_matmul_precision", "\"" + precision + "\" is no precision",
                user_loc(loc), "use \"highest\" or \"high\"");
  tf32 = precision == "high";
}
std::string get_matmul_precision() { return tf32_allowed() ? "high" : "highest"; }

bool fusion_enabled() { return fusion.load(std::memory_order_relaxed); }
void set_fusion(bool on) { fusion = on; }

}  // namespace ingot
