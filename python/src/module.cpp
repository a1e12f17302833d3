// The extension ingot._ingot: the core in Python. The package around it (python/ingot) is plain
// Python.

#include "bind.h"
#include "ingot/environment.h"

NB_MODULE(_ingot, m) {
  using namespace ingot_python;
  m.doc() = "The core of Ingot; use it through the package ingot.";
  m.attr("__version__") = INGOT_VERSION_STRING;
  m.def("doc_of", &doc_of, "name"_a,
        "The comment of the C++ function or class of this name; empty where there is none.");
  // Objects that a program still holds at exit do not interest its user; the tests check them.
  nb::set_leak_warnings(environment("INGOT_LEAK_CHECK").has_value());
  // At exit this is destroyed after the modules that used the package: what they
  // release last is dropped too.
  static char last;
  m.attr("_last") = nb::capsule(&last, [](void*) noexcept { drop_now(); });
  set_host_wait(
      []() -> void* { return PyGILState_Check() ? PyEval_SaveThread() : nullptr; },
      [](void* state) {
        or_wait_for_the_end([&] { PyEval_RestoreThread(static_cast<PyThreadState*>(state)); });
      });
  bind_types(m);
  bind_tensor(m);
  nb::object tensor = m.attr("Tensor");
  Table table(m, tensor);
  bind_creation(m, table);
  bind_elementwise(table);
  bind_movement(table);
  bind_reductions(table);
  bind_networks(table);
  bind_windows(table);
  bind_sorting(table);
  bind_linalg(table);
  bind_losses_and_activations(table);
  bind_autograd(m);
  bind_training(m);
  bind_files(m);
  bind_runtime(m);
}
