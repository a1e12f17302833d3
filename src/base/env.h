// The environment: every variable that Ingot reads, and the only functions that read them. env.cpp
// alone calls getenv, so that what is not in the table is not read; docs/environment.md is made
// from it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ingot::env {

/// Flag: "0" is off, anything else on. Number: a whole number of the range. Bytes: a number, or one
/// of MiB, GiB or TiB. Words: one word or several. Path: a file, a folder or several of them.
enum class Kind { Flag, Number, Bytes, Words, Path };

struct Variable {
  std::string_view name;
  Kind kind;
  std::string_view
      standard;  ///< what holds where it is not set; of flags "0" or "1", of numbers the number
  std::string_view purpose;
  std::string_view reader;
  int64_t least = 0, most = 0;  ///< of numbers
};

inline constexpr Variable kTable[] = {
    // Results and plans
    {"INGOT_EAGER", Kind::Flag, "0", "run each op at its own line", "graph"},
    {"INGOT_FUSE", Kind::Flag, "1", "fuse ops into kernels; 0: a kernel for each op", "compile"},
    {"INGOT_DEBUG", Kind::Words, "",
     "print the stages named, separated by commas: graph, fuse, memory, kernels, plan, time, text",
     "compile, CUDA"},
    {"INGOT_VERIFY", Kind::Flag, "0",
     "verify the graph after every set of rewrites, as debug builds do", "compile"},
    {"INGOT_PLAN_CACHE_MIB", Kind::Number, "256", "MiB of host memory that compiled plans may take",
     "compile", 0, int64_t{1} << 30},
    // The CPU
    {"INGOT_NUM_THREADS", Kind::Number, "0",
     "threads that the CPU devices use; 0: one for each core", "CPU", 0, INT32_MAX},
    {"INGOT_SIMD", Kind::Words, "", "run the loops of a lesser instruction set: avx2 or base",
     "CPU"},
    {"INGOT_JIT", Kind::Words, "", "0: make no machine code; all: for small kernels too", "CPU"},
    {"INGOT_DNNL", Kind::Flag, "1", "compute convolutions by oneDNN where it is found", "CPU"},
    {"INGOT_LAPACK", Kind::Flag, "1", "factorise by LAPACK where it is found", "CPU"},
    {"INGOT_WINOGRAD", Kind::Words, "",
     "convolve 3 x 3 windows by Winograd's tiles where that pays: gradients or all", "CPU"},
    // CUDA
    {"INGOT_CUDA_PLUGIN", Kind::Path, "libingot_cuda.so beside the library", "the plug-in's file",
     "runtime"},
    {"INGOT_CUDA_DRIVER", Kind::Path, "libcuda.so.1", "the driver's library", "CUDA"},
    {"INGOT_NVRTC", Kind::Path, "searched for", "NVRTC's library", "codegen"},
    {"INGOT_CUBLASLT", Kind::Path, "searched for", "cuBLASLt's library", "CUDA"},
    {"INGOT_CUDNN", Kind::Path, "searched for", "cuDNN's library", "CUDA"},
    {"INGOT_VENV", Kind::Path, "~/.cache/ingot/venv", "a Python environment with NVIDIA's packages",
     "codegen, CUDA, program"},
    {"INGOT_CACHE", Kind::Flag, "1", "keep compiled kernels and measured choices in files",
     "CUDA, program"},
    {"INGOT_CACHE_DIR", Kind::Path, "~/.cache/ingot", "the folder of those files", "CUDA, program"},
    {"INGOT_TUNE", Kind::Flag, "1", "measure which algorithms of the libraries are fastest",
     "CUDA"},
    {"INGOT_TUNING_FILE", Kind::Path, "a file in INGOT_CACHE_DIR",
     "the file of the measured choices", "CUDA"},
    {"INGOT_CUDA_GRAPH", Kind::Flag, "1", "launch runs as CUDA graphs; 0: kernel by kernel",
     "CUDA"},
    {"INGOT_CUDA_OVERLAP", Kind::Flag, "1", "let independent launches of a graph overlap", "CUDA"},
    {"INGOT_CUDA_EARLY", Kind::Flag, "1", "start a kernel before the one in front of it has ended",
     "CUDA"},
    {"INGOT_CUDA_VMM", Kind::Flag, "1", "grow the arena by mapping memory; 0: a block that moves",
     "CUDA"},
    // Files and the Python package
    {"INGOT_READ_LIMIT", Kind::Bytes, "0",
     "bytes that reading a file may take where its size allows less, as in 8GiB", "io"},
    {"INGOT_LEAK_CHECK", Kind::Words, "",
     "set to any value: report Python objects alive at the end", "Python"},
    // Others' variables
    {"HOME", Kind::Path, "", "the folder that ~ stands for", "codegen, CUDA, program"},
    {"VIRTUAL_ENV", Kind::Path, "", "as INGOT_VENV, after it", "codegen, CUDA"},
    {"CUDA_HOME", Kind::Path, "", "a CUDA toolkit", "codegen, CUDA"},
    {"CUDA_PATH", Kind::Path, "", "as CUDA_HOME, after it", "codegen, CUDA"},
    {"LD_LIBRARY_PATH", Kind::Path, "", "folders where `ingot doctor` looks for libraries",
     "program"},
    {"CUDA_VISIBLE_DEVICES", Kind::Words, "",
     "the GPUs that the driver shows; `ingot doctor` reports when it hides all", "program"},
};

/// Of its tests, measurements and tools: what begins so is not reported as unknown.
inline constexpr std::string_view kOfTests[] = {"INGOT_TEST_", "INGOT_BENCH", "INGOT_EMULATOR_",
                                                "INGOT_RANDOM_", "INGOT_SANITIZED"};

/// A name in the table; any other does not compile.
class Name {
 public:
  consteval Name(const char* name) {
    while (kTable[index_].name != name) ++index_;  // beyond the table is no constant expression
  }
  constexpr size_t index() const { return index_; }

 private:
  size_t index_ = 0;  // no address: a library loaded later may have a table of its own
};
/// A name of that kind.
template <Kind kind>
class NameOf : public Name {
 public:
  consteval NameOf(const char* name) : Name(name) {
    if (kTable[index()].kind != kind) throw "a variable of another kind";
  }
};

/// What it is set to. Each call reads the environment anew; so do all below but debug().
std::optional<std::string> text(Name v);
bool flag(NameOf<Kind::Flag> v);
/// What is no number of the range counts as not set and is reported, once.
int64_t number(NameOf<Kind::Number> v);
size_t bytes(NameOf<Kind::Bytes> v);
/// Is it set to this word?
bool is(NameOf<Kind::Words> v, std::string_view word);
std::optional<std::string> path(NameOf<Kind::Path> v);
/// Is this word in INGOT_DEBUG, as it was at the first call?
bool debug(std::string_view word);

}  // namespace ingot::env
