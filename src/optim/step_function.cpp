// A plain step of a group is the same ops on the same tensors every time. They are recorded as a
// function the first time (graph/recorded_function.h); after that a step is one node and one
// assignment for each tensor it changes.
#include "graph/recorded_function.h"

#include "optim/update.h"

namespace ingot::optim {

struct StepFunction {
  struct Read {
    Cell* cell;  // null: the gradient of the tensor before it
    DType dtype;
    Device device;
    Dims shape;
  };
  struct Change {
    size_t read;  // which of the reads is assigned
    bool parameter;
  };
  std::vector<Read> reads;
  std::vector<Change> changes;
  std::vector<RecordedFunction::Argument> args;
  bool momentum_moves = false;
  std::shared_ptr<const RecordedFunction> function;  // null: the step cannot be one node

  bool fits(const std::vector<NodeRef>& nodes, const std::vector<Cell*>& cells) const {
    if (nodes.size() != reads.size()) return false;
    for (size_t i = 0; i < nodes.size(); ++i)
      if (reads[i].cell != cells[i] || reads[i].dtype != nodes[i]->dtype ||
          reads[i].device != nodes[i]->device || !(reads[i].shape == nodes[i]->shape))
        return false;
    return true;
  }
};

namespace {

using Group = Optimizer::Group;
using Update = Optimizer::Update;

struct Reads {
  std::vector<NodeRef> nodes;
  std::vector<Cell*> cells;
  std::vector<Update::Gradient> gradients;

  explicit Reads(const Group& group) {
    const size_t most = 4 * group.slots.size() + 2 * group.counts.size();
    nodes.reserve(most);
    cells.reserve(most);
    gradients.reserve(group.slots.size());
    std::vector<bool> counted(group.counts.size());
    for (const Slot& s : group.slots) {
      const Tensor g = s.param.grad();
      if (!g.defined()) continue;
      counted[s.count] = true;
      add(s.param);
      nodes.push_back(g.cell()->current());
      cells.push_back(nullptr);
      gradients.push_back({s.param, nodes.back().get(), {}});
      for (const Tensor& t : s.state) add(t);
      if (s.master.defined()) add(s.master);
    }
    for (size_t i = 0; i < counted.size(); ++i) {
      if (!counted[i]) continue;
      add(group.counts[i].steps);
      if (group.product) add(group.counts[i].product);
    }
  }

 private:
  void add(const Tensor& t) {
    cells.push_back(t.cell());
    nodes.push_back(t.cell()->current());
  }
};

// `recorded` is the step op by op; its nodes are released when the function replaces them.
std::shared_ptr<StepFunction> make_step(const Group& group, const Reads& reads,
                                        const Update& recorded) {
  auto p = std::make_shared<StepFunction>();
  p->momentum_moves = group.momentum_moves;
  for (size_t i = 0; i < reads.nodes.size(); ++i) {
    const Node& n = *reads.nodes[i];
    p->reads.push_back({reads.cells[i], n.dtype, n.device, n.shape});
  }
  std::vector<Node*> assigned;
  for (const Update::Change& c : recorded.changes) {
    size_t read = 0;
    while (read < reads.cells.size() && reads.cells[read] != c.cell.get()) ++read;
    if (read == reads.cells.size()) return p;
    p->changes.push_back({read, c.parameter});
    assigned.push_back(c.after.get());
  }
  p->function = make_function(pointers(reads.nodes), assigned, p->args);
  return p;
}

void record_step(const StepFunction& p, std::vector<NodeRef> nodes, Update& update) {
  for (const RecordedFunction::Argument& a : p.args)
    nodes.push_back(record_argument(a.source, a.dtype, a.device, update.loc));
  NodeRef all = record_call(p.function, pointers(nodes), update.loc);
  update.changes.reserve(update.changes.size() + p.changes.size());
  ResultAttrs which;
  for (const StepFunction::Change& c : p.changes) {
    NodeRef after = record(Op::Assign, {nodes[c.read], all}, {which}, update.loc);
    ++which.index;
    update.changes.push_back({CellRef(p.reads[c.read].cell), std::move(after), c.parameter});
  }
}

}  // namespace

void record_group(Group& group, Update& update, const std::function<void(Update&)>& op_by_op) {
  group.follow_parameters();
  // What is not plain (a verdict, a factor, averages), or would run eagerly, is recorded op by op.
  if (update.good.defined() || update.factor.defined() || !update.averages.empty() ||
      !group.on_one_device() || is_eager())
    return op_by_op(update);
  Reads reads(group);
  if (reads.nodes.empty()) return;
  std::shared_ptr<StepFunction>& step = group.step;
  if (!step || step->momentum_moves != group.momentum_moves ||
      !step->fits(reads.nodes, reads.cells)) {
    Update recorded;
    recorded.loc = update.loc;
    op_by_op(recorded);
    step = make_step(group, reads, recorded);
  }
  if (!step->function) return op_by_op(update);
  for (Update::Gradient& g : reads.gradients) update.gradients.push_back(std::move(g));
  record_step(*step, std::move(reads.nodes), update);
}

}  // namespace ingot::optim
