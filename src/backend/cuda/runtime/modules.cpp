// See modules.h.
#include "backend/cuda/runtime/modules.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "backend/cuda/emit/nvrtc.h"
#include "backend/cuda/runtime/private_cache.h"
#include "base/sha256.h"
#include "ingot/error.h"

namespace ingot::cuda {
namespace {

/// A few threads that compile. They end with the process, before NVRTC does.
class Workers {
 public:
  static Workers& get() {
    static Workers w;
    return w;
  }
  void add(std::function<void()> job) {
    std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    if (idle_ == 0 && threads_.size() < most_) threads_.emplace_back([this] { work(); });
    wake_.notify_one();
  }
  ~Workers() {
    {
      std::lock_guard lock(mutex_);
      ending_ = true;
      jobs_.clear();
    }
    wake_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

 private:
  // NVRTC loads and sets up the rest of itself at its first program; what is set up first is taken
  // down last, so that must come before these threads.
  Workers() : most_(std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 16)) {
    if (const Nvrtc* nvrtc = Nvrtc::get()) nvrtc->compile("", "sm_80", false);
  }
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      wake_.wait(lock, [&] { return ending_ || !jobs_.empty(); });
      --idle_;
      if (ending_) return;
      std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      lock.lock();
    }
  }
  size_t most_, idle_ = 0;
  bool ending_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
};

}  // namespace

std::string compiled_code(const std::string& source, const std::string& architecture,
                          const std::string& label) {
  const Nvrtc* nvrtc = Nvrtc::get();
  if (!nvrtc) throw Error(ErrorKind::Device, "cuda", Nvrtc::missing());
  std::string folder = cache_folder(), file;
  const std::string made_from = architecture + "\n" + std::to_string(nvrtc->major()) + "." +
                                std::to_string(nvrtc->minor()) + "\n" + source;
  if (!folder.empty()) {
    file = folder + "/cubin/" + sha256(made_from);
    if (std::string code = unsealed(read_private(file), made_from); !code.empty()) return code;
  }
  NvrtcResult r = nvrtc->compile(source, architecture);
  if (!r.ok)
    throw Error(ErrorKind::Internal, "cuda",
                "NVRTC refuses the kernel " + label + ":\n" + r.log.substr(0, 4000), {},
                "please report this with the text that INGOT_DEBUG=kernels prints");
  if (!file.empty()) write_private(file, sealed(made_from, r.code));
  return r.code;
}

Module::Module(const CudaText& text, std::shared_future<std::string> code)
    : code_(std::move(code)), label_(text.schedule) {
  for (const CudaStage& s : text.stages) entries_.push_back(s.entry);
}

void Module::load() {
  if (module_) return;
  const std::string& code = code_.get();
  check(driver().module_load_data(&module_, code.data()), "loading a kernel");
  functions_.assign(entries_.size(), nullptr);
  shared_.assign(entries_.size(), 0);
  for (size_t i = 0; i < entries_.size(); ++i) {
    check(driver().module_get_function(&functions_[i], module_, entries_[i].c_str()),
          entries_[i].c_str());
    int fixed = 0;  // up to 48 KB, static and dynamic together, need no permission
    driver().func_get_attribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, functions_[i]);
    shared_[i] = static_cast<unsigned>(std::max(0, 48 * 1024 - fixed));
  }
}

CUfunction Module::function(size_t stage, unsigned shared_bytes) {
  std::lock_guard lock(mutex_);
  load();
  if (shared_bytes > shared_[stage]) {
    check(driver().func_set_attribute(functions_[stage],
                                      CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                      static_cast<int>(shared_bytes)),
          "requesting shared memory");
    shared_[stage] = shared_bytes;
  }
  return functions_[stage];
}

std::shared_ptr<Module> ModuleCache::get(const CudaText& text) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Module>& m = modules_[text.key];
  if (!m) {
    auto promise = std::make_shared<std::promise<std::string>>();
    m = std::make_shared<Module>(text, promise->get_future().share());
    Workers::get().add(
        [promise, source = text.source(), architecture = architecture_, label = text.schedule] {
          try {
            promise->set_value(compiled_code(source, architecture, label));
          } catch (...) {
            promise->set_exception(std::current_exception());
          }
        });
  }
  return m;
}

}  // namespace ingot::cuda
