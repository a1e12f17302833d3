// Tensors and other libraries' memory: the buffer protocol (NumPy), DLPack both ways, nested lists.
#include <cmath>
#include <cstring>
#include <memory>

#include "bind.h"
#include "foreign.h"
#include "ingot/creation.h"

namespace ingot_python {
namespace {

// ---- The buffer protocol, out

const char* format_of(DType t) {
  switch (t) {
    case DType::Float64:
      return "d";
    case DType::Float32:
      return "f";
    case DType::Float16:
      return "e";
    case DType::Int64:
      return "q";
    case DType::Int32:
      return "i";
    case DType::Int16:
      return "h";
    case DType::Int8:
      return "b";
    case DType::UInt8:
      return "B";
    case DType::Bool:
      return "?";
    default:
      return nullptr;
  }
}

struct Exported {
  SharedMemory memory;
  Dims shape, strides;
};

void refuse_export(const Tensor& x, const char* function) {
  std::string text;
  if (!x.device().is_cpu())
    text = std::string(function) + ": this tensor is on " + x.device().name() +
           "; copy it to the host first: x.cpu()." + function + "()";
  else if (!format_of(x.dtype()))
    text = std::string(function) + ": NumPy has no " + std::string(name_of(x.dtype())) +
           "; convert it first: x.float()";
  if (!text.empty()) throw nb::type_error(text.c_str());
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  try {
    const Tensor& x = as_tensor(self);
    refuse_export(x, "numpy");
    auto out = std::make_unique<Exported>();
    SourceLoc loc = here();
    out->memory = recorded([&] { return share_memory(x, loc); });
    out->shape = x.shape();
    out->strides = row_major(out->shape);
    size_t size = size_of(x.dtype());
    for (int64_t& s : out->strides) s *= static_cast<int64_t>(size);
    static int64_t nothing;
    view->buf = out->memory.data ? out->memory.data : &nothing;
    view->obj = self;
    Py_INCREF(self);
    view->len = out->shape.numel() * static_cast<Py_ssize_t>(size);
    view->itemsize = static_cast<Py_ssize_t>(size);
    view->readonly = 0;
    view->ndim = out->shape.size();
    view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format_of(x.dtype())) : nullptr;
    view->shape = flags & PyBUF_ND ? reinterpret_cast<Py_ssize_t*>(out->shape.begin()) : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES
                        ? reinterpret_cast<Py_ssize_t*>(out->strides.begin())
                        : nullptr;
    view->suboffsets = nullptr;
    view->internal = out.release();
    return 0;
  } catch (const nb::builtin_exception& e) {
    PyErr_SetString(PyExc_TypeError, e.what());
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_BufferError, e.what());
  }
  view->obj = nullptr;
  return -1;
}
void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Exported*>(view->internal); }

// ---- The buffer protocol and lists, in

struct Buffer {
  Py_buffer view{};
  bool held = false;
  bool open(nb::handle h, int flags) {
    held = PyObject_GetBuffer(h.ptr(), &view, flags) == 0;
    if (!held) PyErr_Clear();
    return held;
  }
  ~Buffer() {
    if (held) PyBuffer_Release(&view);
  }
};

ForeignArray array_of(const Py_buffer& v) {
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
  auto sizes = [](const Py_ssize_t* p) { return reinterpret_cast<const int64_t*>(p); };
  try {
    return foreign_array(
        HostBuffer{v.buf, v.format, v.itemsize, v.len, v.ndim, sizes(v.shape), sizes(v.strides)});
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::DType) throw nb::type_error(e.reason().c_str());
    throw nb::value_error(e.reason().c_str());
  }
}

// A copy of what an object with a buffer holds.
Tensor copy_buffer(const Buffer& b, const Options& o, const SourceLoc& loc) {
  const ForeignArray a = array_of(b.view);
  Tensor t = without_gil([&] { return from_foreign(a, true, {}, loc); });
  if (o.dtype) t = t.to(*o.dtype, loc);
  return t.to(o.device.value_or(default_device()), loc);
}

