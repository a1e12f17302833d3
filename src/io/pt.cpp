// PyTorch's .pt: a zip archive with a pickle, archive/data.pkl, that names storages,
// archive/data/0, archive/data/1, ...
#include "io/pt.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <unordered_map>

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
  Budget& budget;
  std::string folder;  // "archive/"
  size_t visits_left;  // dicts that contain one dict many times would never end
  std::unordered_map<std::string_view, std::pair<Bytes, std::vector<uint8_t>>> storages{};
  // The keys on the way to where visit() is: a text, or a number. A name is made for a tensor only.
  std::vector<std::pair<std::string_view, int64_t>> keys{};
  NamedTensors found{};

  [[noreturn]] void fail(const std::string& what) const { fail_io(op, path, what, loc); }

  DType type_of(std::string_view storage) const {
    static const std::pair<const char*, DType> known[] = {
        {"DoubleStorage", float64},    {"FloatStorage", float32}, {"HalfStorage", float16},
        {"BFloat16Storage", bfloat16}, {"LongStorage", int64},    {"IntStorage", int32},
        {"ShortStorage", int16},       {"CharStorage", int8},     {"ByteStorage", uint8},
        {"BoolStorage", bool_}};
    for (const auto& [name, type] : known)
      if (storage == name) return type;
    throw Error(ErrorKind::Unsupported, op,
                "\"" + printable(path) + "\" holds a tensor of torch." + printable(storage, 80) +
                    ", which Ingot does not have",
                loc, "convert it in PyTorch first");
  }

  Bytes storage(std::string_view key) {
    auto [at, fresh] = storages.try_emplace(key);
    if (!fresh) return at->second.first;
    if (key.size() > 200)
      fail("is damaged: it has no storage \"" + std::string(key.substr(0, 80)) + "\"");
    budget.take(128);
    const ZipReader::Member* m = zip.find(folder + "data/" + std::string(key));
    if (!m) fail("is damaged: it has no storage \"" + std::string(key.substr(0, 80)) + "\"");
    at->second.first = zip.read(*m, at->second.second);
    return at->second.first;
  }

  // Elements in row-major order, gathered by strides.
  static void gather(const uint8_t* from, uint8_t* to, const Dims& shape,
                     const std::vector<int64_t>& stride, size_t element) {
    Dims at = Dims::filled(shape.size(), 0);
    for (int64_t i = 0, n = shape.numel(); i < n; ++i) {
      int64_t offset = 0;
      for (int d = 0; d < shape.size(); ++d) offset += at[d] * stride[static_cast<size_t>(d)];
      std::memcpy(to + static_cast<size_t>(i) * element,
                  from + static_cast<size_t>(offset) * element, element);
      for (int d = shape.size() - 1; d >= 0 && ++at[d] == shape[d]; --d) at[d] = 0;
    }
  }

  std::string name() {
    if (keys.empty()) return "tensor";
    size_t length = 0;
    for (const auto& [text, number] : keys) length += text.size() + 21;
    budget.take(length);
    std::string all;
    for (const auto& [text, number] : keys) {
      if (&text != &keys[0].first) all += '.';
      if (text.data())
        all += text;
      else
        all += std::to_string(number);
    }
    if (!is_utf8(all)) fail("has a name that is not UTF-8: \"" + all.substr(0, 200) + "\"");
    return all;
  }

  Tensor tensor(const PickleValue& t, const std::string& name) {
    auto wrong = [&](const std::string& what) { fail("\"" + name.substr(0, 200) + "\" " + what); };
    const PickleValue& s = pickle[t.items[0]];
    const DType type = type_of(pickle[static_cast<uint32_t>(s.integer)].text.substr(6));
    const std::vector<int64_t> sizes = pickle.numbers(t.items[1]),
                               stride = pickle.numbers(t.items[2]);
    if (sizes.size() > static_cast<size_t>(kMaxDims))
      wrong("has more than " + std::to_string(kMaxDims) + " dims");
    Dims shape(sizes);
    size_t bytes = 0, element = size_of(type);
    if (t.integer < 0 || !byte_count(shape, element, bytes)) wrong("has impossible sizes");
    Bytes data = storage(s.text);
    // The furthest element a stride reaches must be inside the storage, and no tensor may be larger
    // than what backs it.
    int64_t last = t.integer, reach = 0;
    for (size_t d = 0; d < sizes.size() && bytes; ++d) {
      if (stride[d] < 0 || __builtin_mul_overflow(sizes[d] - 1, stride[d], &reach) ||
          __builtin_add_overflow(last, reach, &last))
        wrong("has impossible strides");
    }
    if (bytes && (static_cast<uint64_t>(last) >= data.size() / element || bytes > data.size()))
      wrong("reaches outside its storage of " + std::to_string(data.size()) + " bytes");
    // Even the smallest tensor takes some.
    budget.take(bytes + 1024);
    const uint8_t* from = data.data() + static_cast<size_t>(bytes ? t.integer : 0) * element;
    if (Dims(stride) == row_major(shape)) return tensor_from_bytes(from, type, shape, options, loc);
    auto fill = [&](void* to) {
      if (bytes) gather(from, static_cast<uint8_t*>(to), shape, stride, element);
    };
    return tensor_from(fill, type, shape, options, loc);
  }

  void visit(const PickleValue& v) {
    if (keys.size() > 32 || visits_left == 0) fail("its dicts are nested too deeply");
    --visits_left;
    auto below = [&](uint32_t id, std::string_view text, int64_t number) {
      keys.emplace_back(text, number);
      visit(pickle[id]);
      keys.pop_back();
    };
    if (v.kind == Kind::Tensor) {
      std::string own = name();
      Tensor t = tensor(v, own);
      found.emplace_back(std::move(own), std::move(t));
    } else if (v.kind == Kind::Dict) {
      for (size_t i = 0; i + 1 < v.items.size(); i += 2) {
        const PickleValue& key = pickle[v.items[i]];
        const bool text = key.kind == Kind::Text;
        below(v.items[i + 1],
              text ? std::string_view(key.text.data() ? key.text : "") : std::string_view(),
              key.integer);
      }
    } else if (v.kind == Kind::List || v.kind == Kind::Tuple) {
      for (size_t i = 0; i < v.items.size(); ++i) below(v.items[i], {}, static_cast<int64_t>(i));
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
        if (!is_utf8(v.text)) fail_io(op, path, "has a text that is not UTF-8", loc);
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
        return tagged(v.special ? "set" : "tuple", [&] { items(v, 1, depth); });
      case Kind::Dict:
        return tagged(v.special ? "namespace" : "dict", [&] { items(v, 2, depth); });
      default:  // a storage on its own too: it is not a value
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
  void hex(std::string_view bytes) {
    out += '"';
    for (char c : bytes)
      for (int shift : {4, 0}) out += "0123456789abcdef"[static_cast<uint8_t>(c) >> shift & 15];
    out += '"';
  }
  // "torch float32" is a dtype; other names of classes and functions stay names.
  void global(std::string_view name) {
    if (!is_utf8(name)) fail_io(op, path, "has a text that is not UTF-8", loc);
    if (name.rfind("torch ", 0) == 0)
      return tagged("dtype", [&] { out += json_text(name.substr(6)); });
    std::string dotted(name);
    std::replace(dotted.begin(), dotted.end(), ' ', '.');
    out += json_text(dotted);
  }
};

const ZipReader::Member* find_pickle(const ZipReader& zip) {
  const ZipReader::Member* found = nullptr;
  for (const ZipReader::Member& m : zip.members())
    if (m.name == "data.pkl" ||
        (m.name.size() > 9 && m.name.compare(m.name.size() - 9, 9, "/data.pkl") == 0))
      found = &m;
  return found;
}

}  // namespace

