// The engine: what computes recorded nodes. The graph and all that is written with it know this
// interface alone; compile/ implements it, and wiring/ says so.
#pragma once
#include <span>

#include "graph/node.h"

namespace ingot {

class Engine {
 public:
  virtual ~Engine() = default;

  /// See materialise(), run_pending(), flush_if_due() and check_runs() in graph/node.h.
  virtual void run(std::span<Node* const> nodes) = 0;
  virtual void run_pending() = 0;
  virtual void flush(Recorder& r) = 0;
  virtual void check(Device device, bool wait) = 0;
};

/// The process's engine, made at its first use.
Engine& engine();
/// Makes it. (wiring/wiring.cpp)
Engine& make_engine();

}  // namespace ingot
