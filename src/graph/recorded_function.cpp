#include "graph/recorded_function.h"

#include "base/fork.h"
#include "graph/cell.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_map>

namespace ingot {
namespace {

bool may_be_step(const Node& n) {
  const bool special =
      n.op == Op::Leaf || n.op == Op::Random || n.op == Op::Assign || n.op == Op::Call;
  return !special && !info(n.op).may_fail && !n.computed.load(std::memory_order_acquire);
}

class Writer {
 public:
  Writer(std::span<Node* const> inputs, std::vector<RecordedFunction::Argument>& args)
      : args_(args) {
    for (Node* n : inputs)
      one_each_ = number_.try_emplace(n, -1 - static_cast<int>(count_++)).second && one_each_;
  }

  std::shared_ptr<RecordedFunction> operator()(std::span<Node* const> assigned) {
    auto p = std::make_shared<RecordedFunction>();
    p->inputs = count_;
    if (!one_each_ || !find(assigned)) return nullptr;
    for (const Node* n : steps_) number(*n, *p);
    for (const Node* a : assigned) {
      if (!number_.contains(a->in[0])) return nullptr;
      auto before = std::partition_point(steps_.begin(), steps_.end(), [&](const Node* n) {
        return n->op == Op::Arg || n->seq < a->seq;
      });
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
      if (!may_be_step(*n)) return false;
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

  void number(const Node& n, RecordedFunction& p) {
    if (n.op == Op::Arg) {
      number_[&n] = -1 - static_cast<int>(count_++);
      args_.push_back({n.attrs.as<ArgAttrs>().source, n.dtype, n.device});
      return;
    }
    RecordedStep s{n.op, spec_of(n), {}};
    for (const Node* i : n.inputs()) s.in.push_back(number_.at(i));
    number_[&n] = static_cast<int>(p.steps.size());
    p.steps.push_back(std::move(s));
  }

  std::unordered_map<const Node*, int> number_;
  std::vector<const Node*> steps_;
  std::vector<RecordedFunction::Argument>& args_;
  size_t count_ = 0;
  bool one_each_ = true;
};

std::vector<int64_t> content(const RecordedFunction& p) {
  std::vector<int64_t> w{static_cast<int64_t>(p.inputs)};
  std::vector<uint64_t> attrs;
  for (const RecordedStep& s : p.steps) {
    const OpSpec& o = s.spec;
    for (int64_t v : {static_cast<int64_t>(s.op), static_cast<int64_t>(o.dtype),
                      static_cast<int64_t>(o.device.type()), static_cast<int64_t>(o.device.index()),
                      static_cast<int64_t>(s.in.size()), static_cast<int64_t>(o.shape.size())})
      w.push_back(v);
    w.insert(w.end(), s.in.begin(), s.in.end());
    w.insert(w.end(), o.shape.begin(), o.shape.end());
    attrs.clear();
    o.attrs.append_words(attrs);
    w.insert(w.end(), attrs.begin(), attrs.end());
  }
  for (const RecordedFunction::Result& r : p.results) {
    w.push_back(r.value);
    w.push_back(static_cast<int64_t>(r.after));
  }
  return w;
}

}  // namespace

std::shared_ptr<const RecordedFunction> make_function(
    std::span<Node* const> inputs, std::span<Node* const> assigned,
    std::vector<RecordedFunction::Argument>& args) {
  args.clear();
  std::shared_ptr<RecordedFunction> p = Writer(inputs, args)(assigned);
  // A node counts its inputs in 16 bits.
  if (!p || inputs.size() + args.size() > 0xffff) return nullptr;
  for (const RecordedFunction::Argument& a : args)
    if (!a.source) return nullptr;
  struct Known {
    ForkMutex<ForkOrder::Small> mutex;
    std::map<std::vector<int64_t>, std::shared_ptr<const RecordedFunction>> all;
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

NodeRef record_call(const std::shared_ptr<const RecordedFunction>& f, std::span<Node* const> inputs,
                    const SourceLoc& loc) {
  return record_list(Op::Call, inputs, {CallAttrs{f, f->id}}, loc);
}

}  // namespace ingot
