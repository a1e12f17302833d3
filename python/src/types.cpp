// Numbers and shapes read from Python, the classes dtype and device, and the exceptions.
#include <atomic>
#include <cstring>
#include <mutex>

#include "bind.h"

namespace ingot_python {

// ---- Objects released without the GIL

namespace {
std::mutex dropped_mutex;
std::vector<PyObject*> dropped;
std::atomic<bool> any_dropped{false};
}  // namespace

void drop_later(PyObject* object) {
  std::lock_guard lock(dropped_mutex);
  dropped.push_back(object);
  any_dropped = true;
}
void drop_now() {
  if (!any_dropped.load(std::memory_order_relaxed)) return;
  std::vector<PyObject*> all;
  {
    std::lock_guard lock(dropped_mutex);
    all.swap(dropped);
    any_dropped = false;
  }
  for (PyObject* o : all) Py_DECREF(o);
}

// ---- Numbers and shapes

bool read_scalar(nb::handle h, Scalar& out, bool convert) noexcept {
  PyObject* o = h.ptr();
  if (PyBool_Check(o)) {
    out = Scalar(o == Py_True);
  } else if (PyLong_Check(o)) {
    int overflow = 0;
    int64_t v = PyLong_AsLongLongAndOverflow(o, &overflow);
    out = overflow ? Scalar(PyLong_AsDouble(o)) : Scalar(v);
    if (overflow) out.i = overflow;      // is_huge()
    if (overflow && PyErr_Occurred()) {  // too large even for a double
      PyErr_Clear();
      return false;
    }
  } else if (PyFloat_Check(o)) {
    out = Scalar(PyFloat_AS_DOUBLE(o));
  } else if (!convert || is_tensor(h) || PySequence_Check(o)) {
    return false;
  } else if (std::strncmp(Py_TYPE(o)->tp_name, "numpy.bool", 10) == 0) {
    out = Scalar(PyObject_IsTrue(o) == 1);
  } else if (PyIndex_Check(o)) {
    nb::object v = nb::steal(PyNumber_Index(o));
    if (v.is_valid()) return read_scalar(v, out, false);
    PyErr_Clear();
    return false;
  } else if (PyNumber_Check(o) && Py_TYPE(o)->tp_as_number && Py_TYPE(o)->tp_as_number->nb_float) {
    double v = PyFloat_AsDouble(o);
    if (PyErr_Occurred()) {
      PyErr_Clear();
      return false;
    }
    out = Scalar(v);
  } else {
    return false;
  }
  return true;
}

namespace {
bool read_int(PyObject* o, int64_t& out) noexcept {
  if (PyBool_Check(o) || !(PyLong_Check(o) || PyIndex_Check(o))) return false;
  out = PyLong_Check(o) ? PyLong_AsLongLong(o) : PyNumber_AsSsize_t(o, PyExc_OverflowError);
  if (out == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  return true;
}
}  // namespace

bool read_dims(nb::handle h, Dims& out) noexcept {
  int64_t v = 0;
  out = Dims();
  if (read_int(h.ptr(), v)) {
    out.push_back(v);
    return true;
  }
  if (!PyTuple_Check(h.ptr()) && !PyList_Check(h.ptr())) return false;
  Py_ssize_t n = PySequence_Fast_GET_SIZE(h.ptr());
  if (n > kMaxDims) return false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (!read_int(PySequence_Fast_GET_ITEM(h.ptr(), i), v)) return false;
    out.push_back(v);
  }
  return true;
}

bool read_device(nb::handle h, DeviceIn& out) noexcept {
  int64_t index = 0;
  if (nb::isinstance<Device>(h)) {
    out.device = *nb::inst_ptr<Device>(h);
  } else if (PyUnicode_Check(h.ptr())) {
    const char* name = PyUnicode_AsUTF8(h.ptr());
    if (!name) PyErr_Clear();
    out.name = name ? name : "?";
  } else if (read_int(h.ptr(), index)) {
    out.name = "cuda:" + std::to_string(index);
  } else {
    return false;
  }
  return true;
}

Dims dims_of(const nb::args& args, const char* function) {
  Dims d;
  bool good = args.size() == 1 ? read_dims(args[0], d) : read_dims(args, d);
  if (!good)
    throw nb::type_error((std::string(function) +
                          "(): sizes must be integers, or one tuple or list of at most " +
                          std::to_string(kMaxDims) + " integers")
                             .c_str());
  return d;
}

// ---- dtype

namespace {
PyObject* dtype_objects[kDTypeCount] = {};
}
nb::object dtype_object(DType t) { return nb::borrow(dtype_objects[static_cast<int>(t)]); }

bool read_dtype(nb::handle h, DType& out) {
  PyObject* o = h.ptr();
  if (Py_TYPE(o) == Py_TYPE(dtype_objects[0]))
    out = nb::inst_ptr<PyDType>(h)->type;
  else if (o == reinterpret_cast<PyObject*>(&PyFloat_Type))
    out = DType::Float64;
  else if (o == reinterpret_cast<PyObject*>(&PyLong_Type))
    out = DType::Int64;
  else if (o == reinterpret_cast<PyObject*>(&PyBool_Type))
    out = DType::Bool;
  else
    return false;
  return true;
}

static void bind_dtype(nb::module_& m) {
  auto name = [](const PyDType& d) { return std::string(name_of(d.type)); };
  nb::class_<PyDType>(m, "dtype",
                      "The type of a tensor's elements: ingot.float32, ingot.int64, ...")
      .def_prop_ro("name", name)
      .def_prop_ro("itemsize", [](const PyDType& d) { return size_of(d.type); })
      .def_prop_ro("is_floating_point", [](const PyDType& d) { return is_float(d.type); })
      .def_prop_ro("is_signed",
                   [](const PyDType& d) { return d.type != DType::UInt8 && d.type != DType::Bool; })
      .def_prop_ro("is_complex", [](const PyDType&) { return false; })
      .def("__repr__", [](const PyDType& d) { return "ingot." + std::string(name_of(d.type)); })
      .def("__hash__", [](const PyDType& d) { return 1000003 + static_cast<int>(d.type); })
      .def(
          "__eq__",
          [](const PyDType& a, nb::handle b) {
            return nb::isinstance<PyDType>(b) && nb::inst_ptr<PyDType>(b)->type == a.type;
          },
          "other"_a.none())
      .def("__reduce__", name);  // the name of a global of this module
  for (int i = 0; i < kDTypeCount; ++i) {
    DType t = static_cast<DType>(i);
    nb::object o = nb::cast(PyDType{t});
    dtype_objects[i] = o.ptr();  // the module holds it
    std::string text(name_of(t));
    m.attr(text.c_str()) = o;
  }
  m.attr("bool_") = dtype_object(DType::Bool);
  def(m, "dtype_named", [](const std::string& text) {
    for (int i = 0; i < kDTypeCount; ++i)
      if (name_of(static_cast<DType>(i)) == text) return dtype_object(static_cast<DType>(i));
    throw nb::value_error(("no dtype is called " + text).c_str());
  });
  def(m, "promote_dtypes", [](DType a, DType b) { return promote(a, b); });
}

// ---- device

static void bind_device(nb::module_& m) {
  auto type = [](const Device& d) {
    return std::string(d.is_cpu() ? "cpu" : d.is_cuda() ? "cuda" : "null");
  };
  nb::class_<MemoryStats>(m, "MemoryStats")
      .def_ro("in_use", &MemoryStats::in_use)
      .def_ro("peak", &MemoryStats::peak)
      .def_ro("arena", &MemoryStats::arena)
      .def_ro("limit", &MemoryStats::limit)
      .def_ro("allocations", &MemoryStats::allocations)
      .def("__repr__", [](const MemoryStats& s) {
        return "MemoryStats(in_use=" + std::to_string(s.in_use) +
               ", peak=" + std::to_string(s.peak) + ", arena=" + std::to_string(s.arena) +
               ", limit=" + std::to_string(s.limit) + ")";
      });
  nb::class_<Device>(
      m, "device", "Where a tensor is stored: device('cpu'), device('cuda:1'), device('cuda', 1).")
      .def(nb::init<const Device&>(), "device"_a)
      .def(
          "__init__", [](Device* d, std::string_view name) { new (d) Device(name); }, "type"_a)
      .def(
          "__init__",
          [](Device* d, const std::string& name, int index) {
            new (d) Device(name + ":" + std::to_string(index));
          },
          "type"_a, "index"_a)
      .def(
          "__init__", [](Device* d, int index) { new (d) Device("cuda:" + std::to_string(index)); },
          "index"_a)
      .def_static("best", &Device::best,
                  "The GPU with most free memory if there is one, else the CPU.")
      .def_static("all", &Device::all)
      .def_prop_ro("type", type)
      .def_prop_ro("index", [](const Device& d) { return d.index(); })
      .def_prop_ro("name", &Device::name)
      .def("memory", &Device::memory)
      .def("reset_peak_memory", &Device::reset_peak_memory)
      .def("set_memory_limit", &Device::set_memory_limit, "bytes"_a)
      .def("synchronize", &Device::synchronize, nb::call_guard<GilRelease>())
      .def("__str__", &Device::name)
      .def("__repr__", [](const Device& d) { return "device('" + d.name() + "')"; })
      .def("__hash__",
           [](const Device& d) { return static_cast<int>(d.type()) * 1000 + d.index(); })
      .def(
          "__eq__", [](const Device& a, const Device& b) { return a == b; }, nb::is_operator())
      .def(
          "__eq__",
          [type](const Device& a, const std::string& b) {
            return a.name() == b || (a.index() == 0 &&
                                     type(a) == b);  // a device that is not present is not an error
          },
          nb::is_operator())
      .def("__reduce__", [](const Device& d) {
        return nb::make_tuple(nb::type<Device>(), nb::make_tuple(d.name()));
      });
  def(
      m, "set_default_device", [](const DeviceIn& d) { set_default_device(d.get()); }, "device"_a,
      "Where new tensors are made when no device is given, for the whole program.");
  def(
      m, "get_default_device", [] { return default_device(); },
      "Where new tensors are made when no device is given.");
}

// ---- Errors: one class per kind; each is also the Python error a reader expects.

namespace {
PyObject* error_classes[static_cast<int>(ErrorKind::Internal) + 1] = {};

PyObject* new_error(nb::module_& m, const char* name, const char* doc, nb::tuple bases) {
  std::string full = "ingot." + std::string(name);
  PyObject* e = PyErr_NewExceptionWithDoc(full.c_str(), doc, bases.ptr(), nullptr);
  m.attr(name) = nb::borrow(e);
  return e;
}
}  // namespace

static void bind_errors(nb::module_& m) {
  PyObject* base = new_error(
      m, "Error", "Raised on bad input: the operation, its operands, your line and the fix.",
      nb::make_tuple(nb::handle(PyExc_RuntimeError)));
  struct Row {
    ErrorKind kind;
    const char* name;
    PyObject* also;
  };
  const Row rows[] = {{ErrorKind::Shape, "ShapeError", PyExc_ValueError},
                      {ErrorKind::DType, "DTypeError", PyExc_TypeError},
                      {ErrorKind::Device, "DeviceError", nullptr},
                      {ErrorKind::Dim, "DimError", PyExc_IndexError},
                      {ErrorKind::Index, "IndexError", PyExc_IndexError},
                      {ErrorKind::Value, "ValueError", PyExc_ValueError},
                      {ErrorKind::Autograd, "AutogradError", nullptr},
                      {ErrorKind::OutOfMemory, "OutOfMemoryError", PyExc_MemoryError},
                      {ErrorKind::Io, "IoError", PyExc_OSError},
                      {ErrorKind::Unsupported, "UnsupportedError", PyExc_NotImplementedError},
                      {ErrorKind::State, "StateError", nullptr},
                      {ErrorKind::Internal, "InternalError", nullptr}};
  for (const Row& r : rows)
    error_classes[static_cast<int>(r.kind)] =
        new_error(m, r.name, nullptr,
                  r.also ? nb::make_tuple(nb::handle(base), nb::handle(r.also))
                         : nb::make_tuple(nb::handle(base)));
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error& e) {
      PyErr_SetString(error_classes[static_cast<int>(e.kind())], in_python(e.what()).c_str());
    } catch (const std::bad_alloc&) {
      const OutOfMemory e("the host has no memory left for this call", 0, 0, 0);
      PyErr_SetString(error_classes[static_cast<int>(e.kind())], e.what());
    } catch (const std::length_error&) {
      const OutOfMemory e("this call needs more memory than a process can have", 0, 0, 0);
      PyErr_SetString(error_classes[static_cast<int>(e.kind())], e.what());
    }
  });
}

void bind_types(nb::module_& m) {
  bind_errors(m);
  bind_dtype(m);
  bind_device(m);
  def(m, "set_package_folder", &set_package_folder);
  def(
      m, "_in_python", [](const std::string& text) { return in_python(text); }, "text"_a);
}

}  // namespace ingot_python
