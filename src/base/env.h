// The environment: every variable that Ingot reads, and the only functions that read
// them. Only env.cpp calls getenv, so what is not in the table is not read;
// docs/environment.md is made from it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ingot::env {

/// Flag: "0" is off, anything else on. Number: an integer in the range. Bytes: a number, also of
/// MiB, GiB or TiB. Words: one word or several. Path: a file, a folder or several of them.
enum class Kind { Flag, Number, Bytes, Words, Path };

struct Variable {
  std::string_view name;
  Kind kind;
  std::string_view
      standard;  ///< used where it is not set; for flags "0" or "1", for numbers the number
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
     "verify the graph after every pass of the compiler, as debug builds do", "compile"},
    {"INGOT_PLAN_CACHE_MIB", Kind::Number, "256", "MiB of host memory that compiled plans may take",
     "compile", 0, int64_t{1} << 30},
    // The CPU
    {"INGOT_NUM_THREADS", Kind::Number, "0",
     "threads that the CPU devices use; 0: one for each core", "CPU", 0, INT32_MAX},
    {"INGOT_SIMD", Kind::Words, "", "use the loops of a smaller instruction set: avx2 or base",
     "CPU"},
    {"INGOT_JIT", Kind::Words, "", "0: generate no machine code; all: for small kernels too",
     "CPU"},
    {"INGOT_DNNL", Kind::Flag, "1", "compute convolutions by oneDNN where it is found", "CPU"},
    {"INGOT_LAPACK", Kind::Flag, "1", "factorise by LAPACK where it is found", "CPU"},
    {"INGOT_WINOGRAD", Kind::Words, "",
     "convolve 3 x 3 windows by Winograd's algorithm where that is faster: gradients or all",
     "CPU"},
    // CUDA
    {"INGOT_CUDA_PLUGIN", Kind::Path, "libingot_cuda.so beside the library", "the plug-in's file",
     "runtime"},
    {"INGOT_CUDA_DRIVER", Kind::Path, "libcuda.so.1", "the driver's library", "CUDA"},
    {"INGOT_NVRTC", Kind::Path, "searched for", "NVRTC's library", "CUDA"},
    {"INGOT_CUBLASLT", Kind::Path, "searched for", "cuBLASLt's library", "CUDA"},
    {"INGOT_CUDNN", Kind::Path, "searched for", "cuDNN's library", "CUDA"},
    {"INGOT_VENV", Kind::Path, "~/.cache/ingot/venv", "a Python environment with NVIDIA's packages",
     "CUDA, program"},
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
    {"INGOT_CUDA_EARLY", Kind::Flag, "1", "start a kernel before the previous one has ended",
     "CUDA"},
    {"INGOT_CUDA_VMM", Kind::Flag, "1", "grow the arena by mapping memory; 0: a block that moves",
     "CUDA"},
    // Files and the Python package
    {"INGOT_READ_LIMIT", Kind::Bytes, "0",
     "memory that reading a file may take beyond what its size allows, as in 8GiB", "io"},
    {"INGOT_LEAK_CHECK", Kind::Words, "", "set to any value: report Python objects alive at exit",
     "Python"},
    // Variables of other programs
    {"HOME", Kind::Path, "", "the home folder (~)", "CUDA, program"},
    {"VIRTUAL_ENV", Kind::Path, "", "like INGOT_VENV, tried after it", "CUDA"},
    {"CUDA_HOME", Kind::Path, "", "a CUDA toolkit", "CUDA"},
    {"CUDA_PATH", Kind::Path, "", "like CUDA_HOME, tried after it", "CUDA"},
    {"LD_LIBRARY_PATH", Kind::Path, "", "folders where `ingot doctor` looks for libraries",
     "program"},
    {"CUDA_VISIBLE_DEVICES", Kind::Words, "",
     "the GPUs that the driver shows; `ingot doctor` reports when it hides all", "program"},
};

/// Prefixes of its tests, benchmarks and tools: such variables are not reported as unknown.
inline constexpr std::string_view kOfTests[] = {"INGOT_TEST_", "INGOT_BENCH", "INGOT_EMULATOR_",
                                                "INGOT_RANDOM_", "INGOT_SANITIZED"};

/// A name in the table; any other does not compile.
class Name {
 public:
  consteval Name(const char* name) {
    while (kTable[index_].name != name) ++index_;  // past the table is not a constant expression
  }
  constexpr size_t index() const { return index_; }

 private:
  size_t index_ = 0;  // no address: a library loaded later may have its own table
};
/// A name of that kind.
template <Kind kind>
class NameOf : public Name {
 public:
  consteval NameOf(const char* name) : Name(name) {
    if (kTable[index()].kind != kind) throw "a variable of another kind";
  }
};

/// Its value. Each call reads the environment again; so do all below except debug().
std::optional<std::string> text(Name v);
bool flag(NameOf<Kind::Flag> v);
/// A value outside the range counts as not set and is reported once.
int64_t number(NameOf<Kind::Number> v);
size_t bytes(NameOf<Kind::Bytes> v);
/// Is it set to this word?
bool is(NameOf<Kind::Words> v, std::string_view word);
std::optional<std::string> path(NameOf<Kind::Path> v);
/// Is this word in INGOT_DEBUG, as it was at the first call?
bool debug(std::string_view word);

}  // namespace ingot::env
