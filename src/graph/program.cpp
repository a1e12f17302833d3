#include "graph/program.h"

#include "base/fork.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>

namespace ingot {
namespace {

bool may_be_written(const Node& n) {
  if (n.computed.load(std::memory_order_acquire)) return false;
  switch (n.op) {
    case Op::Leaf:
    case Op::Random:
    case Op::Gather:
    case Op::ScatterAdd:
    case Op::Scatter:
    case Op::Linalg:
    case Op::Assign:
    case Op::Program:
      return false;
    default:
      return true;
  }
}

class Writer {
 public:
  Writer(std::span<Node* const> inputs, std::vector<Program::Argument>& args) : args_(args) {
    for (Node* n : inputs)
      one_each_ = number_.try_emplace(n, -1 - static_cast<int>(count_++)).second && one_each_;
  }

  std::shared_ptr<Program> operator()(std::span<Node* const> assigned) {
    auto p = std::make_shared<Program>();
    p->inputs = count_;
    if (!one_each_ || !find(assigned)) return nullptr;
    for (const Node* n : steps_) number(*n, *p);
    for (const Node* a : assigned) {
      if (!number_.contains(a->in[0])) return nullptr;
      auto before = std::partition_point(steps_.begin(), steps_.end(),
                                         [&](const Node* n) { return n->op == Op::Arg || n->seq < a->seq; });
      p->results.push_back(
          {number_.at(a->in[1]), static_cast<size_t>(before - steps_.begin()) - args_.size()});
    }
    return p;
  }

 private:
  bool find(std::span<Node* const> assigned) {
    std::vector<const Node*> todo;
    for (const Node* a : assigned) todo.push_back(a->in[1]);
    while (!todo.empty()) {
      const Node* n = todo.back();
      todo.pop_back();
      if (!number_.try_emplace(n, 0).second) continue;
      if (!may_be_written(*n)) return false;
      steps_.push_back(n);
      for (const Node* i : n->inputs()) todo.push_back(i);
    }
    // Arguments first: they are inputs.
    std::sort(steps_.begin(), steps_.end(), [](const Node* a, const Node* b) {
      bool x = a->op != Op::Arg, y = b->op != Op::Arg;
      return x != y ? x < y : a->seq < b->seq;
    });
    return true;
  }

  void number(const Node& n, Program& p) {
    if (n.op == Op::Arg) {
      number_[&n] = -1 - static_cast<int>(count_++);
      args_.push_back({n.ext ? n.ext->arg_source : nullptr, n.dtype, n.device});
      return;
    }
    ProgramStep s{n.op, n.dtype, n.device, n.mask, n.imm_i, n.imm_f, n.shape, {}, {}, {}};
    if (n.ext) s.d0 = n.ext->d0, s.d1 = n.ext->d1;
    for (const Node* i : n.inputs()) s.in.push_back(number_.at(i));
    number_[&n] = static_cast<int>(p.steps.size());
    p.steps.push_back(std::move(s));
  }

  std::unordered_map<const Node*, int> number_;
  std::vector<const Node*> steps_;
  std::vector<Program::Argument>& args_;
  size_t count_ = 0;
  bool one_each_ = true;
};

std::vector<int64_t> content(const Program& p) {
  std::vector<int64_t> w{static_cast<int64_t>(p.inputs)};
  auto put = [&](const Dims& d) {
    w.push_back(d.size());
    w.insert(w.end(), d.begin(), d.end());
  };
  for (const ProgramStep& s : p.steps) {
    int64_t bits;
    std::memcpy(&bits, &s.imm_f, sizeof bits);
    for (int64_t v : {static_cast<int64_t>(s.op), static_cast<int64_t>(s.dtype),
                      static_cast<int64_t>(s.device.type()), static_cast<int64_t>(s.device.index()),
                      static_cast<int64_t>(s.mask), s.imm_i, bits, static_cast<int64_t>(s.in.size())})
      w.push_back(v);
    w.insert(w.end(), s.in.begin(), s.in.end());
    for (const Dims* d : {&s.shape, &s.d0, &s.d1}) put(*d);
  }
  for (const Program::Result& r : p.results) {
    w.push_back(r.value);
    w.push_back(static_cast<int64_t>(r.after));
  }
  return w;
}

}  // namespace

std::shared_ptr<const Program> write_program(std::span<Node* const> inputs, std::span<Node* const> assigned,
                                             std::vector<Program::Argument>& args) {
  args.clear();
  std::shared_ptr<Program> p = Writer(inputs, args)(assigned);
  // A node counts its inputs in 16 bits.
  if (!p || inputs.size() + args.size() > 0xffff) return nullptr;
  for (const Program::Argument& a : args)
    if (!a.source) return nullptr;
  struct Known {
    ForkMutex<ForkOrder::Small> mutex;
    std::map<std::vector<int64_t>, std::shared_ptr<const Program>> all;
  };
  static Known* known = new Known;  // as long as plans live
  std::lock_guard lock(known->mutex);
  auto [at, fresh] = known->all.try_emplace(content(*p), nullptr);
  if (fresh) {
    p->id = static_cast<int64_t>(known->all.size());
    at->second = p;
  }
  return at->second;
}

NodeRef record_program(const std::shared_ptr<const Program>& p, std::span<Node* const> inputs,
                       const SourceLoc& loc) {
  Attrs a;
  a.i = p->id;
  NodeRef n = record_list(Op::Program, inputs, a, loc);
  n->extra().program = p;
  return n;
}

}  // namespace ingot