struct ListReader {
  std::vector<Scalar> values;
  Dims shape;
  DType type = DType::Bool;  // of tensors inside the list
  bool typed = false, ragged = false;
  bool too_large = false,
       real = false;  // there are integers that int64 cannot hold; numbers that are not integers
  void read(nb::handle h, int level) {
    PyObject* o = h.ptr();
    if (PyList_Check(o) || PyTuple_Check(o)) {
      Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
      if (level == shape.size()) {
        if (values.empty())
          shape.push_back(n);
        else
          ragged = true;
      } else if (shape[level] != n) {
        ragged = true;
      }
      // Reading an element may run Python code, which may change the list.
      for (Py_ssize_t i = 0; i < n && !ragged; ++i) {
        if (PySequence_Fast_GET_SIZE(o) != n)
          throw nb::value_error("the list changed while it was read");
        nb::object item = nb::borrow(PySequence_Fast_GET_ITEM(o, i));
        read(item, level + 1);
      }
      return;
    }
    if (level < shape.size() && !is_tensor(h) && !PyObject_CheckBuffer(o)) {
      ragged = true;
      return;
    }
    Scalar s;
    if (read_scalar(h, s, true)) {
      too_large = too_large || (PyLong_Check(o) && s.kind == Scalar::Kind::Float);
      real = real || (!PyLong_Check(o) && s.kind == Scalar::Kind::Float);
      values.push_back(s);
    } else if (is_tensor(h) && as_tensor(h).numel() == 1) {
      typed = true;
      type = promote(type, as_tensor(h).dtype());
      values.push_back(as_tensor(h).scalar_value());
    } else if (nb::hasattr(h, "tolist")) {
      read(h.attr("tolist")(), level);
    } else {
      throw nb::type_error(
          ("a tensor is made of numbers, not of " + std::string(Py_TYPE(o)->tp_name)).c_str());
    }
  }
};

// Numbers that the type cannot hold are refused; negative ones wrap in uint8, as in PyTorch.
void check_range(const ListReader& r, const std::optional<DType>& dtype, const SourceLoc& loc) {
  if (!dtype && r.too_large && !r.real && !r.typed)
    throw Error(ErrorKind::Value, "tensor", "Overflow: an integer does not fit into int64", loc,
                "give dtype=ingot.float64, or a float among the numbers");
  if (!dtype) return;
  for (const Scalar& s : r.values) check_fits(s, *dtype, "tensor", loc);
}

Tensor make_tensor(nb::handle data, const Options& o, const SourceLoc& loc) {
  if (is_tensor(data)) {
    const Tensor& x = as_tensor(data);
    return recorded([&] {
      Tensor y = x.detach(loc).clone(loc).detach(loc);
      if (o.dtype) y = y.to(*o.dtype, loc);
      return o.device ? y.to(*o.device, loc) : y;
    });
  }
  Buffer b;
  if (PyObject_CheckBuffer(data.ptr()) && b.open(data, PyBUF_FORMAT | PyBUF_STRIDES))
    return copy_buffer(b, o, loc);
  ListReader r;
  r.read(data, 0);
  if (r.ragged)
    throw nb::value_error("the lists of a tensor must have equal lengths at each level");
  check_range(r, o.dtype, loc);
  Options options = o;
  if (!options.dtype && r.typed && is_float(r.type)) options.dtype = r.type;
  return without_gil([&] { return tensor(r.values, r.shape, options, loc); });
}

