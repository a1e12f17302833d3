// Compiled kernels: found in memory by the key of their text, then on disk, then compiled by NVRTC.
// Compilation starts on a few threads when a plan is made and is waited for at the first launch, so
// that all misses of a plan compile side by side.
//
// On disk a kernel is <cache>/cubin/<SHA-256 of architecture, NVRTC version and text>;
// private_cache.h says which files are believed. INGOT_CACHE_DIR moves the folder, INGOT_CACHE=0
// does without.
#pragma once
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/cuda/emit/text.h"
#include "backend/cuda/runtime/driver.h"

namespace ingot::cuda {

/// One text for one device. Loaded into the driver at its first use; never unloaded.
class Module {
 public:
  Module(const CudaText& text, std::shared_future<std::string> code);
  /// The kernel of a stage; waits for the compiler. `shared_bytes`: dynamic shared memory it will
  /// be launched with.
  CUfunction function(size_t stage, unsigned shared_bytes);

 private:
  void load();
  std::mutex mutex_;
  std::shared_future<std::string> code_;
  std::vector<std::string> entries_;
  std::string label_;
  CUmodule module_ = nullptr;
  std::vector<CUfunction> functions_;
  std::vector<unsigned> shared_;  // what the function's attribute allows
};

class ModuleCache {
 public:
  explicit ModuleCache(std::string architecture) : architecture_(std::move(architecture)) {}
  std::shared_ptr<Module> get(const CudaText& text);

 private:
  std::string architecture_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Module>> modules_;  // by the text's key
};

/// The machine code of a source, from disk or from NVRTC. Throws Error(Internal) with the
/// compiler's words.
std::string compiled_code(const std::string& source, const std::string& architecture,
                          const std::string& label);

}  // namespace ingot::cuda
