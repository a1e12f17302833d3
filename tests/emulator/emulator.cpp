// See emulator.h. Texts are compiled in two processes at a time; a text whose file is in the cache
// is not compiled.
#include "emulator/emulator.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "emulator/cuda_state.h"
#include "emulator/fibers.h"

namespace ingot::test {
namespace fs = std::filesystem;
namespace {

const char* const kCompile =
    "g++ -std=c++17 -O0 -w -shared -fPIC -fno-strict-aliasing -fwrapv -ffp-contract=off ";

std::string cache_folder() {
  const char* named = std::getenv("INGOT_EMULATOR_CACHE");
  fs::path p = named != nullptr ? fs::path(named) : fs::current_path() / "emulator_cache";
  fs::create_directories(p);
  return p.string();
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

std::string builtins() {
  static const std::string text = read_file(INGOT_EMULATOR_DIR "/cuda_builtins.h");
  if (text.empty())
    throw std::runtime_error("emulator: cannot read " INGOT_EMULATOR_DIR "/cuda_builtins.h");
  return text;
}

/// Changes when anything but the kernels' own texts does.
std::string generation() {
  static const std::string g =
      std::to_string(std::hash<std::string>{}(builtins() + cuda_prelude() + kCompile));
  return g;
}

/// For the shell: a checkout's path may have blanks and anything else in it.
std::string for_shell(const std::string& path) {
  std::string s = "'";
  for (char c : path) s += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return s + "'";
}

void write_atomically(const std::string& path, const std::string& text) {
  std::string part = path + "." + std::to_string(getpid());
  std::ofstream(part, std::ios::binary) << text;
  fs::rename(part, path);
}

}  // namespace

Emulator& Emulator::get() {
  static const std::string first =
      generation();  // made before the emulator, so that it outlives it
  static Emulator e;
  return e;
}

/// A small file names the library that holds a text.
std::string Emulator::file_of(const CudaText& text) const {
  return cache_folder() + "/" + text.key + "_" + generation();
}

void Emulator::add(const CudaText& text) {
  std::lock_guard lock(mutex_);
  if (library_.contains(text.key) || waiting_.contains(text.key)) return;
  std::string library = read_file(file_of(text));
  if (!library.empty() && fs::exists(cache_folder() + "/" + library)) {
    library_[text.key] = library;
    return;
  }
  waiting_.emplace(text.key, text);
}

void Emulator::compile_file(const std::string& name, const std::vector<CudaText>& texts,
                            size_t begin, size_t end) const {
  std::string source = "#define IG_EMULATED 1\n" + builtins() + cuda_prelude();
  source +=
      "template <class P> static void ig_emu_call(void (*f)(P), const void* a) { f(*(const P*)a); "
      "}\n";
  for (size_t i = begin; i < end; ++i) {
    source += "namespace k" + std::to_string(i) + " {\n" + texts[i].body + "}\n";
    for (const CudaStage& s : texts[i].stages)
      source += "extern \"C\" void run_" + s.entry + "(const void* a) { ig_emu_call(k" +
                std::to_string(i) + "::" + s.entry + ", a); }\n";
  }
  std::string path = cache_folder() + "/" + name, part = path + "." + std::to_string(getpid());
  write_atomically(path + ".cpp", source);
  std::string command = kCompile + for_shell(path + ".cpp") + " -o " + for_shell(part) + " 2> " +
                        for_shell(path + ".log");
  if (std::system(command.c_str()) != 0)
    throw std::runtime_error("emulator: the compiler refuses " + path + ".cpp:\n" +
                             read_file(path + ".log").substr(0, 4000));
  fs::rename(part, path);
  for (size_t i = begin; i < end; ++i) write_atomically(file_of(texts[i]), name);
}

void Emulator::build() {
  std::lock_guard lock(mutex_);
  if (waiting_.empty()) return;
  std::vector<CudaText> texts;
  for (auto& [key, text] : waiting_) texts.push_back(std::move(text));
  waiting_.clear();
  size_t step = texts.size() < 8 ? texts.size() : std::min<size_t>((texts.size() + 1) / 2, 40);
  std::vector<std::string> names;
  std::vector<std::exception_ptr> failures((texts.size() + step - 1) / step);
  auto work = [&](size_t b) {
    try {
      compile_file(names[b], texts, b * step, std::min(texts.size(), (b + 1) * step));
    } catch (...) {
      failures[b] = std::current_exception();
    }
  };
  // Named after all it holds: another program may build a library that begins with the same text
  // meanwhile.
  for (size_t b = 0; b < failures.size(); ++b) {
    std::string keys;
    for (size_t i = b * step; i < std::min(texts.size(), (b + 1) * step); ++i) keys += texts[i].key;
    names.push_back("k" + std::to_string(std::hash<std::string>{}(keys)) + "_" + generation() +
                    ".so");
  }
  for (size_t b = 0; b < failures.size(); b += 2) {
    std::thread other;
    if (b + 1 < failures.size()) other = std::thread(work, b + 1);
    work(b);
    if (other.joinable()) other.join();
  }
  compiled_ += static_cast<int>(texts.size());
  for (auto& f : failures)
    if (f) std::rethrow_exception(f);
  for (size_t i = 0; i < texts.size(); ++i) library_[texts[i].key] = names[i / step];
}

Emulator::Entry Emulator::find(const CudaText& text, size_t stage) {
  const std::string& name = text.stages[stage].entry;
  if (auto at = entries_.find(name); at != entries_.end()) return at->second;
  add(text);
  build();
  const std::string& file = library_.at(text.key);
  void*& handle = loaded_[file];
  if (handle == nullptr)
    handle = dlopen((cache_folder() + "/" + file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw std::runtime_error(std::string("emulator: ") + dlerror());
  Entry e{reinterpret_cast<Kernel>(dlsym(handle, ("run_" + name).c_str())),
          static_cast<void**>(dlsym(handle, "ig_emu"))};
  if (e.kernel == nullptr || e.state == nullptr)
    throw std::runtime_error("emulator: " + file + " lacks " + name);
  return entries_[name] = e;
}

void Emulator::run(const CudaText& text, const CudaLaunch& launch, const CudaHeader& header) {
  std::lock_guard lock(mutex_);
  std::vector<int64_t> argument = launch.argument(header);
  for (size_t s = 0; s < text.stages.size(); ++s) {
    Entry e = find(text, s);
    // A block may not count on what shared memory holds at its start.
    std::vector<uint64_t> shared(launch.stages[s].shared_bytes / 8 + 2, 0x7ff7ff7f7ff7ff7full);
    IgEmuState state{};
    auto base = reinterpret_cast<uintptr_t>(shared.data());
    state.dynamic_shared = reinterpret_cast<unsigned char*>((base + 15) / 16 * 16);
    unsigned threads = text.stages[s].threads, grid = launch.stages[s].grid;
    state.block_dim = {threads, 1, 1};
    state.grid_dim = {grid, 1, 1};
    *e.state = &state;
    for (unsigned b = 0; b < grid; ++b) {
      state.block = {reversed ? grid - 1 - b : b, 0, 0};
      if (text.stages[s].barriers) {
        run_fibers(threads, state, [&] { e.kernel(argument.data()); });
      } else {
        for (unsigned t = 0; t < threads; ++t) {
          state.thread.x = t;
          e.kernel(argument.data());
        }
      }
    }
  }
}

}  // namespace ingot::test
