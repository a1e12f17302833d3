// A CUDA machine made of the CPU, for tests: the driver's, NVRTC's and cuBLASLt's functions that
// the plug-in calls, in one library. Device memory is host memory; "compiling" keeps the text,
// "loading" builds it with the C++ compiler after the emulator's built-ins, launching runs the
// threads of each block as fibers. Work is done at once, except while a stream is captured: then it
// is kept with its arguments, and done at each launch of the graph. Signatures are those of cuda.h
// and cublasLt.h, repeated here, so that no CUDA header is needed.
//
// FAKE_CUDA=null makes it an H200 that runs nothing: kernels are compiled by the real NVRTC and
// whole programs go through planning, capture and launching, with wrong results and at no cost.
// That fills a cache of kernels ahead of a run elsewhere.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "backend/cuda/emit/text.h"
#include "backend/cuda/kernels/run_params.h"
#include "emulator/cuda_state.h"
#include "emulator/fibers.h"
#include "plugin/fake_machine.h"

namespace fs = std::filesystem;
using fake::kInvalid, fake::kOk;
extern "C" int fake_cuda_has_vmm();
namespace {

const bool nothing_runs = [] {
  const char* e = std::getenv("FAKE_CUDA");
  return e && std::strcmp(e, "null") == 0;
}();
const size_t kMemory = nothing_runs ? size_t{140} << 30 : size_t{2} << 30;
thread_local void* current = nullptr;

struct Graph {
  struct Step {
    std::function<int()> work;
    std::vector<size_t> after;
  };
  std::vector<Step> steps;
};
struct Stream {
  Graph* capturing = nullptr;
  std::vector<size_t> after = {};  // what the next step comes after
};
struct Event {
  Graph* graph = nullptr;
  std::vector<size_t> after = {};
};
std::vector<Stream*> streams;
struct Function {
  std::string name = {};
  void (*run)(const void*) = nullptr;
  void** state = nullptr;
  size_t argument_bytes = 0;
  bool fibers = false;
};
struct Program {
  std::string source;
};

int launches = 0, graph_launches = 0, graphs_made = 0;
std::mutex mutex;  // kernels run one at a time

int put(Stream* s, std::function<int()> work) {
  if (!s || !s->capturing) return work();
  s->capturing->steps.push_back({std::move(work), s->after});
  s->after = {s->capturing->steps.size() - 1};
  return kOk;
}

// The steps in an order that no rule but their own forbids, another one each time: what should wait
// and does not is seen.
int run_graph(const Graph& g) {
  static std::mt19937 gen(7);
  std::vector<size_t> waits(g.steps.size()), ready;
  std::vector<std::vector<size_t>> then(g.steps.size());
  for (size_t i = 0; i < g.steps.size(); ++i) {
    waits[i] = g.steps[i].after.size();
    for (size_t a : g.steps[i].after) then[a].push_back(i);
    if (waits[i] == 0) ready.push_back(i);
  }
  while (!ready.empty()) {
    std::swap(ready[gen() % ready.size()], ready.back());
    size_t i = ready.back();
    ready.pop_back();
    if (int rc = g.steps[i].work()) return rc;
    for (size_t t : then[i])
      if (--waits[t] == 0) ready.push_back(t);
  }
  return kOk;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

int run_kernel(const Function& f, unsigned grid, unsigned threads, unsigned shared_bytes,
               const void* argument) {
  std::lock_guard lock(mutex);
  ++launches;
  std::vector<uint64_t> shared(shared_bytes / 8 + 4, 0x7ff7ff7f7ff7ff7full);
  IgEmuState state{};
  state.dynamic_shared =
      reinterpret_cast<unsigned char*>((reinterpret_cast<uintptr_t>(shared.data()) + 15) / 16 * 16);
  state.block_dim = {threads, 1, 1};
  state.grid_dim = {grid, 1, 1};
  *f.state = &state;
  try {
    for (unsigned b = 0; b < grid; ++b) {
      state.block = {b, 0, 0};
      if (f.fibers)
        ingot::test::run_fibers(threads, state, [&] { f.run(argument); });
      else
        for (unsigned t = 0; t < threads; ++t) {
          state.thread.x = t;
          f.run(argument);
        }
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "fake CUDA: %s\n", e.what());
    return 700;
  }
  return kOk;
}

/// A word of a POSIX shell.
std::string shell_quoted(const std::string& word) {
  std::string q = "'";
  for (const char c : word) q += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return q + "'";
}

/// Builds the text of a module; the file is kept in the emulator's cache.
void* build(const std::string& source) {
  const char* named = std::getenv("INGOT_EMULATOR_CACHE");
  std::string folder = named ? named : (fs::current_path() / "emulator_cache").string();
  fs::create_directories(folder);
  std::string all =
      "#define IG_EMULATED 1\n" + read_file(INGOT_EMULATOR_DIR "/cuda_builtins.h") + source;
  all +=
      "\ntemplate <class P> static void ig_emu_call(void (*f)(P), const void* a) { f(*(const "
      "P*)a); }\n"
      "template <class P> static unsigned long ig_emu_size(void (*)(P)) { return sizeof(P); }\n";
  static const std::regex entry(
      R"re(extern "C" __global__ void __launch_bounds__\([^)]*\) (\w+)\()re");
  for (std::sregex_iterator i(source.begin(), source.end(), entry), end; i != end; ++i) {
    std::string name = (*i)[1];
    all += "extern \"C\" void run_" + name + "(const void* a) { ig_emu_call(" + name + ", a); }\n";
    all += "extern \"C\" unsigned long size_" + name + "() { return ig_emu_size(" + name + "); }\n";
  }
  std::string path = folder + "/fake" + std::to_string(std::hash<std::string>{}(all)) + ".so";
  if (!fs::exists(path)) {
    std::string part = path + "." + std::to_string(getpid());
    std::ofstream(part + ".cpp") << all;
    std::string command =
        "g++ -std=c++17 -O1 -w -shared -fPIC -fno-strict-aliasing -fwrapv -ffp-contract=off " +
        shell_quoted(part + ".cpp") + " -o " + shell_quoted(part);
    if (std::system(command.c_str()) != 0) return nullptr;
    fs::rename(part, path);
    fs::remove(part + ".cpp");
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) std::fprintf(stderr, "fake CUDA: %s\n", dlerror());
  return library;
}

struct Module {
  void* library;
  bool fibers;
};

/// What the last kernel of every run does, so that the host does not wait in vain
/// (backend/cuda/kernels/run_epilogue.cpp).
int end_run(const char* argument) {
  ingot::cuda::RunParams p;
  std::memcpy(&p, argument + sizeof(ingot::CudaHeader), sizeof p);
  auto* runs = reinterpret_cast<int64_t*>(p.runs);
  int64_t* record = reinterpret_cast<int64_t*>(p.records) + (*runs & p.record_mask) * 4;
  record[0] = ++*runs;
  return kOk;
}

}  // namespace

bool fake::nothing_runs() { return ::nothing_runs; }
size_t fake::memory_bytes() { return kMemory; }
bool fake::has_context() { return current != nullptr; }
int fake_cuda_put(void* stream, std::function<int()> work) {
  return put(static_cast<Stream*>(stream), std::move(work));
}

extern "C" {

// --- What tests ask ---
int fake_cuda_launches() { return launches; }
int fake_cuda_graph_launches() { return graph_launches; }
int fake_cuda_graphs_made() { return graphs_made; }

// --- Driver ---
int cuInit(unsigned) { return kOk; }
int cuDriverGetVersion(int* v) {
  const char* e = std::getenv("FAKE_CUDA_VERSION");
  return *v = e ? std::atoi(e) : 13000, kOk;
}
int cuGetErrorName(int, const char** s) { return *s = "FAKE_ERROR", kOk; }
int cuGetErrorString(int, const char** s) { return *s = "an error of the fake driver", kOk; }
int cuDeviceGetCount(int* n) { return *n = 1, kOk; }
int cuDeviceGet(int* d, int n) { return *d = n, kOk; }
int cuDeviceGetName(char* text, int n, int) {
  return std::strncpy(text, "Fake GPU", static_cast<size_t>(n)), kOk;
}
int cuDeviceGetAttribute(int* v, int a, int) {
  switch (a) {
    case 75:
      *v = 9;
      break;  // compute capability
    case 76:
      *v = 0;
      break;
    case 16:
      *v = nothing_runs ? 132 : 4;
      break;  // multiprocessors: few, so that tests see grids that loop
    case 13:
      *v = 1980000;
      break;  // clock
    case 36:
      *v = 3201000;
      break;  // memory clock
    case 37:
      *v = 6144;
      break;  // bus width
    case 38:
      *v = nothing_runs ? 60 << 20 : 1 << 20;
      break;  // L2
    case 97:
      *v = 232448;
      break;  // shared memory per block, opt-in
    case 102:
      *v = fake_cuda_has_vmm();
      break;
    default:
      *v = 0;
  }
  return kOk;
}
int cuDeviceTotalMem_v2(size_t* n, int) { return *n = kMemory, kOk; }
int cuDevicePrimaryCtxRetain(void** c, int) {
  return *c = reinterpret_cast<void*>(uintptr_t{16}), kOk;
}
int cuCtxSetCurrent(void* c) { return current = c, kOk; }
int cuCtxGetCurrent(void** c) { return *c = current, kOk; }
int cuMemHostAlloc(void** p, size_t n, unsigned) {
  return *p = std::aligned_alloc(4096, (n + 4095) / 4096 * 4096), kOk;
}
int cuMemFreeHost(void* p) { return std::free(p), kOk; }
static int copy(uint64_t to, uint64_t from, size_t n, Stream* s) {
  if (nothing_runs && n > (1 << 20)) return kOk;
  return put(s, [=] {
    return std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), n), kOk;
  });
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t n, Stream* s) {
  return copy(to, reinterpret_cast<uint64_t>(from), n, s);
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t n, Stream* s) {
  return copy(reinterpret_cast<uint64_t>(to), from, n, s);
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, Stream* s) {
  return copy(to, from, n, s);
}
int cuMemsetD8Async(uint64_t p, unsigned char v, size_t n, Stream* s) {
  if (nothing_runs && n > (1 << 20)) return kOk;
  return put(s, [=] { return std::memset(reinterpret_cast<void*>(p), v, n), kOk; });
}
int cuStreamCreate(Stream** s, unsigned) { return *s = new Stream, streams.push_back(*s), kOk; }
int cuStreamSynchronize(Stream* s) { return s->capturing ? 900 : kOk; }
int cuStreamQuery(Stream* s) { return s->capturing ? 900 : kOk; }
int cuStreamWaitEvent(Stream* s, Event* e, unsigned) {
  if (!e->graph) return kOk;
  s->capturing = e->graph;
  for (size_t a : e->after)
    if (std::find(s->after.begin(), s->after.end(), a) == s->after.end()) s->after.push_back(a);
  return kOk;
}
int cuStreamBeginCapture_v2(Stream* s, int) {
  return s->capturing = new Graph, s->after.clear(), kOk;
}
int cuStreamEndCapture(Stream* s, Graph** g) {
  *g = s->capturing;
  std::vector<size_t> joined = s->after;  // every step must lead to the end of this stream
  for (size_t i = 0; i < joined.size(); ++i)
    for (size_t a : (*g)->steps[joined[i]].after)
      if (std::find(joined.begin(), joined.end(), a) == joined.end()) joined.push_back(a);
  bool all = joined.size() == (*g)->steps.size();
  for (Stream* other : streams)
    if (other->capturing == *g) other->capturing = nullptr, other->after.clear();
  return all ? kOk : 904;  // CUDA_ERROR_STREAM_CAPTURE_UNJOINED
}
int cuEventCreate(Event** e, unsigned) { return *e = new Event, kOk; }
int cuEventDestroy_v2(Event* e) { return delete e, kOk; }
int cuEventRecord(Event* e, Stream* s) {
  return e->graph = s ? s->capturing : nullptr, e->after = s ? s->after : std::vector<size_t>{},
         kOk;
}
int cuEventQuery(void*) { return kOk; }
int cuEventSynchronize(void*) { return kOk; }
int cuEventElapsedTime_v2(float* ms, void*, void*) { return *ms = 0.1f, kOk; }
int cuEventElapsedTime(float* ms, void*, void*) { return *ms = 0.1f, kOk; }
int cuModuleLoadData(Module** m, const void* image) {
  if (nothing_runs) return *m = new Module{nullptr, false}, kOk;
  std::string source = static_cast<const char*>(image);
  std::string own = source.substr(std::min(source.size(), ingot::cuda_prelude().size()));
  bool fibers = own.find("__syncthreads") != std::string::npos ||
                own.find("ig_shuffle") != std::string::npos ||
                own.find("ig_from_lane0") != std::string::npos;
  void* library = build(source);
  if (!library) return 300;
  *m = new Module{library, fibers};
  return kOk;
}
int cuModuleGetFunction(Function** f, Module* m, const char* name) {
  auto* made = new Function;
  made->name = name;
  made->argument_bytes = 112;
  if (nothing_runs) return *f = made, kOk;
  made->run = reinterpret_cast<void (*)(const void*)>(
      dlsym(m->library, ("run_" + std::string(name)).c_str()));
  auto size = reinterpret_cast<unsigned long (*)()>(
      dlsym(m->library, ("size_" + std::string(name)).c_str()));
  made->state = static_cast<void**>(dlsym(m->library, "ig_emu"));
  if (!made->run || !size || !made->state) return 500;
  made->argument_bytes = size();
  made->fibers = m->fibers;
  return *f = made, kOk;
}
int cuFuncSetAttribute(Function*, int, int v) { return v > 232448 ? kInvalid : kOk; }
int cuFuncGetAttribute(int* v, int, Function*) { return *v = 0, kOk; }
int cuLaunchKernel(Function* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, Stream* s, void** arguments, void**) {
  if (gx == 0 || gy != 1 || gz != 1 || bx == 0 || bx > 1024 || by != 1 || bz != 1 ||
      shared > 232448)
    return kInvalid;
  if (nothing_runs && f->name.find("ig_run_") == std::string::npos) return kOk;
  std::vector<char> argument(f->argument_bytes);
  std::memcpy(argument.data(), arguments[0], argument.size());
  if (nothing_runs)
    return put(s, [=] { return f->name.back() == '1' ? end_run(argument.data()) : kOk; });
  return put(s, [=] { return run_kernel(*f, gx, bx, shared, argument.data()); });
}
struct LaunchConfig {  // CUlaunchConfig
  unsigned gx, gy, gz, bx, by, bz, shared;
  Stream* stream;
};
int cuLaunchKernelEx(const LaunchConfig* c, Function* f, void** arguments, void** extra) {
  return cuLaunchKernel(f, c->gx, c->gy, c->gz, c->bx, c->by, c->bz, c->shared, c->stream,
                        arguments, extra);
}
int cuGraphInstantiateWithFlags(Graph** e, Graph* g, unsigned long long) {
  return ++graphs_made, *e = new Graph(*g), kOk;
}
int cuGraphLaunch(Graph* g, Stream*) {
  ++graph_launches;
  return run_graph(*g);
}
int cuGraphUpload(Graph*, Stream*) { return kOk; }
int cuGraphDestroy(Graph* g) { return delete g, kOk; }
int cuGraphExecDestroy(Graph* g) { return delete g, kOk; }

// --- NVRTC ---
int nvrtcVersion(int* a, int* b) { return *a = 13, *b = 0, kOk; }
int nvrtcCreateProgram(Program** p, const char* source, const char*, int, const char* const*,
                       const char* const*) {
  return *p = new Program{source}, kOk;
}
int nvrtcDestroyProgram(Program** p) { return delete *p, kOk; }
int nvrtcCompileProgram(Program*, int, const char* const*) { return kOk; }
int nvrtcGetCUBINSize(Program* p, size_t* n) { return *n = p->source.size() + 1, kOk; }
int nvrtcGetCUBIN(Program* p, char* out) {
  return std::memcpy(out, p->source.c_str(), p->source.size() + 1), kOk;
}
int nvrtcGetPTXSize(Program* p, size_t* n) { return nvrtcGetCUBINSize(p, n); }
int nvrtcGetPTX(Program* p, char* out) { return nvrtcGetCUBIN(p, out); }
int nvrtcGetProgramLogSize(Program*, size_t* n) { return *n = 1, kOk; }
int nvrtcGetProgramLog(Program*, char* out) { return *out = 0, kOk; }
const char* nvrtcGetErrorString(int) { return "an error of the fake compiler"; }
}
