// The class Tensor: reading, indexing, writing in place, converting and differentiating. Functions
// that are also methods come from the tables of the other files.
#include <memory>
#include <sstream>

#include "bind.h"

namespace ingot_python {
namespace {

// ---- Indexing

bool read_item(nb::handle h, std::vector<IndexItem>& out) {
  PyObject* o = h.ptr();
  if (PySlice_Check(o)) {
    auto* s = reinterpret_cast<PySliceObject*>(o);
    Slice slice;
    auto field = [](PyObject* v, std::optional<int64_t>& to) {
      if (v == Py_None) return true;
      int64_t n = PyNumber_AsSsize_t(v, nullptr);
      if (n == -1 && PyErr_Occurred()) throw nb::python_error();
      to = n;
      return true;
    };
    field(s->start, slice.start), field(s->stop, slice.stop), field(s->step, slice.step);
    out.emplace_back(slice);
  } else if (o == Py_Ellipsis) {
    out.emplace_back(ingot::Ellipsis);
  } else if (o == Py_None) {
    out.emplace_back(NewAxis);
  } else if (!PyBool_Check(o) && !is_tensor(h) &&
             (PyLong_Check(o) || (PyIndex_Check(o) && !PySequence_Check(o)))) {
    Py_ssize_t n = PyNumber_AsSsize_t(o, PyExc_IndexError);
    if (n == -1 && PyErr_Occurred()) throw nb::python_error();
    out.emplace_back(static_cast<int64_t>(n));
  } else {
    return false;
  }
  return true;
}

// false: there are tensors, lists or bools in it, which python/ingot/_indexing.py splits.
bool read_index(nb::handle index, std::vector<IndexItem>& items) {
  if (!PyTuple_Check(index.ptr())) return read_item(index, items);
  Py_ssize_t n = PyTuple_GET_SIZE(index.ptr());
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!read_item(PyTuple_GET_ITEM(index.ptr(), i), items)) return false;
  return true;
}

nb::object advanced(const char* function) {
  static PyObject* module = nb::module_::import_("ingot._indexing").release().ptr();
  return nb::handle(module).attr(function);
}

nb::object get_item(nb::handle self, nb::handle index) {
  std::vector<IndexItem> items;
  if (!read_index(index, items)) return advanced("get")(self, index);
  const Tensor& x = as_tensor(self);
  SourceLoc loc = here();
  return nb::cast(recorded([&] { return Tensor(x[Indices(items, loc)]); }));
}

void set_item(nb::handle self, nb::handle index, nb::handle value) {
  std::vector<IndexItem> items;
  OperandIn v;
  bool number = read_scalar(value, v.scalar, true);
  if (!number && is_tensor(value)) v.tensor = &as_tensor(value);
  if (!read_index(index, items) || (!number && !v.tensor)) {
    advanced("set")(self, index, value);
    return;
  }
  const Tensor& x = as_tensor(self);
  SourceLoc loc = here();
  recorded([&] { x[Indices(items, loc)].copy_(v.at(loc), loc); });
}

// ---- Reading

nb::object list_of(const char* p, DType t, const Dims& shape, int dim, const int64_t* strides) {
  if (dim == shape.size()) {
    switch (t) {
      case DType::Float64:
        return nb::steal(PyFloat_FromDouble(*reinterpret_cast<const double*>(p)));
      case DType::Int64:
        return nb::steal(PyLong_FromLongLong(*reinterpret_cast<const int64_t*>(p)));
      default:
        return nb::borrow(*p ? Py_True : Py_False);
    }
  }
  nb::object list = nb::steal(PyList_New(shape[dim]));
  for (int64_t i = 0; i < shape[dim]; ++i)
    PyList_SET_ITEM(list.ptr(), i,
                    list_of(p + i * strides[dim], t, shape, dim + 1, strides).release().ptr());
  return list;
}

nb::object to_list(const Tensor& x) {
  SourceLoc loc = here();
  DType t = x.dtype(loc);
  DType as = is_float(t) ? DType::Float64 : t == DType::Bool ? DType::Bool : DType::Int64;
  std::vector<char> bytes(static_cast<size_t>(x.numel(loc)) * size_of(as));
  recorded([&] { x.copy_to(bytes.data(), as, loc); });
  Dims strides = row_major(x.shape(loc));
  for (int64_t& s : strides) s *= static_cast<int64_t>(size_of(as));
  return list_of(bytes.data(), as, x.shape(loc), 0, strides.begin());
}

Scalar item(const Tensor& x) {
  SourceLoc loc = here();
  return recorded([&] { return x.scalar_value(loc); });
}

// PyTorch's form: what eval() would accept, and what says where it is when that is not the default.
std::string represent(const Tensor& x) {
  SourceLoc loc = here();
  if (!x.defined()) return "tensor(undefined)";
  bool on = x.requires_grad(loc), leaf = x.is_leaf(loc);
  std::string text = recorded([&] { return x.to_string(loc); });
  text = text.substr(0, text.rfind('\n'));
  std::string out = "tensor(";
  for (char c : text) {
    out += c;
    if (c == '\n') out += "       ";
  }
  DType t = x.dtype(loc);
  if (t != DType::Float32 && t != DType::Int64 && t != DType::Bool)
    out += ", dtype=ingot." + std::string(name_of(t));
  if (x.numel(loc) == 0) out += ", size=" + to_string(x.shape(loc));
  if (!x.device(loc).is_cpu() || x.device(loc).index())
    out += ", device='" + x.device(loc).name() + "'";
  if (on) out += leaf ? ", requires_grad=True" : ", grad_fn=<recorded>";
  return out + ")";
}

nb::object or_none(const Tensor& t) { return t.defined() ? nb::cast(t) : nb::none(); }

// The result of an operation has none: None, and a warning, as in PyTorch.
nb::object grad_or_warning(const Tensor& x) {
  try {
    return or_none(optim::gradient_of(x, here()));
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::Autograd || x.is_leaf()) throw;
    if (PyErr_WarnEx(PyExc_UserWarning, e.what(), 1) != 0) throw nb::python_error();
    return nb::none();
  }
}

