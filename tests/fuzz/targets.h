// What is fuzzed: each target reads bytes as one kind of file. A sound file or a clean Error is right;
// anything else ends the program.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ingot::fuzz {

struct Target {
  const char* name;
  void (*run)(const uint8_t* data, size_t size);
};
extern const Target kTargets[];
extern const int kTargetCount;
/// Runs one input; aborts, saying why, on an error that no file may cause.
void run(const Target& target, const uint8_t* data, size_t size);

}  // namespace ingot::fuzz
