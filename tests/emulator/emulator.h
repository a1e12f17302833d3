// Runs generated CUDA text on the CPU: the C++ compiler builds it after cuda_builtins.h, many
// kernels to a file, and the threads of a block run as fibers, so that barriers and shuffles mean
// what they mean on a GPU.
//
// Compiled files are kept in a folder ($INGOT_EMULATOR_CACHE, or emulator_cache in the working
// directory) and found again by the hash of their text.
#pragma once
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "backend/cuda/emit/text.h"

namespace ingot::test {

class Emulator {
 public:
  static Emulator& get();
  /// Remembers a text, to be compiled together with others at the next run or build().
  void add(const CudaText& text);
  /// Compiles what was added and is not yet in the cache. Throws std::runtime_error with the
  /// compiler's words.
  void build();
  /// Runs all stages of a kernel on this machine's memory. Throws std::runtime_error when threads
  /// wait for one another in a way a GPU would not forgive (a shuffle or a barrier that not all
  /// reach).
  void run(const CudaText& text, const CudaLaunch& launch, const CudaHeader& header);

  int compiled() const { return compiled_; }  // texts given to the compiler in this process
  /// Where thread blocks run from last to first: results must not depend on it.
  bool reversed = false;

 private:
  using Kernel = void (*)(const void* argument);
  struct Entry {
    Kernel kernel;
    void** state;  // the library's ig_emu
  };
  std::string file_of(const CudaText& text) const;
  void compile_file(const std::string& name, const std::vector<CudaText>& texts, size_t begin,
                    size_t end) const;
  Entry find(const CudaText& text, size_t stage);

  std::recursive_mutex mutex_;
  std::map<std::string, CudaText> waiting_;     // by key
  std::map<std::string, std::string> library_;  // key: file
  std::map<std::string, void*> loaded_;         // file: handle
  std::map<std::string, Entry> entries_;        // name of the kernel
  int compiled_ = 0;
};

}  // namespace ingot::test
