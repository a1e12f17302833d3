// Linked into a test program: the device "cuda" is the emulator.
//
// The tests run twice. A first process, a copy made before main, runs them without executing any
// kernel, to learn their texts, and compiles them all together; the second, this one, finds them in
// the cache. That is many times faster than one compiler run per kernel. Texts that only the second
// meets are compiled as they come.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>

#include "emulator/emulated_backend.h"
#include "emulator/emulator.h"

namespace ingot::test {
namespace {

struct UseEmulator {
  bool collecting = false;
  UseEmulator() {
    Emulator::get();
    bool shown = std::getenv("INGOT_EMULATOR_COLLECT") !=
                 nullptr;  // the first process alone, for its own debugging
    pid_t child = shown ? 0 : fork();
    collecting = child == 0;
    if (child > 0) waitpid(child, nullptr, 0);
    if (collecting && !shown) {
      int nowhere = open("/dev/null", O_WRONLY);
      dup2(nowhere, 1);
      dup2(nowhere, 2);
    }
    register_backend(DeviceType::CUDA, make_emulated_backend(collecting));
  }
  ~UseEmulator() {
    if (!collecting) return;
    try {
      Emulator::get().build();
    } catch (const std::exception&) {
      // The second process meets the same text and reports it.
    }
    _exit(0);
  }
};
const UseEmulator use;

}  // namespace
}  // namespace ingot::test