void bind_reading(nb::class_<Tensor>& c) {
  c.def("item", &item, "The one element as a Python number.")
      .def("tolist", &to_list, "Nested lists of Python numbers.")
      .def("__repr__", &represent)
      .def("__float__", [](const Tensor& x) { return item(x).to<double>(); })
      .def("__int__", [](const Tensor& x) { return item(x).to<int64_t>(); })
      .def("__bool__",
           [](const Tensor& x) {
             Scalar s = item(x);
             return s.kind == Scalar::Kind::Float ? s.f != 0 : s.i != 0;
           })
      .def("__index__",
           [](const Tensor& x) {
             if (is_float(x.dtype()))
               throw nb::type_error("only integer tensors of one element can be used as an index");
             return item(x).to<int64_t>();
           })
      .def("__len__",
           [](const Tensor& x) {
             if (x.dim() == 0) throw nb::type_error("len() of a 0-d tensor");
             return x.shape()[0];
           })
      .def(
          "__getitem__", [](nb::handle self, nb::handle index) { return get_item(self, index); },
          "index"_a.none())
      .def(
          "__setitem__",
          [](nb::handle self, nb::handle index, nb::handle value) { set_item(self, index, value); },
          "index"_a.none(), "value"_a);
}

void bind_facts(nb::class_<Tensor>& c) {
  c.def_prop_ro("shape", [](const Tensor& x) { return x.shape(here()); })
      .def(
          "size", [](const Tensor& x) { return x.shape(here()); },
          "The sizes of all dims, or of one.")
      .def(
          "size", [](const Tensor& x, int64_t dim) { return x.size(dim, here()); }, "dim"_a)
      .def(
          "dim", [](const Tensor& x) { return x.dim(); }, "The number of dims.")
      .def_prop_ro("ndim", [](const Tensor& x) { return x.dim(); })
      .def(
          "ndimension", [](const Tensor& x) { return x.dim(); }, "The number of dims.")
      .def(
          "numel", [](const Tensor& x) { return x.numel(); }, "The number of elements.")
      .def(
          "nelement", [](const Tensor& x) { return x.numel(); }, "The number of elements.")
      .def(
          "element_size", [](const Tensor& x) { return size_of(x.dtype()); },
          "Bytes of one element.")
      .def_prop_ro("itemsize", [](const Tensor& x) { return size_of(x.dtype()); })
      .def_prop_ro(
          "nbytes",
          [](const Tensor& x) { return static_cast<size_t>(x.numel()) * size_of(x.dtype()); })
      .def(
          "stride", [](const Tensor& x) { return row_major(x.shape()); },
          "How many elements are between neighbours of a dim, in row-major order, which every "
          "tensor has.")
      .def(
          "stride",
          [](const Tensor& x, int64_t dim) {
            x.size(dim, here());  // refuses a dim out of range
            return row_major(x.shape())[static_cast<int>(dim < 0 ? dim + x.dim() : dim)];
          },
          "dim"_a)
      .def_prop_ro("dtype", [](const Tensor& x) { return x.dtype(here()); })
      .def_prop_ro("device", [](const Tensor& x) { return x.device(here()); })
      .def_prop_ro("is_cuda", [](const Tensor& x) { return x.device().is_cuda(); })
      .def(
          "get_device",
          [](const Tensor& x) { return x.device().is_cuda() ? x.device().index() : -1; },
          "The number of the GPU; -1 on the CPU.")
      .def(
          "is_floating_point", [](const Tensor& x) { return is_float(x.dtype()); },
          "Is the dtype a floating one?")
      .def(
          "is_complex", [](const Tensor&) { return false; }, "False: there are no complex types.")
      .def(
          "is_contiguous", [](const Tensor& x, nb::handle) { return x.is_contiguous(here()); },
          "memory_format"_a.none() = nb::none(),
          "Does contiguous() give this tensor? False for a view whose elements are not in "
          "row-major "
          "order in its base.")
      .def("defined", &Tensor::defined, "Does it hold a tensor?")
      .def(
          "set_name",
          [](nb::handle self, std::string name) {
            nb::inst_ptr<Tensor>(self)->set_name(std::move(name), here());
            return nb::borrow(self);
          },
          "name"_a, "Gives the tensor a name, which errors and plans show; returns it.")
      .def_prop_ro("name", [](const Tensor& x) { return x.name(here()); });
}

