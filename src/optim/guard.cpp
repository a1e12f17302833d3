// The verdict on a step and the record of the first bad one are values of the step's plan. Under
// Stop the verdict is sticky: no later step changes anything either, so that the bad one can be
// recomputed from the same parameters.
#include "ingot/optim/guard.h"

#include <deque>
#include <memory>

#include "graph/layer_log.h"
#include "graph/sync.h"
#include "ingot/autograd.h"
#include "ingot/capture.h"
#include "ingot/ops.h"
#include "ingot/runtime.h"
#include "optim/replay.h"
#include "optim/update.h"

namespace ingot::optim {
namespace {

// How many steps are kept on a device that runs ahead of the program: as many as a loop takes
// between two reads of its loss, unless their batches take too much memory.
constexpr size_t kMostSteps = 64, kFewestSteps = 4, kMostBytes = size_t{256} << 20;

}  // namespace

struct NanGuard::State {
  Optimizer& o;
  NanGuardOptions options;
  Tensor count, bad, first, what;  // 0-d float64: steps requested, bad ones, the first bad one's
                                   // number, 1: its loss, 2: its gradients
  std::deque<std::pair<int64_t, Replay>> steps;  // the last few, by index
  int64_t asked = 0, checked = 0;
  bool reading = false, reported = false;
  std::string text;
  std::shared_ptr<SyncListener> listener;
  SourceLoc loc;

  State(Optimizer& optimizer, const NanGuardOptions& opts) : o(optimizer), options(opts) {
    if (options.name_op) ++layer_log().wanted;
  }
  ~State() {
    if (options.name_op) --layer_log().wanted;
  }

  void forget_old(bool on_cpu) {
    size_t bytes = 0;
    for (const auto& [n, replay] : steps) bytes += replay.bytes();
    const size_t fewest = on_cpu ? 1 : kFewestSteps, most = on_cpu ? 1 : kMostSteps;
    while (steps.size() > most || (steps.size() > fewest && bytes > kMostBytes)) {
      bytes -= steps.front().second.bytes();
      steps.pop_front();
    }
  }

  // The device has been synchronised: is there a new verdict?
  void look() {
    if (reading || checked == asked || is_capturing()) return;
    reading = true;
    struct Done {
      bool& flag;
      ~Done() { flag = false; }
    } done{reading};
    const bool fresh = text.empty() && bad.item() > 0;
    checked = asked;
    if (!fresh) return steps.clear();
    const int64_t number = first.item<int64_t>();
    text = std::string(what.item() == 1 ? "the loss" : "the norm of the gradients") + " of step " +
           std::to_string(number) + " is not finite";
    bool found = false;
    for (const auto& [n, replay] : steps)
      if (n == number) text += replay.first_bad(), found = true;
    if (!found && options.name_op)
      text += "\n  the op cannot be named: the step is too far back; wait for the loss more often";
    steps.clear();
  }
  void raise() {
    if (options.policy != NonFinite::Stop || text.empty() || reported) return;
    reported = true;
    throw Error(
        ErrorKind::Value, "step", text, loc,
        "the step was not taken; lower the rate, clip the gradients, or check the op's operands");
  }
};

NanGuard::NanGuard(Optimizer& optimizer, const NanGuardOptions& options, SourceLoc where)
    : s_(std::make_shared<State>(optimizer, options)) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  NoGrad guard;
  s_->loc = loc;
  const Device device = optimizer.params()[0].device();
  for (Tensor* t : {&s_->count, &s_->bad, &s_->first, &s_->what}) *t = zeros({}, {float64, device});
  eval({s_->count, s_->bad, s_->first, s_->what}, loc);
  s_->listener = std::make_shared<SyncListener>([weak = std::weak_ptr<State>(s_)](const Device& d) {
    const std::shared_ptr<State> s = weak.lock();
    if (!s || s->reading || s->count.device() != d) return;
    s->look();
    s->raise();
  });
  on_synchronised(s_->listener);
}

NanGuard::~NanGuard() = default;

void NanGuard::step(const Tensor& loss, bool keep_gradients, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  NoGrad no_grad;
  State& s = *s_;
  s.loc = loc;
  if (loss.numel(loc) != 1)
    throw Error(ErrorKind::Shape, "step", "the loss must have one element", loc);
  const std::vector<Tensor> params = s.o.params();
  const Device device = s.count.device();
  ++s.asked;
  {
    Tensor fine_loss = isfinite(loss.detach().reshape({})).to(device),
           norm = get_total_norm(gradients_of(params, loc));
    Tensor finite = fine_loss & isfinite(norm).to(device);
    if (s.options.name_op) {
      std::vector<Tensor> roots{loss};
      for (const Tensor& p : params) roots.push_back(p.grad());
      s.steps.emplace_back(s.asked, Replay(roots, params, std::move(layer_log().calls)));
      layer_log().calls.clear();
      s.forget_old(device.is_cpu());
    }
    Tensor good = s.options.policy == NonFinite::Stop ? finite & (s.bad == 0.0) : finite;
    std::shared_ptr<Optimizer::Update> update = s.o.record(good, {}, loc),
                                       own = std::make_unique<Optimizer::Update>();
    own->loc = loc;
    Tensor number = s.count + 1.0, earlier = (s.bad > 0.0) | finite;
    own->assign(s.first, ingot::where(earlier, s.first, number), false);
    own->assign(s.what,
                ingot::where(earlier, s.what,
                             ingot::where(fine_loss, full({}, 2.0, {float64, device}), 1.0)),
                false);
    own->assign(s.bad, s.bad + (~good).to(float64), false);
    own->assign(s.count, number, false);
    for (auto& c : own->changes) c.cell->rebind(c.after);
    fine_loss = norm = finite = good = number = earlier = Tensor();
    Optimizer::run({update.get(), own.get()}, keep_gradients, loc);
  }
  if (!device.is_cpu()) return;
  s.look();
  s.raise();
}

int64_t NanGuard::skipped(SourceLoc) {
  s_->look();
  return s_->bad.item<int64_t>();
}

std::string NanGuard::report(SourceLoc) {
  s_->look();
  return s_->text;
}

}  // namespace ingot::optim
