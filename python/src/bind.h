// Shared by the parts of the extension: the user's Python line, conversions of arguments, and
// Table, which binds one function per line.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cxxabi.h>
#include <unistd.h>

#include <string_view>
#include <tuple>
#include <type_traits>

#include "ingot/ingot.h"

namespace ingot_python {

namespace nb = nanobind;
using namespace nb::literals;
using namespace ingot;

/// The innermost line of Python outside the package: shown in errors and plans.
SourceLoc here();
/// Files under this folder are the package's own.
void set_package_folder(const std::string& folder);

/// Python objects whose last user was a run without the GIL: dropped at the next call that holds
/// it.
void drop_later(PyObject* object);
void drop_now();

// ---- Arguments

/// The class Tensor, set once it is bound.
inline PyTypeObject* tensor_class = nullptr;
inline bool is_tensor(nb::handle h) { return PyObject_TypeCheck(h.ptr(), tensor_class); }
inline const Tensor& as_tensor(nb::handle h) { return *nb::inst_ptr<Tensor>(h); }

/// A Tensor argument; None is the undefined tensor, which functions refuse where they need one.
struct TensorIn {
  const Tensor* tensor = nullptr;
  Tensor none;
  operator const Tensor&() const { return tensor ? *tensor : none; }  // NOLINT
};
/// A Tensor or a number.
struct OperandIn {
  const Tensor* tensor = nullptr;
  Scalar scalar;
  Operand at(const SourceLoc& loc) const {
    return tensor ? Operand(*tensor, loc) : Operand(scalar, loc);
  }
};
/// A device, or its name or number: resolved when the call runs, so that the error says why it is
/// missing.
struct DeviceIn {
  std::optional<Device> device;
  std::string name;
  Device get() const { return device ? *device : Device(name); }
};
/// false: neither a device nor a name or number.
bool read_device(nb::handle h, DeviceIn& out) noexcept;
/// A class "dtype" with one object per type.
struct PyDType {
  DType type;
};
nb::object dtype_object(DType t);
/// false: not a dtype, nor one of the Python types float, int and bool.
bool read_dtype(nb::handle h, DType& out);
/// false: not a number. Numbers are bool, int, float and what has __index__ or __float__ but is no
/// tensor or sequence.
bool read_scalar(nb::handle h, Scalar& out, bool convert) noexcept;
/// A Python integer that int64 does not hold, read as a double.
inline bool is_huge(const Scalar& s) { return s.kind == Scalar::Kind::Float && s.i != 0; }
/// false: neither one integer nor a sequence of them.
bool read_dims(nb::handle h, Dims& out) noexcept;
/// The sizes of f(2, 3) and of f((2, 3)).
Dims dims_of(const nb::args& args, const char* function);
/// values and indices as one named tuple (see set_return_types in module.cpp).
nb::object values_indices(const char* name, const ValuesIndices& v);

/// dtype=, device= and requires_grad= of functions that make tensors.
inline Options options_of(const std::optional<DType>& dtype,
                          const std::optional<DeviceIn>& device) {
  Options o;
  o.dtype = dtype;
  if (device) o.device = device->get();
  return o;
}

/// `take` asks for the GIL. At the end of the program Python ends every other thread that asks for
/// it by pthread_exit(), which would unwind through functions that throw nothing, and so abort.
/// Such a thread waits for the end of the process here instead, as Python 3.14 itself does.
template <class F>
void or_wait_for_the_end(F&& take) noexcept {
  try {
    take();
  } catch (abi::__forced_unwind&) {
    for (;;) ::pause();
  }
}
class GilRelease {
 public:
  GilRelease() : state_(PyEval_SaveThread()) {}
  ~GilRelease() {
    or_wait_for_the_end([this] { PyEval_RestoreThread(state_); });
  }
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* state_;
};
class GilAcquire {
 public:
  GilAcquire() {
    or_wait_for_the_end([this] { state_ = PyGILState_Ensure(); });
  }
  ~GilAcquire() { PyGILState_Release(state_); }
  GilAcquire(const GilAcquire&) = delete;
  GilAcquire& operator=(const GilAcquire&) = delete;