bool is_pt(Bytes file, const char* op, const std::string& path, const SourceLoc& loc) {
  Budget budget(file.size(), op, path, loc);
  return find_pickle(ZipReader(file, budget, op, path, loc)) != nullptr;
}

NamedTensors parse_pt(Bytes file, const Options& options, const char* op, const std::string& path,
                      const SourceLoc& loc, std::string* tree) {
  if (file.size() > 2 && file[0] == 0x80)
    fail_io(op, path, "is in the format before PyTorch 1.6", loc,
            "save it again with a newer PyTorch");
  LocScope scope(loc);
  Budget budget(file.size(), op, path, loc);
  ZipReader zip(file, budget, op, path, loc);
  const ZipReader::Member* found = find_pickle(zip);
  if (!found)
    fail_io(op, path, "is a zip archive, but not one of PyTorch's: it has no data.pkl", loc);
  const std::string folder = found->name.substr(0, found->name.size() - 8);
  std::vector<uint8_t> own, order;
  if (const ZipReader::Member* m = zip.find(folder + "byteorder")) {
    Bytes b = zip.read(*m, order);
    if (std::string(b.begin(), b.end()) != "little")
      fail_io(op, path, "was written on a big-endian machine", loc);
  }
  Pickle pickle(zip.read(*found, own), budget, op, path, loc);
  Reader reader{zip, pickle, options, op, path, loc, budget, folder, 4 * pickle.size() + 16};
  reader.visit(pickle.root());
  if (tree) {
    TreeWriter writer{pickle, op, path, loc, budget.left() / 4};
    writer.write(pickle.root(), 0);
    *tree = std::move(writer.out);
  }
  return std::move(reader.found);
}

NamedTensors load_pt(const std::string& path, const Options& options, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  return reading("load_pt", path, loc, [&] {
    FileBytes file(path, "load_pt", loc);
    return parse_pt(file.bytes(), options, "load_pt", path, loc);
  });
}

}  // namespace ingot::io
