// Gradient modes, grad(), custom functions, checkpoints, gradcheck.
#include <functional>
#include <memory>

#include <nanobind/stl/function.h>

#include "bind.h"

namespace ingot_python {
namespace {

using Tensors = std::vector<Tensor>;

// A Python function that C++ may call and drop from any thread.
std::shared_ptr<PyObject> keep(nb::handle fn) {
  Py_INCREF(fn.ptr());
  return {fn.ptr(), [](PyObject* o) { drop_later(o); }};
}

// One tensor, or a tuple or list of them, None for none.
Tensors tensors_of(const nb::object& r, const char* who) {
  auto one = [&](nb::handle h) {
    if (h.is_none()) return Tensor();
    if (!is_tensor(h))
      throw nb::type_error(
          (std::string(who) + " must return tensors, not " + Py_TYPE(h.ptr())->tp_name).c_str());
    return as_tensor(h);
  };
  Tensors out;
  if (PyTuple_Check(r.ptr()) || PyList_Check(r.ptr()))
    for (nb::handle h : r) out.push_back(one(h));
  else
    out.push_back(one(r));
  return out;
}

std::function<Tensors(const Tensors&)> call_with_tensors(nb::handle fn, const char* who) {
  return [f = keep(fn), who](const Tensors& in) {
    GilAcquire gil;
    return tensors_of(nb::borrow(f.get())(*tuple_of(in)), who);
  };
}

// A context manager around a C++ scope; scopes of one thread end in the order they began, as with
// statements do.
template <class Scope>
struct Guard {
  std::unique_ptr<Scope> scope;
};

template <class Scope>
void bind_guard(nb::module_& m, const char* name) {
  nb::class_<Guard<Scope>>(m, name)
      .def(nb::init<>())
      .def("enter", [](Guard<Scope>& g) { g.scope = std::make_unique<Scope>(); })
      .def("exit", [](Guard<Scope>& g) { g.scope.reset(); });
}

// forward returns (results, what it saved); backward is given what was saved, then the gradients.
nb::tuple custom_function(const std::string& name, nb::callable forward, nb::callable backward,
                          const Tensors& inputs) {
  SourceLoc loc = here();
  CustomFunction f(
      [fw = keep(forward)](FunctionContext& context, const Tensors& in) {
        nb::gil_scoped_acquire gil;
        nb::object pair = nb::borrow(fw.get())(*tuple_of(in));
        Tensors saved = tensors_of(nb::object(pair[1]), "save_for_backward()");
        context.save_for_backward(std::move(saved));
        return tensors_of(nb::object(pair[0]), "forward");
      },
      [bw = keep(backward)](FunctionContext& context, const Tensors& g) {
        nb::gil_scoped_acquire gil;
        return tensors_of(nb::borrow(bw.get())(tuple_of(context.saved()), *tuple_of(g)),
                          "backward");
      },
      name);
  return tuple_of(recorded([&] { return f(inputs, loc); }));
}

}  // namespace

void bind_autograd(nb::module_& m) {
  bind_guard<NoGrad>(m, "NoGradGuard");
  bind_guard<EnableGrad>(m, "EnableGradGuard");
  def(m, "is_grad_enabled", &is_grad_enabled);
  def(
      m, "set_grad_mode", [](bool on) { set_grad_enabled(on); }, "on"_a,
      "Turns gradients on or off on this thread.");
  def(
      m, "grad",
      [](const Tensors& outputs, const Tensors& inputs,
         const std::vector<std::optional<Tensor>>& weights, std::optional<bool> retain, bool create,
         bool allow_unused) {
        SourceLoc loc = here();
        Tensors w;
        for (const auto& t : weights) w.push_back(t ? *t : Tensor());
        return tuple_of(
            recorded([&] { return grad(outputs, inputs, w, retain, create, allow_unused, loc); }));
      },
      "outputs"_a, "inputs"_a, "grad_outputs"_a = nb::tuple(), "retain_graph"_a.none() = nb::none(),
      "create_graph"_a = false, "allow_unused"_a = false);
  def(m, "custom_function", &custom_function);
  def(m, "checkpoint", [](nb::callable fn, const Tensors& inputs) {
    SourceLoc loc = here();
    auto f = call_with_tensors(fn, "a checkpointed function");
    return tuple_of(recorded([&] { return checkpoint(f, inputs, loc); }));
  });
  auto check = [](auto which) {
    return [which](nb::callable fn, const Tensors& inputs, double eps, double atol, double rtol) {
      SourceLoc loc = here();
      auto f = call_with_tensors(fn, "a checked function");
      GradCheck c = recorded([&] { return which(f, inputs, eps, atol, rtol, loc); });
      return nb::make_tuple(c.ok, c.report);
    };
  };
  def(m, "gradcheck",
      check([](const GradFunction& f, const Tensors& in, double e, double a, double r,
               SourceLoc loc) { return gradcheck(f, in, e, a, r, loc); }),
      "fn"_a, "inputs"_a, "eps"_a = 1e-6, "atol"_a = 1e-5, "rtol"_a = 1e-3);
  def(m, "gradgradcheck",
      check([](const GradFunction& f, const Tensors& in, double e, double a, double r,
               SourceLoc loc) { return gradgradcheck(f, in, e, a, r, loc); }),
      "fn"_a, "inputs"_a, "eps"_a = 1e-6, "atol"_a = 1e-5, "rtol"_a = 1e-3);
}

// ---- capture, explain, eval and the switches

namespace {

// The function belongs to this object alone, so that Python's collector sees the reference cycles
// it is part of (a step is often a method of what holds the captured step).
struct PyCaptured {
  nb::object function;
  std::unique_ptr<Captured> captured;
};

int visit_captured(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<PyCaptured>(self)->function.ptr());
  return 0;
}

int clear_captured(PyObject* self) {
  auto* c = nb::inst_ptr<PyCaptured>(self);
  c->captured.reset();
  c->function.reset();
  drop_now();
  return 0;
}

PyType_Slot captured_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&visit_captured)},
                                {Py_tp_clear, reinterpret_cast<void*>(&clear_captured)},
                                {0, nullptr}};

}  // namespace

