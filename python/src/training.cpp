// Optimisers, clipping, automatic mixed precision. python/ingot/optim holds the param_groups and
// calls these.
#include <nanobind/stl/array.h>

#include <memory>

#include "bind.h"

namespace ingot_python {
namespace {

using Tensors = std::vector<Tensor>;

// Options by keyword; those not in the dict keep their defaults.
struct Reader {
  nb::dict from;
  template <class T>
  void operator()(const char* key, T& to) const {
    if (from.contains(key)) to = nb::cast<T>(from[key]);
  }
};
// Options by name; each optimiser has some of them.
template <class O>
void read(const Reader& r, O& o) {
#define OPTION(name) \
  if constexpr (requires { o.name; }) r(#name, o.name)
  OPTION(lr);
  OPTION(momentum);
  OPTION(dampening);
  OPTION(weight_decay);
  OPTION(nesterov);
  OPTION(maximize);
  OPTION(master_weights);
  OPTION(betas);
  OPTION(eps);
  OPTION(amsgrad);
  OPTION(decoupled_weight_decay);
  OPTION(alpha);
  OPTION(centered);
  OPTION(lr_decay);
  OPTION(initial_accumulator_value);
  OPTION(rho);
  OPTION(momentum_decay);
  OPTION(ns_coefficients);
  OPTION(ns_steps);
  OPTION(adjust_lr_fn);
#undef OPTION
}

template <class O, class Options>
void bind_optimizer(nb::module_& m, const char* name) {
  nb::class_<O, optim::Optimizer>(m, name).def("__init__", [](O* self, const nb::list& groups) {
    SourceLoc loc = here();
    std::vector<optim::ParamGroup<Options>> all;
    for (nb::handle h : groups) {
      auto group = nb::cast<nb::dict>(h);
      optim::ParamGroup<Options> g;
      g.params = nb::cast<Tensors>(group["params"]);
      read(Reader{group}, g.options);
      all.push_back(std::move(g));
    }
    recorded([&] { new (self) O(all, loc); });
  });
}

struct AutocastGuard {
  DType type;
  bool enabled;
  std::unique_ptr<amp::Autocast> open;
};

void bind_amp(nb::module_& m) {
  nb::class_<AutocastGuard>(m, "AutocastGuard")
      .def("__init__",
           [](AutocastGuard* g, DType t, bool on) {
             new (g) AutocastGuard{t, on, {}};
           })
      .def("enter",
           [](AutocastGuard& g) {
             g.open = std::make_unique<amp::Autocast>(g.type, g.enabled, here());
           })
      .def("exit", [](AutocastGuard& g) { g.open.reset(); });
  def(m, "is_autocast_enabled", &amp::is_autocast_enabled);
  using S = amp::GradScaler;
  nb::class_<S>(m, "GradScaler")
      .def(
          "__init__",
          [](S* s, double init, double growth, double backoff, int interval, bool enabled) {
            new (s) S(amp::GradScalerOptions{init, growth, backoff, interval, enabled}, here());
          },
          "init_scale"_a = 65536.0, "growth_factor"_a = 2.0, "backoff_factor"_a = 0.5,
          "growth_interval"_a = 2000, "enabled"_a = true)
      .def("scale",
           [](S& s, const TensorIn& x) {
             return recorded([&, loc = here()] { return s.scale(x, loc); });
           })
      .def("unscale_",
           [](S& s, optim::Optimizer& o) { recorded([&, loc = here()] { s.unscale_(o, loc); }); })
      .def(
          "step",
          [](S& s, optim::Optimizer& o, bool keep) {
            recorded([&, loc = here()] { s.step(o, keep || o.keeps_gradients(loc), loc); });
          },
          "optimizer"_a, "keep_gradients"_a = false)
      .def("update", [](S& s) { recorded([&, loc = here()] { s.update(loc); }); })
      .def("state",
           [](S& s) {
             const StateDict d = s.state_dict(here());
             return std::make_pair(d.tensor("scale"), d.tensor("streak"));
           })
      .def("set_state",
           [](S& s, double scale, double streak) {
             StateDict d;
             d.tensors = {{"scale", full({}, scale, float32)},
                          {"streak", full({}, streak, float32)}};
             recorded([&, loc = here()] { s.load_state_dict(d, loc); });
           })
      .def("get_scale", [](S& s) { return s.get_scale(); });
}

// The parameters of an optimiser that is written in Python, for what is done to their gradients
// before its step().
class Parameters : public optim::Optimizer {
 public:
  explicit Parameters(const Tensors& params, SourceLoc loc) { add_group(params, {}, {}, loc); }

 private:
  void update(Step&) const override {}
};

}  // namespace

void bind_training(nb::module_& m) {
  using O = optim::Optimizer;
  nb::class_<O>(m, "Optimizer")
      .def(
          "step",
          [](O& o, bool keep) {
            recorded([&, loc = here()] { o.step(keep || o.keeps_gradients(loc), loc); });
          },
          "keep_gradients"_a = false)
      .def("zero_grad", [](O& o) { o.zero_grad(here()); })
      .def(
          "lr", [](O& o, size_t group) { return o.lr(group, here()); }, "group"_a = 0)
      .def(
          "set_lr", [](O& o, double lr, size_t group) { o.set_lr(lr, group, here()); }, "lr"_a,
          "group"_a)
      .def("params", &O::params)
      .def(
          "set_momentum", [](O& o, double v, size_t group) { o.set_momentum(v, group, here()); },
          "momentum"_a, "group"_a)
      .def("has_momentum",
           [](O& o, size_t group) {
             try {
               o.momentum(group);
               return true;
             } catch (const Error&) {
               return false;
             }
           })
      .def("adopt", &O::adopt)
      .def("set_steps",
           [](O& o, const std::vector<double>& steps, const std::vector<double>& products) {
             o.set_steps(steps, products, here());
           })
      .def("parameter_states",
           [](const O& o) {
             nb::list all;
             const auto or_none = [](const Tensor& t) {
               return t.defined() ? nb::cast(t) : nb::none();
             };
             for (const O::ParameterState& s : o.parameter_states()) {
               nb::list state;
               for (const Tensor& t : s.state) state.append(nb::cast(t));
               all.append(
                   nb::make_tuple(state, or_none(s.master), nb::cast(s.steps), or_none(s.product)));
             }
             return all;
           })
      .def("state", &O::state);
  nb::class_<Parameters, O>(m, "_OptimizerParameters")
      .def("__init__", [](Parameters* p, const Tensors& params) {
        recorded([&, loc = here()] { new (p) Parameters(params, loc); });
      });
#define OPTIMIZER(name) bind_optimizer<optim::name, optim::name##Options>(m, #name)
  OPTIMIZER(SGD);
  OPTIMIZER(Adam);
  OPTIMIZER(AdamW);
  OPTIMIZER(RMSprop);
  OPTIMIZER(Adagrad);
  OPTIMIZER(Adadelta);
  OPTIMIZER(Adamax);
  OPTIMIZER(NAdam);
  OPTIMIZER(RAdam);
  OPTIMIZER(Lion);
  OPTIMIZER(Muon);
#undef OPTIMIZER
  def(
      m, "clip_grad_norm_",
      [](const Tensors& p, double limit, double kind) {
        return recorded([&, loc = here()] { return optim::clip_grad_norm_(p, limit, kind, loc); });
      },
      "parameters"_a, "max_norm"_a, "norm_type"_a = 2.0);
  def(
      m, "get_total_norm",
      [](const Tensors& x, double kind) {
        return recorded([&, loc = here()] { return optim::get_total_norm(x, kind, loc); });
      },
      "tensors"_a, "norm_type"_a = 2.0);
  def(
      m, "zero_gradients",
      [](const Tensors& p) { recorded([&, loc = here()] { optim::zero_gradients(p, loc); }); },
      "parameters"_a);
  def(
      m, "clip_grad_value_",
      [](const Tensors& p, double limit) {
        recorded([&, loc = here()] { optim::clip_grad_value_(p, limit, loc); });
      },
      "parameters"_a, "clip_value"_a);
  bind_amp(m);
}

}  // namespace ingot_python
