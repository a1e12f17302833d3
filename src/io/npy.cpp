// NumPy's npy (a magic word, a header that is a Python dict, the elements) and npz (a zip archive
// of npy files).
#include "io/npy.h"

#include <cctype>
#include <charconv>
#include <cstring>

#include "io/tensor_bytes.h"
#include "io/zip.h"

namespace ingot::io {
namespace {

struct Header {
  std::string descr;
  bool fortran = false;
  Dims shape;
};

// The header is a dict literal of three entries: {'descr': '<f4', 'fortran_order': False, 'shape':
// (3, 4), }.
struct HeaderParser {
  std::string_view s;
  const Cursor& in;
  size_t at = 0;

  [[noreturn]] void bad() const { in.fail("is not a valid npy file: its header cannot be read"); }
  char next() {
    while (at < s.size() && std::isspace(static_cast<unsigned char>(s[at]))) ++at;
    return at < s.size() ? s[at] : '\0';
  }
  bool eat(char c) {
    if (next() != c) return false;
    ++at;
    return true;
  }
  void want(char c) {
    if (!eat(c)) bad();
  }
  std::string text() {
    char quote = next();
    if (quote != '\'' && quote != '"') bad();
    size_t end = s.find(quote, ++at);
    if (end == std::string_view::npos) bad();
    std::string t(s.substr(at, end - at));
    at = end + 1;
    return t;
  }
  bool boolean() {
    next();
    for (auto [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}})
      if (s.substr(at, word.size()) == word) {
        at += word.size();
        return value;
      }
    bad();
  }
  int64_t number() {
    next();
    int64_t v = 0;
    auto [end, error] = std::from_chars(s.data() + at, s.data() + s.size(), v);
    if (error != std::errc() || v < 0) bad();
    at = static_cast<size_t>(end - s.data());
    eat('L');
    return v;
  }
  Dims shape() {
    Dims d;
    want('(');
    while (!eat(')')) {
      if (d.size() == kMaxDims) in.fail("has more than " + std::to_string(kMaxDims) + " dims");
      d.push_back(number());
      if (!eat(',') && next() != ')') bad();
    }
    return d;
  }
  Header parse() {
    Header h;
    int seen = 0;
    want('{');
    while (!eat('}')) {
      std::string key = text();
      want(':');
      if (key == "descr" && next() == '[')
        in.fail("holds records of several fields", "save each field as a separate array");
      if (key == "descr")
        h.descr = text(), seen |= 1;
      else if (key == "fortran_order")
        h.fortran = boolean(), seen |= 2;
      else if (key == "shape")
        h.shape = shape(), seen |= 4;
      else
        bad();
      if (!eat(',') && next() != '}') bad();
    }
    if (seen != 7) bad();
    return h;
  }
};

struct ElementType {
  DType type;
  size_t size;         // in the file
  bool widen = false;  // unsigned, read as the next larger signed type
};

ElementType element_type(const std::string& descr, const char* op, const std::string& path,
                         const SourceLoc& loc) {
  static const std::pair<const char*, ElementType> known[] = {
      {"f8", {float64, 8}},     {"f4", {float32, 4}},     {"f2", {float16, 2}}, {"i8", {int64, 8}},
      {"i4", {int32, 4}},       {"i2", {int16, 2}},       {"i1", {int8, 1}},    {"u1", {uint8, 1}},
      {"u2", {int32, 2, true}}, {"u4", {int64, 4, true}}, {"b1", {bool_, 1}}};
  if (descr.size() == 3)
    for (const auto& [name, type] : known)
      if (descr.compare(1, 2, name) == 0) return type;
  throw Error(ErrorKind::Unsupported, op,
              "\"" + printable(path) + "\" holds elements of type " + printable(descr, 40) +
                  ", which Ingot does not have",
              loc, "convert them first, as in array.astype(numpy.float32)");
}

// Elements in this machine's byte order and in a type Ingot has.
void convert(Bytes from, const ElementType& t, bool big_endian, std::vector<uint8_t>& to) {
  size_t n = from.size() / t.size, wide = size_of(t.type);
  to.assign(n * wide, 0);
  for (size_t i = 0; i < n; ++i)
    for (size_t b = 0; b < t.size; ++b)
      to[i * wide + b] = from[i * t.size + (big_endian ? t.size - 1 - b : b)];
}

const char* descr_of(DType t, const char* op, const SourceLoc& loc) {
  switch (t) {
    case DType::Float64:
      return "<f8";
    case DType::Float32:
      return "<f4";
    case DType::Float16:
      return "<f2";
    case DType::Int64:
      return "<i8";
    case DType::Int32:
      return "<i4";
    case DType::Int16:
      return "<i2";
    case DType::Int8:
      return "|i1";
    case DType::UInt8:
      return "|u1";
    case DType::Bool:
      return "|b1";
    case DType::BFloat16:
      break;
  }
  throw Error(ErrorKind::DType, op, "NumPy has no bfloat16", loc,
              "convert with .to(float32), or use save_safetensors()");
}

std::string npy_header(const Tensor& t, const char* op, const SourceLoc& loc) {
  std::string shape;
  for (int64_t d : t.shape(loc)) shape += std::to_string(d) + ", ";
  if (t.dim() > 1) shape.resize(shape.size() - 2);
  std::string dict = std::string("{'descr': '") + descr_of(t.dtype(), op, loc) +
                     "', 'fortran_order': False, 'shape': (" +
                     (t.dim() == 1 ? shape.substr(0, shape.size() - 1) : shape) + "), }";
  dict.resize((10 + dict.size() + 1 + 63) / 64 * 64 - 11, ' ');
  dict += '\n';
  std::string head("\x93NUMPY\x01\x00", 8);
  head += static_cast<char>(dict.size() & 0xff);
  head += static_cast<char>(dict.size() >> 8);
  return head + dict;
}

Bytes as_bytes(const void* p, size_t n) { return {static_cast<const uint8_t*>(p), n}; }

std::vector<uint8_t> host_bytes(const Tensor& t, const SourceLoc& loc) {
  std::vector<uint8_t> v(static_cast<size_t>(t.numel()) * size_of(t.dtype()));
  t.copy_to(v.data(), loc);
  return v;
}

}  // namespace