void bind_gradients(nb::class_<Tensor>& c) {
  c.def(
       "backward",
       [](const Tensor& x, const TensorIn& gradient, bool retain, bool create) {
         SourceLoc loc = here();
         recorded([&] { x.backward(gradient, retain || create, create, loc); });
       },
       "gradient"_a.none() = nb::none(), "retain_graph"_a = false, "create_graph"_a = false,
       "Adds the gradients of this tensor to .grad of every leaf that requires them.")
      .def_prop_rw(
          "grad", &grad_or_warning,
          [](const Tensor& x, const TensorIn& g) { x.set_grad(g, here()); },
          nb::for_setter(nb::arg("grad").none()))
      .def_prop_ro(
          "_grad", [](const Tensor& x) { return or_none(x.grad(here())); },
          "grad for the package itself: None after a step that cleared it, without marking it as "
          "used.")
      .def_prop_rw(
          "requires_grad", [](const Tensor& x) { return x.requires_grad(here()); },
          [](Tensor& x, bool on) { x.requires_grad_(on, here()); })
      .def(
          "requires_grad_",
          [](nb::handle self, bool on) {
            nb::inst_ptr<Tensor>(self)->requires_grad_(on, here());
            return nb::borrow(self);
          },
          "requires_grad"_a = true, "Says whether gradients are kept for this leaf; returns it.")
      .def_prop_ro("is_leaf", [](const Tensor& x) { return x.is_leaf(here()); })
      .def_prop_ro("grad_fn",
                   [](const Tensor& x) -> nb::object {
                     if (x.is_leaf() || !x.requires_grad()) return nb::none();
                     return nb::str("<recorded>");
                   })
      .def(
          "retain_grad", [](const Tensor& x) { x.retain_grad(here()); },
          "Keeps .grad of a non-leaf tensor too.")
      .def(
          "detach", [](const Tensor& x) { return x.detach(here()); },
          "The same values without a history: no gradient flows back.")
      .def(
          "clone", [](const Tensor& x, nb::handle) { return x.clone(here()); }, nb::kw_only(),
          "memory_format"_a.none() = nb::none(), "A copy; gradients flow through it.")
      .def_prop_rw(
          "data", [](const Tensor& x) { return x.detach(here()); },
          [](const Tensor& x, const TensorIn& v) {
            SourceLoc loc = here();
            recorded([&] { set_data(x, v, loc); });
          })
      .def(
          "register_hook",
          [](const Tensor& x, nb::callable fn) {
            // The hook may be dropped by a thread without the GIL.
            std::shared_ptr<PyObject> keep(fn.release().ptr(), [](PyObject* o) { drop_later(o); });
            SourceLoc loc = here();
            return register_hook(
                x,
                [keep](const Tensor& g) {
                  GilAcquire gil;
                  nb::object r = nb::borrow(keep.get())(g);
                  if (!r.is_none() && !is_tensor(r))
                    throw nb::type_error(("a hook must return a tensor or None, not " +
                                          std::string(Py_TYPE(r.ptr())->tp_name))
                                             .c_str());
                  return r.is_none() ? Tensor() : as_tensor(r);
                },
                loc);
          },
          "hook"_a, doc_of("register_hook"));
}

