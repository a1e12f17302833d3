// The executor: traces what is pending, finds or compiles its plan, binds buffers and launches.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "compile/plan.h"
#include "graph/engine.h"
#include "graph/node.h"

namespace ingot {

/// A pending program cut out of the recorded nodes, with what a plan needs to be bound to it.
struct Trace {
  std::vector<NodeRef> roots;  // holds what the others are reached from: handles may be dropped by
                               // other threads meanwhile
  std::vector<std::pair<NodeRef, Node*>>
      names;  // a pending node that a handle names, and the node whose whole buffer it reads
  std::vector<Node*> nodes;   // in recording order
  std::vector<Node*> leaves;  // computed values it reads
  std::vector<bool> donated;  // per leaf: nobody else holds it
  std::vector<uint8_t>
      role;  // per node: bit 0 output, bit 1 asked for as a copy (a view or a source), bit 2
             // a gradient may be asked through it later, bit 3 nothing outside refers to it
  std::vector<double> args;
  struct Number {
    size_t word;  // of the key
    uint32_t node;
  };
  std::vector<Number> numbers;                        // floating constants, in recording order
  std::vector<std::pair<uint32_t, int>> argument_of;  // those that are arguments: node, number
  std::vector<uint64_t> seeds, offsets;
  std::vector<uint64_t> key;
};

constexpr uint8_t kDies = 8;  // Trace::role

/// Everything needed for `asked` and, with `live`, all pending values that handles name. Caller
/// holds the run mutex.
Trace make_trace(Recorder& rec, std::span<Node* const> asked, bool live);
Graph make_graph(const Trace& t);
/// Numbers that changed become arguments of the trace (numbers.h).
std::shared_ptr<Plan> plan_for(Trace& t);

/// Counters for tests and INGOT_DEBUG=plan.
struct PlanStats {
  int64_t compiled = 0, runs = 0;
};
PlanStats plan_stats();
void count_run();

/// What runs recorded nodes: make_engine() of graph/engine.h gives it.
Engine& executor();

// Settings of the process
bool fusion_enabled();
/// May float32 products on a GPU round their inputs to TF32?
bool tf32_allowed();

}  // namespace ingot
