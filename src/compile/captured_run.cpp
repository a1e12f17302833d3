// A run that a capture keeps, and its repetition.
#include "compile/capture.h"
#include "compile/run.h"
#include "compile/watch.h"
#include "ingot/error.h"

namespace ingot {

CapturedRun captured_run(const Trace& t, const std::shared_ptr<Plan>& plan,
                         std::span<Storage* const> leaves, const std::vector<Ref<Storage>>& out) {
  CapturedRun r{plan,
                {},
                {},
                out,
                {t.leaves.begin(), t.leaves.end()},
                {},
                t.args,
                {},
                t.seeds,
                t.offsets,
                sites_of(*plan, t)};
  for (Storage* l : leaves) r.leaves.emplace_back(l);
  for (const PlanOutput& o : plan->outputs)
    for (size_t i = 0; o.assign && o.donated < 0 && i < t.leaves.size(); ++i)
      if (t.nodes[o.node]->in[0] == t.leaves[i]) r.copied.push_back(static_cast<int>(i));
  for (Node* n : t.nodes)
    if (n->op == Op::Arg) r.arg_sources.push_back(n->attrs.as<ArgAttrs>().source);
  r.arg_sources.resize(r.args.size());  // the others are numbers, which stay as they were
  return r;
}

void count_captured(CapturedRun& r, int by) {
  for (auto* list : {&r.leaves, &r.outputs})
    for (Ref<Storage>& s : *list) s->captured += static_cast<uint32_t>(by);
}

void run_captured(const CapturedRun& r, const Plan& plan, std::span<const Ref<Storage>> leaves,
                  std::span<const Ref<Storage>> outputs, std::span<const double> args,
                  std::span<const uint64_t> seeds, std::span<const uint64_t> offsets) {
  std::vector<Storage*> in;
  for (const Ref<Storage>& l : leaves) in.push_back(l.get());
  RunArgs a{args.data(),
            seeds.data(),
            offsets.data(),
            nullptr,
            static_cast<int>(args.size()),
            static_cast<int>(seeds.size()),
            true};
  Run::Tickets tickets;
  count_run();
  Run run(plan, in, outputs);
  RunStatus status;
  try {
    status = run(a, tickets);
  } catch (const OutOfMemory& e) {
    if (!run.has_overwritten()) throw;
    throw OutOfMemory(e.reason() +
                          "; the captured call was updating tensors in place and stopped half-way: "
                          "what it assigns must be restored, from a checkpoint for example",
                      e.requested, e.in_use, e.limit);
  }
  for (auto& [d, ticket] : tickets) watch_run(d, ticket, r.sites);
  if (status.code) throw failure_of(status, r.sites);
}

}  // namespace ingot