// In-place functions return the object they were called on.
template <class F>
auto in_place(F f) {
  return [f](nb::handle self, const OperandIn& v) {
    Tensor& x = *nb::inst_ptr<Tensor>(self);
    SourceLoc loc = here();
    recorded([&] { f(x, v.at(loc), loc); });
    return nb::borrow(self);
  };
}

void bind_in_place(nb::class_<Tensor>& c) {
#define IN_PLACE(name) in_place([](Tensor& x, const Operand& v, SourceLoc loc) { x.name(v, loc); })
  c.def("__iadd__", IN_PLACE(add_), nb::is_operator())
      .def("__isub__", IN_PLACE(sub_), nb::is_operator())
      .def("__imul__", IN_PLACE(mul_), nb::is_operator())
      .def("__itruediv__", IN_PLACE(div_), nb::is_operator())
      .def("mul_", IN_PLACE(mul_), "other"_a, doc_of("mul_"))
      .def("div_", IN_PLACE(div_), "other"_a, doc_of("div_"));
#undef IN_PLACE
  auto scaled = [](Tensor& (Tensor::*f)(const Operand&, const Scalar&, SourceLoc)) {
    return [f](nb::handle self, const OperandIn& v, const Scalar& alpha) {
      Tensor& x = *nb::inst_ptr<Tensor>(self);
      SourceLoc loc = here();
      recorded([&] { (x.*f)(v.at(loc), alpha, loc); });
      return nb::borrow(self);
    };
  };
  c.def("add_", scaled(&Tensor::add_), "other"_a, nb::kw_only(), "alpha"_a = 1, doc_of("add_"))
      .def("sub_", scaled(&Tensor::sub_), "other"_a, nb::kw_only(), "alpha"_a = 1, doc_of("sub_"))
      .def(
          "copy_",
          [](nb::handle self, const OperandIn& v, bool) {
            Tensor& x = *nb::inst_ptr<Tensor>(self);
            SourceLoc loc = here();
            recorded([&] { x.copy_(v.at(loc), loc); });
            return nb::borrow(self);
          },
          "src"_a, "non_blocking"_a = false,
          "Writes src into this tensor, broadcast and converted.")
      .def(
          "fill_",
          [](nb::handle self, const OperandIn& v) {
            Tensor& x = *nb::inst_ptr<Tensor>(self);
            SourceLoc loc = here();
            recorded([&] { x.copy_(v.at(loc), loc); });
            return nb::borrow(self);
          },
          "value"_a, "Writes value into every element.")
      .def(
          "zero_",
          [](nb::handle self) {
            SourceLoc loc = here();
            Tensor& x = *nb::inst_ptr<Tensor>(self);
            recorded([&] { x.zero_(loc); });
            return nb::borrow(self);
          },
          "Writes 0 into every element.");
}