Tensor from_numpy(nb::handle array, bool share) {
  SourceLoc loc = here();
  auto* b = new Buffer;
  std::unique_ptr<Buffer> guard(b);
  if (!share) {  // later writes to the array must not reach a value that has not been computed yet
    if (!b->open(array, PyBUF_FORMAT | PyBUF_STRIDES))
      throw nb::type_error("from_numpy() takes a NumPy array, or another object with a buffer");
    return copy_buffer(*b, Options(Device("cpu")), loc);
  }
  if (!b->open(array, PyBUF_FORMAT | PyBUF_ND | PyBUF_WRITABLE))
    throw nb::value_error("from_numpy(share=True) takes a contiguous array that may be written to");
  const ForeignArray a = array_of(b->view);
  guard.release();
  // The array is released later, by a thread that holds the GIL.
  PyObject* keep = PyCapsule_New(b, nullptr, [](PyObject* c) {
    delete static_cast<Buffer*>(PyCapsule_GetPointer(c, nullptr));
  });
  Tensor t = from_foreign(
      a, false, [keep] { drop_later(keep); }, loc);
  if (a.shape.numel() && share_memory(t, loc).data != a.data)
    throw nb::value_error(
        "from_numpy(share=True) takes an array whose elements are aligned, and bools of 0 and 1");
  return t;
}

// ---- DLPack

struct DLManaged {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManaged*);
};
struct DLManagedVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(DLManagedVersioned*);
  uint64_t flags;
  DLTensor tensor;
};
constexpr uint64_t kReadOnly = 1, kCopied = 2;

struct Lent {
  SharedMemory memory;
  Dims shape, strides;
};
template <class Managed>
nb::object lend(const Tensor& x, SharedMemory memory, const char* capsule_name, bool copied) {
  auto* lent = new Lent{std::move(memory), x.shape(), row_major(x.shape())};
  auto* m = new Managed{};
  m->context = lent;
  m->deleter = [](Managed* self) {
    delete static_cast<Lent*>(self->context);
    delete self;
  };
  Device d = x.device();
  m->tensor = {lent->memory.data,
               {d.is_cpu() ? kDLCpu : kDLCuda, d.is_cpu() ? 0 : d.index()},
               x.dim(),
               dl_type(x.dtype()),
               lent->shape.begin(),
               lent->strides.begin(),
               0};
  if constexpr (std::is_same_v<Managed, DLManagedVersioned>) {
    m->major = 1;
    m->flags = copied ? kCopied : 0;
  }
  return nb::steal(PyCapsule_New(m, capsule_name, [](PyObject* c) {
    // A consumer renames the capsule; then it owns the memory.
    const char* name = PyCapsule_GetName(c);
    if (name && std::strncmp(name, "used_", 5) != 0) {
      auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(c, name));
      managed->deleter(managed);
    }
  }));
}

nb::object to_dlpack(const Tensor& x, nb::handle, nb::object max_version, nb::object dl_device,
                     nb::object copy) {
  SourceLoc loc = here();
  if (x.requires_grad())
    throw nb::buffer_error("a tensor that requires gradients is shared without them: x.detach()");
  bool want_copy = !copy.is_none() && nb::cast<bool>(copy);
  bool moves = false;
  if (!dl_device.is_none()) {
    auto [type, id] = nb::cast<std::pair<int, int>>(dl_device);
    moves = type == kDLCpu && x.device().is_cuda();
    if (type != (x.device().is_cuda() ? kDLCuda : kDLCpu) && !moves)
      throw nb::buffer_error("the tensor is not on that device: move it with .to()");
    (void)id;
    if (moves && !copy.is_none() && !want_copy)
      throw nb::buffer_error("copy=False, but the tensor is on another device");
  }
  Tensor y = moves ? x.cpu(loc) : x;
  if (want_copy && !moves) {
    std::vector<char> bytes;
    y = recorded([&] { return (y.clone(loc)); });
  }
  // The whole device is waited for, so the stream the consumer names needs nothing more.
  SharedMemory memory = recorded([&] { return share_memory(y, loc); });
  if (want_copy && !moves && y.device().is_cpu()) {  // a clone may share its source's buffer
    auto bytes =
        std::make_shared<std::vector<char>>(static_cast<size_t>(y.numel()) * size_of(y.dtype()));
    if (!bytes->empty()) std::memcpy(bytes->data(), memory.data, bytes->size());
    memory = {bytes->data(), bytes};
  }
  bool versioned = !max_version.is_none() && nb::cast<int>(max_version[0]) >= 1;
  return versioned ? lend<DLManagedVersioned>(y, memory, "dltensor_versioned", want_copy || moves)
                   : lend<DLManaged>(y, memory, "dltensor", want_copy || moves);
}