 private:
  PyGILState_STATE state_{};
};

template <class F>
auto without_gil(F&& f) {
  GilRelease release;
  return f();
}

/// f with the GIL, which is what guards recording: threads may share tensors. The core releases the
/// GIL while it computes or copies values (set_host_wait).
template <class F>
auto recorded(F&& f) {
  return f();
}

// ---- One function per line

/// The comment of the C++ function (docs.cpp holds the table, generated from the headers at build
/// time); "" where there is none.
const char* doc_of(std::string_view name);

/// m.def(...) with that text as the docstring, where extra has none of its own.
template <class F, class... Extra>
void def(nb::module_& m, const char* name, F&& f, const Extra&... extra) {
  m.def(name, std::forward<F>(f), doc_of(name), extra...);
}

template <class T>
struct argument_type {
  using type = std::decay_t<T>;
};
template <>
struct argument_type<const Tensor&> {
  using type = TensorIn;
};
template <>
struct argument_type<const Operand&> {
  using type = OperandIn;
};

template <class T>
const T& given(const T& v, const SourceLoc&) {
  return v;
}
inline const Tensor& given(const TensorIn& v, const SourceLoc&) { return v; }
inline Operand given(const OperandIn& v, const SourceLoc& loc) { return v.at(loc); }

inline nb::tuple tuple_of(const std::vector<Tensor>& tensors) {
  nb::object t = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; i < tensors.size(); ++i)
    PyTuple_SET_ITEM(t.ptr(), static_cast<Py_ssize_t>(i),
                     (tensors[i].defined() ? nb::cast(tensors[i]) : nb::none()).release().ptr());
  return nb::borrow<nb::tuple>(t);
}

/// Binds functions whose last parameter is the SourceLoc, as functions of a module, methods of
/// Tensor, or both.
class Table {
 public:
  Table(nb::module_& m, nb::object tensor) : module_(m), tensor_(std::move(tensor)) {}

  /// Function and method; the function's first argument is called input.
  template <class F, class... Extra>
  void both(const char* name, F f, const Extra&... extra) {
    function(name, f, nb::arg("input"), extra...);
    method(name, f, extra...);
  }
  template <class F, class... Extra>
  void function(const char* name, F f, const Extra&... extra) {
    add(name, f, &F::operator(), nb::scope(module_), extra...);
  }
  /// The first argument is self: no name for it in extra.
  template <class F, class... Extra>
  void method(const char* name, F f, const Extra&... extra) {
    add(name, f, &F::operator(), nb::scope(tensor_), nb::is_method(), extra...);
  }
  nb::module_& module() { return module_; }
  nb::object& tensor() { return tensor_; }

 private:
  template <class F, class R, class... A, class... Extra>
  void add(const char* name, F f, R (F::*)(A...) const, const Extra&... extra) {
    bind<F, R, std::tuple<A...>>(name, f, std::make_index_sequence<sizeof...(A) - 1>(), extra...);
  }
  template <class F, class R, class Args, size_t... I, class... Extra>
  void bind(const char* name, F f, std::index_sequence<I...>, const Extra&... extra) {
    auto run = [f, name](const typename argument_type<std::tuple_element_t<I, Args>>::type&... a) {
      SourceLoc loc = here();
      static_cast<void>(name);  // only some results have it
      if constexpr (std::is_same_v<R, std::vector<Tensor>>)
        return tuple_of(recorded([&] { return f(given(a, loc)..., loc); }));
      else if constexpr (std::is_same_v<R, ValuesIndices>)
        return values_indices(name, recorded([&] { return f(given(a, loc)..., loc); }));
      else
        return recorded([&] { return f(given(a, loc)..., loc); });
    };
    nb::cpp_function_def(run, nb::name(name), doc_of(name), extra...);
  }