Tensor parse_npy(Bytes file, const Options& options, const char* op, const std::string& path,
                 const SourceLoc& loc) {
  LocScope scope(loc);
  Cursor in(file, op, path, loc);
  if (file.size() < 10 || std::memcmp(file.data(), "\x93NUMPY", 6) != 0)
    in.fail("is not an npy file");
  in.take(6);
  uint8_t version = in.u8();
  in.u8();
  if (version < 1 || version > 3)
    in.fail("is an npy file of version " + std::to_string(version) + ", which is not known");
  size_t length = version == 1 ? in.u16() : in.u32();
  Bytes text = in.take(length);
  Header h = HeaderParser{{reinterpret_cast<const char*>(text.data()), text.size()}, in}.parse();
  ElementType t = element_type(h.descr, op, path, loc);
  size_t bytes = 0;
  if (!byte_count(h.shape, t.size, bytes) || bytes != in.left())
    in.fail("is not a valid npy file: " + h.descr + " of shape " + to_string(h.shape) +
            " does not take " + std::to_string(in.left()) + " bytes");
  Bytes data = in.take(bytes);
  std::vector<uint8_t> own;
  if (t.widen || (h.descr[0] == '>' && t.size > 1)) {
    convert(data, t, h.descr[0] == '>', own);
    data = own;
  }
  if (!h.fortran || h.shape.size() < 2)
    return tensor_from_bytes(data.data(), t.type, h.shape, options, loc);
  Dims reversed = h.shape, order = h.shape;
  for (int i = 0, n = h.shape.size(); i < n; ++i) {
    reversed[i] = h.shape[n - 1 - i];
    order[i] = n - 1 - i;
  }
  Tensor result = tensor_from_bytes(data.data(), t.type, reversed, options, loc).permute(order);
  return result.clone().eval_();
}

Tensor load_npy(const std::string& path, const Options& options, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  return reading("load_npy", path, loc, [&] {
    FileBytes file(path, "load_npy", loc);
    return parse_npy(file.bytes(), options, "load_npy", path, loc);
  });
}

void save_npy(const std::string& path, const Tensor& t, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  const Tensor now = t.defined() ? t.snapshot(loc) : t;
  std::string head = npy_header(now, "save_npy", loc);
  std::vector<uint8_t> data = host_bytes(now, loc);
  AtomicFile out(path, "save_npy", loc);
  out.write(head.data(), head.size());
  out.write(data.data(), data.size());
  out.commit();
}

NamedTensors parse_npz(Bytes file, const Options& options, const char* op, const std::string& path,
                       const SourceLoc& loc) {
  Budget budget(file.size(), op, path, loc);
  ZipReader zip(file, budget, op, path, loc);
  NamedTensors all;
  for (const ZipReader::Member& m : zip.members()) {
    std::string name = m.name;
    if (!is_utf8(name))
      fail_io(op, path, "has a member whose name is not UTF-8: \"" + name + "\"", loc);
    if (name.size() > 4 && name.compare(name.size() - 4, 4, ".npy") == 0)
      name.resize(name.size() - 4);
    std::vector<uint8_t> own;
    Tensor t = parse_npy(zip.read(m, own), options, op, path + "/" + m.name, loc);
    budget.give_back(own.size());
    budget.take(static_cast<size_t>(t.numel()), size_of(t.dtype()));
    all.emplace_back(std::move(name), std::move(t));
  }
  return all;
}

NamedTensors load_npz(const std::string& path, const Options& options, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  return reading("load_npz", path, loc, [&] {
    FileBytes file(path, "load_npz", loc);
    return parse_npz(file.bytes(), options, "load_npz", path, loc);
  });
}

void save_npz(const std::string& path, const NamedTensors& tensors, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  for (const auto& [name, t] : tensors) npy_header(t, "save_npz", loc);
  AtomicFile out(path, "save_npz", loc);
  ZipWriter zip(out);
  for (const auto& [name, t] : tensors) {
    const Tensor now = t.snapshot(loc);
    std::string head = npy_header(now, "save_npz", loc);
    std::vector<uint8_t> data = host_bytes(now, loc);
    zip.add(name + ".npy", as_bytes(head.data(), head.size()), data);
  }
  zip.finish();
  out.commit();
}

}  // namespace ingot::io
