// What is fuzzed: each target reads bytes as one kind of file. A sound file or a clean Error is
// right; anything else ends the program.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ingot/device.h"
#include "ingot/error.h"

namespace ingot::fuzz {

struct Target {
  const char* name;
  void (*run)(const uint8_t* data, size_t size);
  std::vector<ErrorKind> also = {};  // errors allowed besides Io and Unsupported
};
extern const Target kTargets[];
extern const int kTargetCount;
/// Runs one input; aborts, saying why, on an error that no file may cause. False: the input was
/// refused.
bool run(const Target& target, const uint8_t* data, size_t size);

/// While it lives the CPU has so much memory for tensors: more is OutOfMemory.
class MemoryLimit {
 public:
  explicit MemoryLimit(size_t bytes) { Device("cpu").set_memory_limit(bytes); }
  ~MemoryLimit() { Device("cpu").set_memory_limit(0); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;
};

// Those in other files.
void checkpoint(const uint8_t* data, size_t size);
void index_json(const uint8_t* data, size_t size);
void recipe(const uint8_t* data, size_t size);
void card(const uint8_t* data, size_t size);
void tuning(const uint8_t* data, size_t size);
void cubin(const uint8_t* data, size_t size);
void buffers(const uint8_t* data, size_t size);

}  // namespace ingot::fuzz
