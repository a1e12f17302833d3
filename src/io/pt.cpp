// PyTorch's .pt: a zip archive with a pickle, archive/data.pkl, that names storages, archive/data/0,
// archive/data/1, ...
#include "io/pt.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>

#include "io/json.h"
#include "io/pickle.h"
#include "io/tensor_bytes.h"
#include "io/zip.h"

namespace ingot::io {
namespace {

using Kind = PickleValue::Kind;

struct Reader {
  const ZipReader& zip;
  const Pickle& pickle;
  const Options& options;
  const char* op;
  const std::string& path;
  const SourceLoc& loc;
  std::string folder;  // "archive/"
  size_t bytes_left;   // what tensors may take together
  size_t visits_left;  // dicts that hold one dict many times over would never end
  std::map<std::string, std::pair<Bytes, std::vector<uint8_t>>> storages{};
  NamedTensors found{};

  [[noreturn]] void fail(const std::string& what) const { fail_io(op, path, what, loc); }

  DType type_of(const std::string& storage) const {
    static const std::pair<const char*, DType> known[] = {
        {"DoubleStorage", float64},    {"FloatStorage", float32}, {"HalfStorage", float16},
        {"BFloat16Storage", bfloat16}, {"LongStorage", int64},    {"IntStorage", int32},
        {"ShortStorage", int16},       {"CharStorage", int8},     {"ByteStorage", uint8},
        {"BoolStorage", bool_}};
    for (const auto& [name, type] : known)
      if (storage == name) return type;
    throw Error(
        ErrorKind::Unsupported, op,
        "\"" + path + "\" holds a tensor of torch." + storage.substr(0, 80) + ", which Ingot does not have",
        loc, "convert it in PyTorch first");
  }

  Bytes storage(const std::string& key) {
    auto [at, fresh] = storages.try_emplace(key);
    if (!fresh) return at->second.first;
    const ZipReader::Member* m = zip.find(folder + "data/" + key);
    if (!m) fail("is damaged: it has no storage \"" + key.substr(0, 80) + "\"");
    at->second.first = zip.read(*m, at->second.second);
    return at->second.first;
  }

  // Elements in row-major order, gathered by strides.
  static void gather(const uint8_t* from, uint8_t* to, const Dims& shape, const std::vector<int64_t>& stride,
                     size_t element) {
    Dims at = Dims::filled(shape.size(), 0);
    for (int64_t i = 0, n = shape.numel(); i < n; ++i) {
      int64_t offset = 0;
      for (int d = 0; d < shape.size(); ++d) offset += at[d] * stride[static_cast<size_t>(d)];
      std::memcpy(to + static_cast<size_t>(i) * element, from + static_cast<size_t>(offset) * element,
                  element);
      for (int d = shape.size() - 1; d >= 0 && ++at[d] == shape[d]; --d) at[d] = 0;
    }
  }

  Tensor tensor(const PickleValue& t, const std::string& name) {
    const PickleValue& s = pickle[t.items[0]];
    DType type = type_of(s.type);
    if (t.shape.size() > static_cast<size_t>(kMaxDims))
      fail("\"" + name + "\" has more than " + std::to_string(kMaxDims) + " dims");
    Dims shape(t.shape);
    size_t bytes = 0, element = size_of(type);
    if (t.integer < 0 || !byte_count(shape, element, bytes))
      fail("\"" + name + "\" has sizes that cannot be");
    Bytes data = storage(s.text);
    // The furthest element a stride reaches must lie inside the storage, and no tensor may be larger than
    // what backs it.
    int64_t last = t.integer, reach = 0;
    for (size_t d = 0; d < t.shape.size() && bytes; ++d) {
      if (t.stride[d] < 0 || __builtin_mul_overflow(t.shape[d] - 1, t.stride[d], &reach) ||
          __builtin_add_overflow(last, reach, &last))
        fail("\"" + name + "\" has strides that cannot be");
    }
    if (bytes && (static_cast<uint64_t>(last) >= data.size() / element || bytes > data.size()))
      fail("\"" + name + "\" reaches outside its storage of " + std::to_string(data.size()) + " bytes");
    if (bytes > bytes_left) fail("its tensors together are far larger than the file");
    bytes_left -= bytes;
    const uint8_t* from = data.data() + static_cast<size_t>(bytes ? t.integer : 0) * element;
    if (Dims(t.stride) == row_major(shape)) return tensor_from_bytes(from, type, shape, options, loc);
    std::vector<uint8_t> own(bytes);
    if (bytes) gather(from, own.data(), shape, t.stride, element);
    return tensor_from_bytes(own.data(), type, shape, options, loc);
  }

  void visit(const PickleValue& v, const std::string& name, int depth) {
    if (depth > 32 || visits_left == 0) fail("its dicts are nested too deeply");
    --visits_left;
    auto below = [&](const std::string& part) { return name.empty() ? part : name + "." + part; };
    if (v.kind == Kind::Tensor) {
      found.emplace_back(name, tensor(v, name));
    } else if (v.kind == Kind::Dict) {
      for (size_t i = 0; i + 1 < v.items.size(); i += 2) {
        const PickleValue& key = pickle[v.items[i]];
        visit(pickle[v.items[i + 1]], below(key.kind == Kind::Text ? key.text : std::to_string(key.integer)),
              depth + 1);
      }
    } else if (v.kind == Kind::List || v.kind == Kind::Tuple) {
      for (size_t i = 0; i < v.items.size(); ++i)
        visit(pickle[v.items[i]], below(std::to_string(i)), depth + 1);
    }
  }
};

// The values as JSON. Tensors are numbered in the order in which Reader::visit() finds them.
struct TreeWriter {
  const Pickle& pickle;
  const char* op;
  const std::string& path;
  const SourceLoc& loc;
  size_t limit;
  std::string out{};
  size_t tensors = 0;
  bool in_key = false;

