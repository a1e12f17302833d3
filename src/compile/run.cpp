#include "compile/run.h"

#include <algorithm>
#include <memory>

#include "compile/launch_times.h"

namespace ingot {
namespace {

void copy(const Step& s, void* const* at) {
  Backend *to = backend_for(s.device.type()), *from = backend_for(s.from.type());
  if (to == from && (s.device == s.from || to->host_visible()))
    to->copy_on_device(s.device.index(), at[0], at[1], s.bytes);
  else if (from->host_visible())
    to->copy_from_host(s.device.index(), at[0], at[1], s.bytes);
  else
    from->copy_to_host(s.from.index(), at[0], at[1], s.bytes);
}

}  // namespace

RunStatus Run::operator()(RunArgs args, Tickets& tickets) {
  // Every plan takes the arenas in one order (PlanArena's), so that two runs never wait for each
  // other.
  std::vector<std::unique_ptr<ArenaLease>> leases;
  std::vector<char*> arena;
  for (const PlanArena& a : p_.arenas) {
    leases.push_back(std::make_unique<ArenaLease>(a.device, a.bytes));
    arena.push_back(static_cast<char*>(leases.back()->data()));
  }
  repeated_ = args.captured;
  RunStatus status;
  args.status = &status;
  if (is_dry_run()) return status;
  bind(arena);
  // Consecutive steps on one device are submitted together; copies between devices separate them.
  for (size_t s = 0; s < p_.steps.size();) {
    if (p_.steps[s].kind == Step::Copy) {
      overwrites_ = overwrites_ || overwrites(p_.steps[s]);
      timed_copy(s);
      ++s;
      continue;
    }
    size_t e = s;
    Device d = p_.steps[s].device;
    while (e < p_.steps.size() && p_.steps[e].kind != Step::Copy && p_.steps[e].device == d) ++e;
    if (backend_for(d.type())->host_visible()) e = before_overwriting(s, e);
    if (launches_are_timed())
      timed_steps(s, e, args);
    else
      hand_over(s, e, args, tickets, status);
    s = e;
  }
  if (status.code) {  // it is raised at once, and not again later
    ask(tickets, status);
    tickets.clear();
  }
  return status;
}

// Steps [s, e), all on one device.
void Run::hand_over(size_t s, size_t e, RunArgs& args, Tickets& tickets, RunStatus& status) {
  Device d = p_.steps[s].device;
  Backend* b = backend_for(d.type());
  if (b->host_visible()) ask(tickets, status);
  auto before =
      std::find_if(tickets.begin(), tickets.end(), [&](const auto& t) { return t.first == d; });
  args.continues = before != tickets.end();
  uint64_t ticket =
      b->run(d.index(), p_.id * kPartsOfPlan + s % kPartsOfPlan, {&items_[s], e - s}, args);
  // The last part of a run on a device answers for those before it.
  if (args.continues) before->second = ticket;
  if (ticket && !args.continues) tickets.emplace_back(d, ticket);
}

bool Run::overwrites(const Step& s) const {
  return std::any_of(s.buffers.begin(), s.buffers.end(), [&](const Binding& b) {
    // A captured call keeps the buffers of what it assigned the first time, and writes to them
    // again.
    return b.place == Binding::Output &&
           (p_.outputs[b.index].donated >= 0 || (repeated_ && outputs_[b.index]->captured));
  });
}

// Where the steps from s on that leave all leaves as they are end; all of them once one does not.
size_t Run::before_overwriting(size_t s, size_t e) {
  if (overwrites_ || (overwrites_ = overwrites(p_.steps[s]))) return e;
  size_t at = s;
  while (at < e && !overwrites(p_.steps[at])) ++at;
  return at;
}

// What other devices have failed at so far must be known to one that computes at once: it would
// assign.
void Run::ask(const Tickets& tickets, RunStatus& status) const {
  if (p_.sites.empty()) return;
  for (const auto& [d, ticket] : tickets) {
    RunStatus other;
    if (backend_for(d.type())->poll(d.index(), ticket, true, other) && other.code && !status.code)
      status = other;
  }
}

// Each step's time beside what its bytes and flops should take: INGOT_DEBUG=time, Profile.
void Run::timed_steps(size_t begin, size_t end, const RunArgs& args) {
  Device d = p_.steps[begin].device;
  Backend* b = backend_for(d.type());
  std::vector<double> us;
  b->synchronize(d.index());
  const double start = clock_us();
  if (!b->run_timed(d.index(), {&items_[begin], end - begin}, args, us))
    for (size_t s = begin; s < end; ++s) {
      const double before = clock_us();
      b->launch(d.index(), *p_.steps[s].exe, items_[s].buffers, items_[s].scratch, args);
      b->synchronize(d.index());
      us.push_back(clock_us() - before);
    }
  report_launch_times({&p_.steps[begin], end - begin}, start, us);
}

void Run::timed_copy(size_t s) {
  const double start = clock_us();
  copy(p_.steps[s], items_[s].buffers);
  if (launches_are_timed()) report_launch_times({&p_.steps[s], 1}, start, {clock_us() - start});
}

void* Run::address(const Binding& b, const std::vector<char*>& arena) const {
  switch (b.place) {
    case Binding::Arena:
      return arena[b.index] + b.offset;
    case Binding::Leaf:
      return leaves_[b.index]->data;
    case Binding::Output:
      return outputs_[b.index]->data;
  }
  return nullptr;
}

void Run::bind(const std::vector<char*>& arena) {
  size_t n = 0;
  for (const Step& s : p_.steps) n += s.buffers.size();
  addresses_.resize(n);
  items_.resize(p_.steps.size());
  void** at = addresses_.data();
  for (size_t i = 0; i < p_.steps.size(); ++i) {
    const Step& s = p_.steps[i];
    items_[i] = {s.exe.get(), at, static_cast<int>(s.buffers.size()), nullptr};
    for (const Binding& b : s.buffers) *at++ = address(b, arena);
    if (s.exe && s.exe->scratch_bytes)
      for (size_t a = 0; a < p_.arenas.size(); ++a)
        if (p_.arenas[a].device == s.device) items_[i].scratch = arena[a] + s.scratch;
  }
}

}  // namespace ingot
