// See driver.h. Every failing call throws std::runtime_error with the driver's name for the error.
#include "emulator/driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "backend/cuda/emit/nvrtc.h"

namespace ingot::test {

using Handle = void*;
struct Driver::Api {
  int (*init)(unsigned);
  int (*device_count)(int*);
  int (*device_name)(char*, int, int);
  int (*attribute)(int*, int, int);
  int (*retain)(Handle*, int);
  int (*set_current)(Handle);
  int (*allocate)(uint64_t*, size_t);
  int (*release)(uint64_t);
  int (*upload)(uint64_t, const void*, size_t);
  int (*download)(void*, uint64_t, size_t);
  int (*copy)(uint64_t, uint64_t, size_t);
  int (*load)(Handle*, const void*);
  int (*function)(Handle*, Handle, const char*);
  int (*set_attribute)(Handle, int, int);
  int (*launch)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                Handle, void**, void**);
  int (*synchronize)();
  int (*event_create)(Handle*, unsigned);
  int (*event_record)(Handle, Handle);
  int (*event_elapsed)(float*, Handle, Handle);
  int (*error_name)(int, const char**);

  void check(int rc, const char* what) const {
    if (rc == 0) return;
    const char* text = "?";
    error_name(rc, &text);
    throw std::runtime_error(std::string("CUDA driver: ") + what + ": " + text);
  }
};

namespace {
uint64_t address(const void* p) { return reinterpret_cast<uint64_t>(p); }
}  // namespace

std::string Driver::start() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::string("no CUDA driver: ") + dlerror();
  static Api a;
  std::string lacks;
  auto find = [&](auto& slot, const char* symbol) {
    slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(dlsym(library, symbol));
    if (slot == nullptr) lacks = symbol;
  };
  find(a.init, "cuInit");
  find(a.device_count, "cuDeviceGetCount");
  find(a.device_name, "cuDeviceGetName");
  find(a.attribute, "cuDeviceGetAttribute");
  find(a.retain, "cuDevicePrimaryCtxRetain");
  find(a.set_current, "cuCtxSetCurrent");
  find(a.allocate, "cuMemAlloc_v2");
  find(a.release, "cuMemFree_v2");
  find(a.upload, "cuMemcpyHtoD_v2");
  find(a.download, "cuMemcpyDtoH_v2");
  find(a.copy, "cuMemcpyDtoD_v2");
  find(a.load, "cuModuleLoadData");
  find(a.function, "cuModuleGetFunction");
  find(a.set_attribute, "cuFuncSetAttribute");
  find(a.launch, "cuLaunchKernel");
  find(a.synchronize, "cuCtxSynchronize");
  find(a.event_create, "cuEventCreate");
  find(a.event_record, "cuEventRecord");
  find(a.event_elapsed, "cuEventElapsedTime");
  find(a.error_name, "cuGetErrorName");
  if (!lacks.empty()) return "the CUDA driver has no " + lacks;
  int count = 0;
  if (a.init(0) != 0 || a.device_count(&count) != 0 || count == 0)
    return "the CUDA driver sees no GPU";
  api_ = &a;
  Handle context = nullptr;
  a.check(a.retain(&context, 0), "context");
  a.check(a.set_current(context), "context");
  char text[128] = {};
  a.device_name(text, sizeof text, 0);
  name = text;
  int major = 0, minor = 0;
  a.attribute(&major, 75, 0);
  a.attribute(&minor, 76, 0);
  a.attribute(&multiprocessors, 16, 0);
  arch = "sm_" + std::to_string(major) + std::to_string(minor);
  return "";
}

Driver* Driver::get() {
  static Driver d;
  static const bool found = d.start().empty();
  return found ? &d : nullptr;
}

std::string Driver::missing() {
  Driver d;
  return d.start();
}

void* Driver::allocate(size_t bytes) {
  uint64_t p = 0;
  api_->check(api_->allocate(&p, std::max<size_t>(bytes, 16)), "allocate");
  return reinterpret_cast<void*>(p);
}
void Driver::release(void* p) { api_->check(api_->release(address(p)), "release"); }
void Driver::upload(void* to, const void* from, size_t n) {
  api_->check(api_->upload(address(to), from, n), "upload");
}
void Driver::download(void* to, const void* from, size_t n) {
  api_->check(api_->download(to, address(from), n), "download");
}
void Driver::copy(void* to, const void* from, size_t n) {
  api_->check(api_->copy(address(to), address(from), n), "copy");
}
void Driver::synchronize() { api_->check(api_->synchronize(), "synchronize"); }

Driver::Kernel Driver::compile(const CudaText& text, const CudaLaunch& launch, bool verbose) {
  const Nvrtc* nvrtc = Nvrtc::get();
  if (nvrtc == nullptr) throw std::runtime_error(Nvrtc::missing());
  NvrtcResult r = nvrtc->compile(text.source(), arch, verbose);
  if (!r.ok) throw std::runtime_error(r.log);
  Kernel k;
  k.log = r.log;
  Handle module = nullptr;
  api_->check(api_->load(&module, r.code.data()), "load");
  for (size_t s = 0; s < text.stages.size(); ++s) {
    api_->check(api_->function(&k.function[s], module, text.stages[s].entry.c_str()), "function");
    if (launch.stages[s].shared_bytes > 48 * 1024)
      api_->check(
          api_->set_attribute(k.function[s], 8, static_cast<int>(launch.stages[s].shared_bytes)),
          "shared memory");
  }
  return k;
}

void Driver::launch(const Kernel& kernel, const CudaText& text, const CudaLaunch& l,
                    const CudaHeader& header) {
  std::vector<int64_t> argument = l.argument(header);
  void* arguments[] = {argument.data()};
  for (size_t s = 0; s < text.stages.size(); ++s)
    api_->check(api_->launch(kernel.function[s], l.stages[s].grid, 1, 1, text.stages[s].threads, 1,
                             1, l.stages[s].shared_bytes, nullptr, arguments, nullptr),
                "launch");
}

double Driver::elapsed(void (*f)(void*), void* data, int repeats) {
  Handle begin = nullptr, end = nullptr;
  api_->check(api_->event_create(&begin, 0), "event");
  api_->check(api_->event_create(&end, 0), "event");
  for (int i = 0; i < 3; ++i) f(data);
  std::vector<float> times;
  for (int i = 0; i < repeats; ++i) {
    api_->event_record(begin, nullptr);
    f(data);
    api_->event_record(end, nullptr);
    synchronize();
    float ms = 0;
    api_->event_elapsed(&ms, begin, end);
    times.push_back(ms * 1000);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace ingot::test