void bind_conversions(nb::class_<Tensor>& c) {
  auto to = [](const Tensor& x, const std::optional<DeviceIn>& device,
               const std::optional<DType>& dtype, bool copy) {
    SourceLoc loc = here();
    return recorded([&] {
      Tensor y = x;
      if (dtype) y = y.to(*dtype, loc);
      if (device) y = y.to(device->get(), loc);
      return copy && y.cell() == x.cell() ? y.clone(loc) : y;
    });
  };
  // to(dtype), to(device), to(device, dtype), to(other); PyTorch's other keywords are
  // accepted and have no effect.
  c.def(
       "to",
       [to](const Tensor& x, DType dtype, bool, bool copy, nb::handle) {
         return to(x, {}, dtype, copy);
       },
       "dtype"_a, "non_blocking"_a = false, "copy"_a = false, "memory_format"_a.none() = nb::none(),
       "The tensor as another dtype, on another device, or both; itself where nothing changes.")
      .def(
          "to",
          [to](const Tensor& x, const TensorIn& o, bool, bool copy) {
            const Tensor& other = o;
            return to(x, DeviceIn{other.device(), {}}, other.dtype(), copy);
          },
          "other"_a, "non_blocking"_a = false, "copy"_a = false)
      .def(
          "to",
          [to](const Tensor& x, const std::optional<DeviceIn>& device,
               const std::optional<DType>& dtype, bool, bool copy,
               nb::handle) { return to(x, device, dtype, copy); },
          "device"_a.none() = nb::none(), "dtype"_a.none() = nb::none(), "non_blocking"_a = false,
          "copy"_a = false, "memory_format"_a.none() = nb::none())
      .def(
          "cpu", [](const Tensor& x) { return recorded([&, loc = here()] { return x.cpu(loc); }); },
          "The tensor in the CPU's memory.")
      .def(
          "cuda",
          [](const Tensor& x, int index, bool) {
            SourceLoc loc = here();
            return recorded([&] { return x.to(Device("cuda:" + std::to_string(index)), loc); });
          },
          "device"_a = 0, "non_blocking"_a = false, "The tensor in a GPU's memory.")
      .def(
          "contiguous", [](const Tensor& x, nb::handle) { return x.contiguous(here()); },
          "memory_format"_a.none() = nb::none(),
          "The tensor itself; a copy of a view whose elements are not in row-major order in its "
          "base.")
      .def(
          "type_as",
          [](const Tensor& x, const TensorIn& o) {
            const Tensor& other = o;
            return x.to(other.dtype(), here());
          },
          "other"_a, "The tensor with the dtype of another.")
      .def(
          "eval_",
          [](nb::handle self) {
            SourceLoc loc = here();
            const Tensor& x = as_tensor(self);
            recorded([&] { x.eval_(loc); });
            return nb::borrow(self);
          },
          "Computes what is pending below this tensor; returns it.");
  struct Row {
    const char* name;
    DType type;
  };
  for (Row r : {Row{"float", DType::Float32},
                {"double", DType::Float64},
                {"half", DType::Float16},
                {"bfloat16", DType::BFloat16},
                {"long", DType::Int64},
                {"int", DType::Int32},
                {"short", DType::Int16},
                {"char", DType::Int8},
                {"byte", DType::UInt8},
                {"bool", DType::Bool}})
    c.def(
        r.name, [t = r.type](const Tensor& x, nb::handle) { return x.to(t, here()); },
        "memory_format"_a.none() = nb::none(),
        ("The tensor as " + std::string(name_of(r.type)) + ".").c_str());
}

}  // namespace

nb::object values_indices(const char* name, const ValuesIndices& v) {
  static PyObject* types = nb::module_::import_("ingot.return_types").release().ptr();
  return nb::handle(types).attr(name)(v.values, v.indices);
}

PyType_Slot* tensor_slots();

void bind_tensor(nb::module_& m) {
  nb::class_<HookHandle>(m, "HookHandle").def("remove", &HookHandle::remove);
  nb::class_<Tensor> c(m, "Tensor", nb::type_slots(tensor_slots()), nb::is_weak_referenceable(),
                       "A multidimensional array, on any device; created by ingot.tensor, "
                       "ingot.zeros and similar functions.");
  tensor_class = reinterpret_cast<PyTypeObject*>(c.ptr());
  c.def(
      "__init__", [](Tensor* t, const TensorIn& other) { new (t) Tensor(other); }, "data"_a,
      "Another handle on the same tensor. ingot.tensor(data) copies data.");
  bind_facts(c);
  bind_reading(c);
  bind_gradients(c);
  bind_in_place(c);
  bind_conversions(c);
  nb::object object = c;
  bind_interop(m, object);
}

}  // namespace ingot_python