// An invalid array is a BufferError; too little memory or a missing GPU keep their own error.
[[noreturn]] void rethrow_buffer_error() {
  try {
    throw;
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::OutOfMemory || e.kind() == ErrorKind::Device) throw;
    throw nb::buffer_error(
        ("from_dlpack: " + e.reason() + (e.fix().empty() ? "" : ": " + e.fix())).c_str());
  }
}

template <class Managed>
Tensor borrow_memory(Managed* m, bool must_copy, const SourceLoc& loc) {
  auto done = [m] {
    if (m->deleter) m->deleter(m);
  };
  ForeignArray a;
  try {
    a = foreign_array(m->tensor);
  } catch (...) {
    done();
    rethrow_buffer_error();
  }
  try {
    return from_foreign(a, must_copy, done, loc);
  } catch (...) {
    rethrow_buffer_error();
  }
}

Tensor take_capsule(nb::handle capsule, bool must_copy, const SourceLoc& loc) {
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    auto* m =
        static_cast<DLManagedVersioned*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    if (m->major > 1) throw nb::buffer_error("from_dlpack: a DLPack version newer than 1");
    PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
    return borrow_memory(m, must_copy || (m->flags & kReadOnly), loc);
  }
  if (!PyCapsule_IsValid(capsule.ptr(), "dltensor"))
    throw nb::type_error("from_dlpack() takes an object with __dlpack__, or its capsule, once");
  auto* m = static_cast<DLManaged*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  return borrow_memory(m, must_copy, loc);
}

Tensor from_dlpack(nb::handle source, const std::optional<DeviceIn>& device, nb::object copy) {
  SourceLoc loc = here();
  bool must_copy = !copy.is_none() && nb::cast<bool>(copy);
  nb::object capsule;
  if (!nb::hasattr(source, "__dlpack__")) {
    capsule = nb::borrow(source);
  } else {
    nb::dict kw;
    kw["max_version"] = nb::make_tuple(1, 0);
    try {
      capsule = source.attr("__dlpack__")(**kw);
    } catch (nb::python_error& e) {
      if (!e.matches(PyExc_TypeError)) throw;
      capsule = source.attr("__dlpack__")();  // from before versions
    }
  }
  Tensor t = take_capsule(capsule, must_copy, loc);
  if (device && device->get() != t.device()) {
    if (!copy.is_none() && !must_copy)
      throw nb::value_error("from_dlpack: copy=False, but the data is on another device");
    return recorded([&] { return t.to(device->get(), loc); });
  }
  return t;
}

}  // namespace

PyType_Slot* tensor_slots() {
  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)},
                                {Py_bf_releasebuffer, reinterpret_cast<void*>(&release_buffer)},
                                {0, nullptr}};
  return slots;
}

