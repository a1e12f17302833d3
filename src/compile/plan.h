// Plan: what one run does, ready to be bound to buffers and launched. Made once per structure,
// replayed after.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "compile/decompose.h"
#include "compile/ir.h"
#include "runtime/backend.h"

namespace ingot {

/// Where a buffer of a step is stored.
struct Binding {
  enum Place : uint8_t { Arena, Leaf, Output } place = Arena;
  int index = 0;      // leaf or output number
  size_t offset = 0;  // Arena: bytes from its start
};

struct Step {
  enum Kind : uint8_t {
    Kernel,
    Library,
    Copy
  } kind = Kernel;  // Copy: buffers[0] := buffers[1], `bytes` of them
  Device device{DeviceType::CPU, 0};
  Device from{DeviceType::CPU, 0};  // Copy: device of the source
  std::unique_ptr<Executable> exe;
  std::vector<Binding> buffers;
  size_t scratch = 0;  // arena offset
  size_t bytes = 0;

  // For explain.
  std::vector<KernelSpec> parts, second;
  LibrarySpec library;
  std::vector<int> vals;  // what each buffer is
  double bytes_read = 0, bytes_written = 0, flops = 0;
  std::string label;
};

struct PlanOutput {
  int node = -1;  // traced node that gets the buffer
  size_t bytes = 0;
  Device device{DeviceType::CPU, 0};
  int donated = -1;  // takes the buffer of this leaf
  bool assign = false;
};

struct PlanArena {
  Device device{DeviceType::CPU, 0};
  size_t bytes = 0;
};

struct Plan {
  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan();  // the devices forget it too

  uint64_t id = 0;
  size_t bytes = 0;               // what it holds, kernels included, once the cache has it
  std::atomic<uint64_t> used{0};  // the cache's stamp of its last use
  std::vector<uint64_t> key;
  std::vector<Step> steps;
  std::vector<PlanOutput> outputs;
  std::vector<PlanArena> arenas;
  std::vector<int> sites;  // values of the graph that may raise an index error
  int launches = 0;
  // What explain prints besides the steps.
  struct Value {
    int val;
    std::string what;  // op and shape
    size_t bytes, offset;
    int first, last;  // steps
  };
  std::vector<Value> arena_values;
  std::vector<DecomposedCall> decomposed;
  Graph graph;
};

struct CompileOptions {
  bool fuse = true;
  bool tf32 = false;          // products of float32 may round their inputs to TF32
  std::vector<bool> donated;  // per leaf: nobody else needs it after this run
};

/// Compiles a graph. Nothing is allocated on the device and nothing runs.
std::shared_ptr<Plan> compile_plan(Graph g, const CompileOptions& options);

/// Names a step and counts the bytes and operations it takes.
void describe_step(const Graph& g, Step& s);

/// Places temporaries in the arenas. Each has a size, a first and a last step.
struct Temporary {
  size_t bytes;
  int first, last;
  int arena;
  size_t offset = 0;  // result
};
/// Sets the offsets; returns the size of each arena.
std::vector<size_t> place_temporaries(std::vector<Temporary>& temps, int arenas);

}  // namespace ingot
