// RecordedFunction: ops that are recorded again and again in the same order, an optimiser's update
// say, kept once. From then on they are one node, Op::Call, that costs one node to record, to key
// and to release. Only when a plan is made are its ops seen again (compile/trace.cpp inlines
// them). Results are read by Assign nodes alone, whose ResultAttrs say which one.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "graph/node.h"

namespace ingot {

struct RecordedStep {
  Op op;
  OpSpec spec;
  std::vector<int> in;  // an earlier step's number, or -1 - k for input k of the function
};

struct RecordedFunction {
  struct Result {
    int value;     // as RecordedStep::in
    size_t after;  // how many steps were recorded before it was assigned
  };
  /// Functions have the same id exactly if they have the same content, so it represents the content
  /// in a plan's key.
  int64_t id = 0;
  std::vector<RecordedStep> steps;
  std::vector<Result> results;
  /// Numbers that may change from run to run: the last inputs, to be recorded anew each time.
  struct Argument {
    std::shared_ptr<const double> source;
    DType dtype;
    Device device;
  };
  size_t inputs = 0;  // those before the arguments
};

/// What was recorded on the way from `inputs` to the Assign nodes `assigned`, with `args` filled in
/// order. Null where one node cannot replace it: it reads something else, draws random numbers,
/// or holds an op that may fail while it runs, whose line an error would have to name.
std::shared_ptr<const RecordedFunction> make_function(
    std::span<Node* const> inputs, std::span<Node* const> assigned,
    std::vector<RecordedFunction::Argument>& args);
/// A call of the function on these inputs (arguments included), as a node.
NodeRef record_call(const std::shared_ptr<const RecordedFunction>& f, std::span<Node* const> inputs,
                    const SourceLoc& loc);

}  // namespace ingot