void bind_runtime(nb::module_& m) {
  nb::class_<PyCaptured>(m, "Captured", nb::type_slots(captured_slots))
      .def("__init__",
           [](PyCaptured* c, nb::callable fn) {
             auto call = [f = fn.ptr()](const Tensors& in) {
               GilAcquire gil;
               return tensors_of(nb::borrow(f)(*tuple_of(in)), "a captured function");
             };
             new (c) PyCaptured{fn, std::make_unique<Captured>(call)};
           })
      .def("__call__", [](PyCaptured& c, const Tensors& inputs) {
        SourceLoc loc = here();
        return tuple_of(recorded([&] { return (*c.captured)(inputs, loc); }));
      });
  def(m, "is_capturing", &is_capturing,
      "Is this thread inside the first call of a captured function?");
  nb::class_<Explanation>(m, "Explanation",
                          "What a run would do: kernels, bytes, flops, predicted times, memory.")
      .def_ro("text", &Explanation::text)
      .def_ro("generated", &Explanation::generated)
      .def_ro("library", &Explanation::library)
      .def_ro("copies", &Explanation::copies)
      .def_ro("launches", &Explanation::launches)
      .def_ro("bytes_read", &Explanation::bytes_read)
      .def_ro("bytes_written", &Explanation::bytes_written)
      .def_ro("flops", &Explanation::flops)
      .def_ro("predicted_us", &Explanation::predicted_us)
      .def_ro("peak_bytes", &Explanation::peak_bytes)
      .def_ro("kernels", &Explanation::kernels)
      .def_prop_ro(
          "choices",
          [](const Explanation& e) {
            nb::list all;
            for (const Explanation::Choice& c : e.choices)
              all.append(nb::make_tuple(c.call, c.kernel, c.refused));
            return all;
          },
          "Library calls and what was decomposed: (call, kernel or '', why others do not run it).")
      .def("__repr__", [](const Explanation& e) { return e.text; });
  def(
      m, "explain",
      [](const Tensors& tensors, const std::string& rates, bool why) {
        SourceLoc loc = here();
        return recorded([&] { return explain(tensors, {.rates = rates, .why = why}, loc); });
      },
      "tensors"_a, "rates"_a = "", "why"_a = false);
  def(
      m, "eval",
      [](const Tensors& tensors) {
        SourceLoc loc = here();
        recorded([&] { eval(tensors, loc); });
      },
      "tensors"_a);
  def(m, "synchronize", [] {
    SourceLoc loc = here();
    recorded([&] { synchronize(loc); });
  });
  def(
      m, "set_num_threads", [](int n) { without_gil([&] { set_num_threads(n); }); }, "n"_a);
  def(m, "get_num_threads", &get_num_threads);
  def(
      m, "set_fusion", [](bool on) { set_fusion(on); }, "on"_a);
  def(
      m, "set_eager", [](bool on) { set_eager(on); }, "on"_a);
  def(
      m, "plan_cache_info",
      [] {
        const PlanCacheInfo i = plan_cache_info();
        nb::dict d;
        d["plans"] = i.plans;
        d["bytes"] = i.bytes;
        d["limit"] = i.limit;
        d["evicted"] = i.evicted;
        return d;
      },
      "The content of the cache of compiled plans: plans, bytes, limit, evicted.");
  def(
      m, "set_plan_cache_limit",
      [](int64_t bytes) {
        if (bytes < 0)
          throw nb::value_error("set_plan_cache_limit: the limit is a number of bytes, 0 or more");
        without_gil([&] { set_plan_cache_limit(static_cast<size_t>(bytes)); });
      },
      "bytes"_a, "How many bytes of compiled plans are kept; 256 MiB at start.");
  def(
      m, "clear_plan_cache", [] { without_gil([] { clear_plan_cache(); }); },
      "Drops every compiled plan; what is needed again is recompiled.");
}

}  // namespace ingot_python
