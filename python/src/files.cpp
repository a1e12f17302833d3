// Files of tensors. python/ingot/serialization.py says how nested values become names and texts;
// reading and writing are the core's.
#include <memory>

#include "bind.h"

namespace ingot_python {
namespace {

// Names in files are bytes, usually UTF-8; other bytes become Python's surrogate escapes.
nb::object text_of(const std::string& s) {
  for (const char* manner : {"surrogatepass", "surrogateescape"}) {
    PyObject* text = PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), manner);
    if (text) return nb::steal(text);
    PyErr_Clear();
  }
  throw nb::python_error();
}

std::string bytes_of(nb::handle h) {
  char* data = nullptr;
  Py_ssize_t n = 0;
  if (PyBytes_AsStringAndSize(h.ptr(), &data, &n) != 0) throw nb::python_error();
  return {data, static_cast<size_t>(n)};
}

nb::tuple contents(const io::Contents& c) {
  nb::list tensors;
  for (const auto& [name, t] : c.tensors)
    tensors.append(nb::make_tuple(text_of(name), nb::cast(t)));
  nb::dict metadata;
  for (const auto& [key, value] : c.metadata) metadata[text_of(key)] = text_of(value);
  return nb::make_tuple(tensors, metadata, text_of(c.tree));
}

struct Parts {
  io::NamedTensors tensors;
  io::Metadata metadata;
  Parts(const nb::list& named, const nb::dict& texts) {
    for (nb::handle h : named) {
      auto pair = nb::cast<nb::tuple>(h);
      tensors.emplace_back(bytes_of(pair[0]), as_tensor(pair[1]));
    }
    for (auto [key, value] : texts)
      metadata[nb::cast<std::string>(key)] = nb::cast<std::string>(value);
  }
};

// What a Checkpoint saves and restores for Python: all parts in one, as
// ingot/_checkpoint.py splits them.
struct PythonState {
  nb::callable get, set;

  StateDict state_dict() const {
    GilAcquire gil;
    auto [tensors, tree] = nb::cast<std::pair<nb::list, std::string>>(get());
    StateDict d;
    Parts parts(tensors, {});
    d.tensors = std::move(parts.tensors);
    d.set("tree", tree);
    return d;
  }
  void load_state_dict(const StateDict& d) const {
    GilAcquire gil;
    nb::list tensors;
    for (const auto& [name, t] : d.tensors)
      tensors.append(nb::make_tuple(text_of(name), nb::cast(t)));
    set(tensors, text_of(d.text("tree")));
  }
};
struct PythonCheckpoint {
  PythonState state;
  std::unique_ptr<Checkpoint> files;
};

void bind_checkpoint(nb::module_& m) {
  using C = PythonCheckpoint;
  nb::class_<C>(m, "CheckpointFiles", "The files of an ingot.Checkpoint.")
      .def("__init__",
           [](C* self, nb::bytes folder, int keep, bool asynchronous, nb::callable get,
              nb::callable set) {
             new (self) C{{std::move(get), std::move(set)}, {}};
             try {
               const CheckpointFolder where(bytes_of(folder), here());
               self->files = std::make_unique<Checkpoint>(
                   where, CheckpointOptions{keep, asynchronous, /*handle_signals=*/false},
                   self->state);
             } catch (...) {
               self->~C();
               throw;
             }
           })
      .def("resume",
           [](C& c) { return without_gil([&, loc = here()] { return c.files->resume(loc); }); })
      .def("save",
           [](C& c, int64_t number) {
             without_gil([&, loc = here()] { c.files->save(number, loc); });
           })
      .def("wait", [](C& c) { without_gil([&, loc = here()] { c.files->wait(loc); }); })
      .def("close", [](C& c) { without_gil([&] { c.files.reset(); }); })
      .def("files",
           [](C& c) {
             nb::list all;
             for (const std::string& path : c.files->files()) all.append(text_of(path));
             return all;
           })
      .def("messages", [](C& c) {
        nb::list all;
        for (const std::string& text : c.files->messages()) all.append(text_of(text));
        return all;
      });
  m.def(
      "_default_generator", [] { return default_generator(); },
      "The default generator of random numbers.");
}

}  // namespace

void bind_files(nb::module_& m) {
  bind_checkpoint(m);
  def(
      m, "load_contents",
      [](nb::bytes path) {
        SourceLoc loc = here();
        std::string p = bytes_of(path);
        return contents(
            without_gil([&] { return io::load_contents(p, Options(Device("cpu")), loc); }));
      },
      "path"_a,
      "(tensors by name, metadata, tree) of a safetensors, npy, npz or .pt file; the tree is JSON: "
      "see "
      "ingot.load().");
  def(
      m, "load_contents_bytes",
      [](nb::handle data, const std::string& name) {
        SourceLoc loc = here();
        Py_buffer view;
        if (PyObject_GetBuffer(data.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
        std::unique_ptr<Py_buffer, decltype(&PyBuffer_Release)> held(&view, PyBuffer_Release);
        std::span<const uint8_t> bytes(static_cast<const uint8_t*>(view.buf),
                                       static_cast<size_t>(view.len));
        return contents(without_gil(
            [&] { return io::load_contents(bytes, name, Options(Device("cpu")), loc); }));
      },
      "data"_a, "name"_a, "The same of a file's bytes.");
  def(
      m, "save_safetensors",
      [](nb::bytes path, const nb::list& tensors, const nb::dict& metadata) {
        SourceLoc loc = here();
        std::string p = bytes_of(path);
        Parts parts(tensors, metadata);
        recorded([&] { io::save_safetensors(p, parts.tensors, parts.metadata, loc); });
      },
      "path"_a, "tensors"_a, "metadata"_a,
      "Writes pairs of a name (bytes) and a tensor as a safetensors file, which replaces the old "
      "one "
      "whole.");
  def(
      m, "write_safetensors",
      [](nb::callable write, const nb::list& tensors, const nb::dict& metadata) {
        SourceLoc loc = here();
        Parts parts(tensors, metadata);
        auto give = [&](const void* data, size_t n) {
          GilAcquire gil;
          write(nb::bytes(static_cast<const char*>(data), n));
        };
        recorded([&] { io::write_safetensors(give, parts.tensors, parts.metadata, loc); });
      },
      "write"_a, "tensors"_a, "metadata"_a, "The same file passed to write(bytes) piece by piece.");
}

}  // namespace ingot_python
