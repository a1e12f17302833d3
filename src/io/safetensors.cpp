// safetensors: eight bytes of length, a JSON header that names tensors and their places, then the data.
// Tensors must lie one after the other without gaps, as the format demands, so that nothing hides in between.
#include "io/safetensors.h"

#include <algorithm>
#include <unordered_set>

#include "io/json.h"
#include "io/tensor_bytes.h"

namespace ingot::io {
namespace {

constexpr size_t kMaxHeader = 100'000'000;  // the format's own limit

struct TypeName {
  const char* name;
  DType type;
};
constexpr TypeName kTypes[] = {{"F64", DType::Float64},   {"F32", DType::Float32}, {"F16", DType::Float16},
                               {"BF16", DType::BFloat16}, {"I64", DType::Int64},   {"I32", DType::Int32},
                               {"I16", DType::Int16},     {"I8", DType::Int8},     {"U8", DType::UInt8},
                               {"BOOL", DType::Bool}};

struct Fail {
  const char* op;
  const std::string& path;
  const SourceLoc& loc;
  [[noreturn]] void operator()(const std::string& what) const {
    fail_io(op, path, "is not a sound safetensors file: " + what, loc);
  }
};

int64_t whole(const Json& j, const std::string& what, const Fail& fail) {
  if (j.kind != Json::Kind::Integer || j.integer < 0) fail(what + " is not a whole number");
  return j.integer;
}

SafeTensors::Entry entry_of(const std::string& name, const Json& j, size_t data_bytes, const Fail& fail) {
  const Json *dtype = j.find("dtype"), *shape = j.find("shape"), *offsets = j.find("data_offsets");
  std::string quoted = json_text(name.substr(0, 200));
  if (!dtype || dtype->kind != Json::Kind::Text || !shape || shape->kind != Json::Kind::List || !offsets ||
      offsets->kind != Json::Kind::List || offsets->list.size() != 2)
    fail(quoted + " lacks dtype, shape or data_offsets");
  if (shape->list.size() > static_cast<size_t>(kMaxDims))
    fail(quoted + " has " + std::to_string(shape->list.size()) + " dims, more than " +
         std::to_string(kMaxDims));
  SafeTensors::Entry e;
  e.name = name;
  e.dtype = dtype->text;
  for (const Json& d : shape->list) e.shape.push_back(whole(d, "a size of " + quoted, fail));
  e.begin = static_cast<size_t>(whole(offsets->list[0], "the place of " + quoted, fail));
  e.end = static_cast<size_t>(whole(offsets->list[1], "the place of " + quoted, fail));
  if (e.begin > e.end || e.end > data_bytes)
    fail(quoted + " lies at " + std::to_string(e.begin) + " to " + std::to_string(e.end) + " of " +
         std::to_string(data_bytes) + " bytes");
  for (const TypeName& t : kTypes) {
    size_t bytes = 0;
    if (e.dtype == t.name && (!byte_count(e.shape, size_of(t.type), bytes) || bytes != e.end - e.begin))
      fail(quoted + ", " + e.dtype + to_string(e.shape) + ", has " + std::to_string(e.end - e.begin) +
           " bytes");
  }
  return e;
}

}  // namespace

SafeTensorsHeader parse_safetensors(Bytes file, const char* op, const std::string& path,
                                    const SourceLoc& loc) {
  Fail fail{op, path, loc};
  Cursor in(file, op, path, loc);
  uint64_t length = in.u64();
  if (length > kMaxHeader || length > in.left())
    fail("its header would have " + std::to_string(length) + " bytes, " + std::to_string(in.left()) +
         " are there");
  Bytes text = in.take(static_cast<size_t>(length));
  Json json = parse_json({reinterpret_cast<const char*>(text.data()), text.size()}, op, path, loc);
  if (json.kind != Json::Kind::Object) fail("its header is not an object");
  SafeTensorsHeader h;
  h.data_begin = in.at();
  for (const auto& [name, value] : json.object) {
    if (name != "__metadata__") {
      h.entries.push_back(entry_of(name, value, in.left(), fail));
      continue;
    }
    if (value.kind != Json::Kind::Object) fail("its metadata is not an object");
    std::vector<Metadata::value_type> texts;
    for (const auto& [key, v] : value.object) {
      if (v.kind != Json::Kind::Text) fail("its metadata holds something else than text");
      texts.emplace_back(key, v.text);
    }
    h.metadata = Metadata(std::move(texts));
  }
  std::stable_sort(h.entries.begin(), h.entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  size_t at = 0;
  for (const SafeTensors::Entry& e : h.entries) {
    if (e.begin != at)
      fail("the data of " + json_text(e.name.substr(0, 200)) + " begins at " + std::to_string(e.begin) +
           ", not at " + std::to_string(at));
    at = e.end;
  }
  if (at != in.left()) fail(std::to_string(in.left() - at) + " bytes follow the last tensor");
  return h;
}

Tensor read_entry(Bytes file, const SafeTensorsHeader& header, const SafeTensors::Entry& e,
                  const Options& options, const char* op, const std::string& path, const SourceLoc& loc) {
  for (const TypeName& t : kTypes) {
    if (e.dtype != t.name) continue;
    LocScope scope(loc);
    return tensor_from_bytes(file.data() + header.data_begin + e.begin, t.type, e.shape, options, loc);
  }
  throw Error(ErrorKind::Unsupported, op,
              "\"" + path + "\": \"" + e.name + "\" is of type " + e.dtype + ", which Ingot does not have",
              loc, "convert the file, or read its other tensors with SafeTensors(path).get(name)");
}

// ---- The open file

struct SafeTensors::State {
  std::string path;
  MappedFile file;
  SafeTensorsHeader header;
};

SafeTensors::SafeTensors(const std::string& path, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  MappedFile file(path, "load_safetensors", loc);
  SafeTensorsHeader header = parse_safetensors(file.bytes(), "load_safetensors", path, loc);
  s_.reset(new State{path, std::move(file), std::move(header)});
}
SafeTensors::~SafeTensors() = default;
SafeTensors::SafeTensors(SafeTensors&&) noexcept = default;

const std::vector<SafeTensors::Entry>& SafeTensors::entries() const { return s_->header.entries; }
const Metadata& SafeTensors::metadata() const { return s_->header.metadata; }
bool SafeTensors::has(std::string_view name) const {
  return std::any_of(entries().begin(), entries().end(), [&](const Entry& e) { return e.name == name; });
}

Tensor SafeTensors::get(std::string_view name, const Options& options, SourceLoc where) const {
  SourceLoc loc = user_loc(where);
  for (const Entry& e : entries())
    if (e.name == name)
      return read_entry(s_->file.bytes(), s_->header, e, options, "load_safetensors", s_->path, loc);
  throw Error(ErrorKind::Value, "load_safetensors",
              "\"" + s_->path + "\" has no tensor \"" + std::string(name) + "\"", loc,
              "entries() lists those it has");
}

NamedTensors load_safetensors(const std::string& path, const Options& options, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  SafeTensors file(path, loc);
  NamedTensors all;
  for (const SafeTensors::Entry& e : file.entries()) all.emplace_back(e.name, file.get(e.name, options, loc));
  return all;
}

// ---- Writing

std::vector<HostTensor> to_host(const NamedTensors& tensors, const char* op, const SourceLoc& loc) {
  std::unordered_set<std::string> names;
  std::vector<HostTensor> host;
  for (const auto& [name, t] : tensors) {
    if (name == "__metadata__" || !names.insert(name).second)
      throw Error(ErrorKind::Value, op,
                  "the name \"" + name + "\" " + (name == "__metadata__" ? "is reserved" : "comes twice"),
                  loc, "give each tensor a name of its own");
    HostTensor h{name, t.dtype(loc), t.shape(loc), {}};
    h.bytes.resize(static_cast<size_t>(t.numel()) * size_of(h.dtype));
    t.copy_to(h.bytes.data(), loc);
    host.push_back(std::move(h));
  }
  return host;
}

std::string safetensors_header(const std::vector<HostTensor>& tensors, const Metadata& metadata) {
  std::string json = "{";
  auto comma = [&] {
    if (json.size() > 1) json += ',';
  };
  if (!metadata.empty()) {
    json += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata)
      json += (json.back() == '{' ? "" : ",") + json_text(key) + ":" + json_text(value);
    json += '}';
  }
  size_t at = 0;
  for (const HostTensor& t : tensors) {
    comma();
    json += json_text(t.name) + ":{\"dtype\":\"" +
            std::find_if(std::begin(kTypes), std::end(kTypes),
                         [&](const TypeName& k) { return k.type == t.dtype; })
                ->name +
            "\",\"shape\":[";
    for (int i = 0; i < t.shape.size(); ++i) json += (i ? "," : "") + std::to_string(t.shape[i]);
    json += "],\"data_offsets\":[" + std::to_string(at) + "," + std::to_string(at + t.bytes.size()) + "]}";
    at += t.bytes.size();
  }
  json += '}';
  json.resize((json.size() + 8 + 63) / 64 * 64 - 8, ' ');
  std::string header(8, '\0');
  for (size_t i = 0, n = json.size(); i < 8; ++i) header[i] = static_cast<char>(n >> (8 * i) & 0xff);
  return header + json;
}

namespace {

struct HostFile {
  std::vector<HostTensor> tensors;
  std::string header;
};

HostFile host_file(const NamedTensors& tensors, const Metadata& metadata, const SourceLoc& loc) {
  LocScope scope(loc);
  std::vector<HostTensor> host = to_host(tensors, "save_safetensors", loc);
  // Larger elements first, so that everything is aligned to its size.
  std::stable_sort(host.begin(), host.end(), [](const HostTensor& a, const HostTensor& b) {
    return size_of(a.dtype) > size_of(b.dtype);
  });
  std::string header = safetensors_header(host, metadata);
  if (header.size() > kMaxHeader)
    throw Error(ErrorKind::Value, "save_safetensors",
                "names and metadata take " + std::to_string(header.size()) + " bytes, more than the " +
                    std::to_string(kMaxHeader) + " a reader accepts",
                loc, "store long lists of numbers as tensors");
  return {std::move(host), std::move(header)};
}

}  // namespace

void save_safetensors(const std::string& path, const NamedTensors& tensors, const Metadata& metadata,
                      SourceLoc where) {
  SourceLoc loc = user_loc(where);
  const HostFile file = host_file(tensors, metadata, loc);
  AtomicFile out(path, "save_safetensors", loc);
  out.write(file.header.data(), file.header.size());
  for (const HostTensor& t : file.tensors) out.write(t.bytes.data(), t.bytes.size());
  out.commit();
}

void write_safetensors(const std::function<void(const void*, size_t)>& write, const NamedTensors& tensors,
                       const Metadata& metadata, SourceLoc where) {
  const HostFile file = host_file(tensors, metadata, user_loc(where));
  write(file.header.data(), file.header.size());
  for (const HostTensor& t : file.tensors)
    if (!t.bytes.empty()) write(t.bytes.data(), t.bytes.size());
}

}  // namespace ingot::io