  nb::module_& module_;
  nb::object tensor_;
};

// Each file binds a part.
void bind_types(nb::module_& m);
/// The text of an error with the library's C++ as a Python program writes it (advice.cpp).
std::string in_python(std::string text);
void bind_tensor(nb::module_& m);
void bind_interop(nb::module_& m, nb::object& tensor);
void bind_creation(nb::module_& m, Table& t);
void bind_elementwise(Table& t);
void bind_movement(Table& t);
void bind_reductions(Table& t);
void bind_networks(Table& t);
void bind_windows(Table& t);
void bind_sorting(Table& t);
void bind_linalg(Table& t);
void bind_losses_and_activations(Table& t);
void bind_autograd(nb::module_& m);
void bind_training(nb::module_& m);
void bind_files(nb::module_& m);
void bind_runtime(nb::module_& m);

}  // namespace ingot_python

namespace nanobind::detail {

template <>
struct type_caster<ingot_python::TensorIn> {
  NB_TYPE_CASTER(ingot_python::TensorIn, const_name("Tensor"))
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept {
    if (src.is_none()) return true;
    if (!ingot_python::is_tensor(src)) return false;
    value.tensor = &ingot_python::as_tensor(src);
    return true;
  }
};
template <>
struct type_caster<ingot::Scalar> {
  NB_TYPE_CASTER(ingot::Scalar, const_name("float"))
  bool from_python(handle src, uint32_t flags, cleanup_list*) noexcept {
    return ingot_python::read_scalar(src, value,
                                     flags & static_cast<uint32_t>(cast_flags::convert));
  }
  static handle from_cpp(const ingot::Scalar& s, rv_policy, cleanup_list*) noexcept {
    if (s.kind == ingot::Scalar::Kind::Bool) return PyBool_FromLong(s.i != 0);
    return s.kind == ingot::Scalar::Kind::Int ? PyLong_FromLongLong(s.i) : PyFloat_FromDouble(s.f);
  }
};
template <>
struct type_caster<ingot_python::OperandIn> {
  NB_TYPE_CASTER(ingot_python::OperandIn, const_name("Tensor | float"))
  bool from_python(handle src, uint32_t flags, cleanup_list*) noexcept {
    if (ingot_python::is_tensor(src)) {
      value.tensor = &ingot_python::as_tensor(src);
      return true;
    }
    return ingot_python::read_scalar(src, value.scalar,
                                     flags & static_cast<uint32_t>(cast_flags::convert));
  }
};
template <>
struct type_caster<ingot::Dims> {
  NB_TYPE_CASTER(ingot::Dims, const_name("Sequence[int]"))
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept {
    return ingot_python::read_dims(src, value);
  }
  static handle from_cpp(const ingot::Dims& d, rv_policy, cleanup_list*) noexcept {
    PyObject* t = PyTuple_New(d.size());
    for (int i = 0; i < d.size(); ++i) PyTuple_SET_ITEM(t, i, PyLong_FromLongLong(d[i]));
    return t;
  }
};
template <>
struct type_caster<ingot::Axes> {
  NB_TYPE_CASTER(ingot::Axes, const_name("int | Sequence[int] | None"))
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept {
    if (src.is_none()) return true;
    ingot::Dims d;
    if (!ingot_python::read_dims(src, d)) return false;
    value = ingot::Axes(d);
    return true;
  }
};
template <>
struct type_caster<ingot_python::DeviceIn> {
  NB_TYPE_CASTER(ingot_python::DeviceIn, const_name("device | str | int"))
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept {
    return ingot_python::read_device(src, value);
  }
};
template <>
struct type_caster<ingot::DType> {
  NB_TYPE_CASTER(ingot::DType, const_name("dtype"))
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept {
    return ingot_python::read_dtype(src, value);
  }
  static handle from_cpp(ingot::DType t, rv_policy, cleanup_list*) noexcept {
    return ingot_python::dtype_object(t).release();
  }
};

}  // namespace nanobind::detail