  void write(const PickleValue& v, int depth) {
    if (depth > 33) fail_io(op, path, "its dicts are nested too deeply", loc);
    if (out.size() > limit) fail_io(op, path, "its values are far larger than the file", loc);
    switch (v.kind) {
      case Kind::Bool:
        out += v.integer ? "true" : "false";
        return;
      case Kind::Int:
        out += std::to_string(v.integer);
        return;
      case Kind::Float:
        return number(std::bit_cast<double>(v.integer));
      case Kind::Text:
        out += json_text(v.text);
        return;
      case Kind::Binary:
        return tagged("bytes", [&] { hex(v.text); });
      case Kind::Global:
        return global(v.text);
      case Kind::Tensor:
        if (in_key) fail_io(op, path, "a tensor is the key of a dict", loc);
        return tagged("tensor", [&] { out += std::to_string(tensors++); });
      case Kind::List:
        return items(v, 1, depth);
      case Kind::Tuple:
        return tagged(v.type == "set" ? "set" : "tuple", [&] { items(v, 1, depth); });
      case Kind::Dict:
        return tagged(v.type == "Namespace" ? "namespace" : "dict", [&] { items(v, 2, depth); });
      default:  // a storage by itself too: it is nobody's value
        out += "null";
    }
  }

 private:
  template <class F>
  void tagged(const char* kind, F&& value) {
    out += std::string("{\"$\":\"") + kind + "\",\"v\":";
    value();
    out += '}';
  }
  // [a, b] or, for a dict, [[key, value], ...].
  void items(const PickleValue& v, size_t step, int depth) {
    out += '[';
    for (size_t i = 0; i + step <= v.items.size(); i += step) {
      if (i) out += ',';
      if (step == 2) {
        out += '[';
        const bool outer = std::exchange(in_key, true);
        write(pickle[v.items[i]], depth + 1);
        in_key = outer;
        out += ',';
      }
      write(pickle[v.items[i + step - 1]], depth + 1);
      if (step == 2) out += ']';
    }
    out += ']';
  }
  // As Python's json reads it, which knows infinities.
  void number(double d) {
    if (!std::isfinite(d)) {
      out += std::isnan(d) ? "NaN" : d > 0 ? "Infinity" : "-Infinity";
      return;
    }
    char text[32];
    auto [end, error] = std::to_chars(text, text + sizeof text, d);
    std::string_view s(text, static_cast<size_t>(end - text));
    out += s;
    if (s.find_first_of(".e") == std::string_view::npos) out += ".0";
  }
  void hex(const std::string& bytes) {
    out += '"';
    for (char c : bytes)
      for (int shift : {4, 0}) out += "0123456789abcdef"[static_cast<uint8_t>(c) >> shift & 15];
    out += '"';
  }
  // "torch float32" is a dtype; other names of classes and functions stay names.
  void global(const std::string& name) {
    if (name.rfind("torch ", 0) == 0) return tagged("dtype", [&] { out += json_text(name.substr(6)); });
    std::string dotted = name;
    std::replace(dotted.begin(), dotted.end(), ' ', '.');
    out += json_text(dotted);
  }
};

}  // namespace

NamedTensors parse_pt(Bytes file, const Options& options, const char* op, const std::string& path,
                      const SourceLoc& loc, std::string* tree) {
  if (file.size() > 2 && file[0] == 0x80)
    fail_io(op, path, "is in the format before PyTorch 1.6", loc, "save it again with a newer PyTorch");
  LocScope scope(loc);
  ZipReader zip(file, op, path, loc);
  std::string folder;
  const ZipReader::Member* found = nullptr;
  for (const ZipReader::Member& m : zip.members())
    if (m.name == "data.pkl" || (m.name.size() > 9 && m.name.compare(m.name.size() - 9, 9, "/data.pkl") == 0))
      found = &m;
  if (!found) fail_io(op, path, "is a zip archive, but not one of PyTorch's: it has no data.pkl", loc);
  folder = found->name.substr(0, found->name.size() - 8);
  std::vector<uint8_t> own, order;
  if (const ZipReader::Member* m = zip.find(folder + "byteorder")) {
    Bytes b = zip.read(*m, order);
    if (std::string(b.begin(), b.end()) != "little")
      fail_io(op, path, "was written on a big-endian machine", loc);
  }
  Pickle pickle(zip.read(*found, own), op, path, loc);
  Reader reader{zip, pickle, options, op, path, loc, folder, 16 * file.size(), 16 * pickle.size() + 16};
  reader.visit(pickle.root(), pickle.root().kind == Kind::Tensor ? "tensor" : "", 0);
  if (tree) {
    TreeWriter writer{pickle, op, path, loc, 64 * file.size() + (size_t{1} << 20)};
    writer.write(pickle.root(), 0);
    *tree = std::move(writer.out);
  }
  return std::move(reader.found);
}

NamedTensors load_pt(const std::string& path, const Options& options, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  MappedFile file(path, "load_pt", loc);
  return parse_pt(file.bytes(), options, "load_pt", path, loc);
}

}  // namespace ingot::io