void bind_interop(nb::module_& m, nb::object& tensor) {
  auto c = nb::borrow<nb::class_<Tensor>>(tensor);
  c.def(
      "numpy",
      [](nb::handle self, bool force) {
        const Tensor& x = as_tensor(self);
        nb::object source = nb::borrow(self);
        if (x.requires_grad()) {
          if (!force)
            throw nb::type_error(
                "numpy: this tensor requires gradients, which NumPy does not have: "
                "x.detach().numpy()");
          source = nb::cast(x.detach(here()));
        }
        if (force)
          source = nb::cast(recorded([&, loc = here()] { return as_tensor(source).cpu(loc); }));
        refuse_export(as_tensor(source), "numpy");
        return nb::module_::import_("numpy").attr("asarray")(source);
      },
      nb::kw_only(), "force"_a = false,
      "A NumPy array on the same memory (CPU tensors). In-place calls on the tensor later do not "
      "change the "
      "array.");
  c.def("__dlpack__", &to_dlpack, nb::kw_only(), "stream"_a.none() = nb::none(),
        "max_version"_a.none() = nb::none(), "dl_device"_a.none() = nb::none(),
        "copy"_a.none() = nb::none());
  c.def("__dlpack_device__", [](const Tensor& x) {
    Device d = x.device();
    return std::make_pair(d.is_cpu() ? kDLCpu : kDLCuda, d.is_cpu() ? 0 : d.index());
  });
  c.def(
      "data_ptr",
      [](const Tensor& x) {
        SourceLoc loc = here();
        return reinterpret_cast<uintptr_t>(recorded([&] { return share_memory(x, loc); }).data);
      },
      "The address of the elements, which are computed first; it holds while the tensor is not "
      "changed.");
  def(
      m, "tensor",
      [](nb::handle data, const std::optional<DType>& dtype, const std::optional<DeviceIn>& device,
         bool requires_grad, bool) {
        SourceLoc loc = here();
        Tensor t = make_tensor(data, options_of(dtype, device), loc);
        if (requires_grad) t.requires_grad_(true, loc);
        return t;
      },
      "data"_a, nb::kw_only(), "dtype"_a.none() = nb::none(), "device"_a.none() = nb::none(),
      "requires_grad"_a = false, "pin_memory"_a = false,
      "A copy of data: numbers, nested lists, a NumPy array, a tensor, anything with a buffer.");
  def(m, "from_numpy", &from_numpy, "ndarray"_a, nb::kw_only(), "share"_a = false,
      "A tensor with a copy of the array's elements. share=True: on the array's memory, which must "
      "be "
      "contiguous "
      "and writable; values are computed later, so do not change the array before they are.");
  def(
      m, "to_bytes",
      [](const TensorIn& in) {
        SourceLoc loc = here();
        const Tensor& x = in;
        size_t n = static_cast<size_t>(x.numel(loc)) * size_of(x.dtype(loc));
        nb::object bytes =
            nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(n)));
        if (!bytes.is_valid()) throw nb::python_error();
        char* to = PyBytes_AS_STRING(bytes.ptr());
        recorded([&] { x.copy_to(to, loc); });
        return bytes;
      },
      "x"_a, "The elements in row-major order, as bytes.");
  def(
      m, "from_bytes",
      [](nb::handle data, DType dtype, const Dims& shape) {
        SourceLoc loc = here();
        Buffer b;
        if (!b.open(data, PyBUF_SIMPLE))
          throw nb::type_error(
              "from_bytes() takes bytes, or another object with a contiguous buffer");
        if (static_cast<size_t>(b.view.len) != static_cast<size_t>(shape.numel()) * size_of(dtype))
          throw nb::value_error("from_bytes(): the bytes do not fill the shape");
        return recorded([&] {
          // Foreign bools may be any byte: read as integers, they become 0 or 1.
          const bool bools = dtype == DType::Bool;
          Tensor t = from_data(b.view.buf, bools ? DType::UInt8 : dtype, shape,
                               Options(Device("cpu")), loc);
          return bools ? t.to(DType::Bool, loc) : t;
        });
      },
      "data"_a, "dtype"_a, "shape"_a);
  def(m, "from_dlpack", &from_dlpack, "x"_a, nb::kw_only(), "device"_a.none() = nb::none(),
      "copy"_a.none() = nb::none(),
      "A tensor on the memory of any object with __dlpack__, without a copy where it is "
      "contiguous.");
}

}  // namespace ingot_python
