// libFuzzer's entry: -DINGOT_FUZZ_TARGET="name" chooses the target.
#include <cstring>

#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ingot::fuzz::Target* target = [] {
    for (int i = 0; i < ingot::fuzz::kTargetCount; ++i)
      if (!std::strcmp(ingot::fuzz::kTargets[i].name, INGOT_FUZZ_TARGET))
        return &ingot::fuzz::kTargets[i];
    __builtin_trap();
  }();
  ingot::fuzz::run(*target, data, size);
  return 0;
}
