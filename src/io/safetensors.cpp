// safetensors: eight bytes of length, a JSON header that names tensors and their offsets, then the
// data. Tensors must be stored one after the other without gaps, as the format requires, so that
// nothing can hide in between.
#include "io/safetensors.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <unordered_set>

#include "io/budget.h"
#include "io/hash.h"
#include "io/json.h"
#include "io/tensor_bytes.h"

namespace ingot::io {
namespace {

constexpr size_t kMaxHeader = 100'000'000;  // the format's own limit

struct TypeName {
  const char* name;
  DType type;
};
constexpr TypeName kTypes[] = {{"F64", DType::Float64}, {"F32", DType::Float32},
                               {"F16", DType::Float16}, {"BF16", DType::BFloat16},
                               {"I64", DType::Int64},   {"I32", DType::Int32},
                               {"I16", DType::Int16},   {"I8", DType::Int8},
                               {"U8", DType::UInt8},    {"BOOL", DType::Bool}};

struct Fail {
  const char* op;
  const std::string& path;
  const SourceLoc& loc;
  [[noreturn]] void operator()(const std::string& what) const {
    fail_io(op, path, "is not a valid safetensors file: " + what, loc);
  }
};

SafeTensors::Entry read_tensor(JsonReader& in, std::string name, size_t data_bytes,
                               const Fail& fail) {
  SafeTensors::Entry e{std::move(name), {}, {}, 0, 0};
  auto quoted = [&] { return json_text(std::string_view(e.name).substr(0, 200)); };
  auto whole = [&](const char* what) {
    int64_t v = -1;
    if (!in.integer(v) || v < 0) fail(what + quoted() + " is not a non-negative integer");
    return v;
  };
  if (in.kind() != JsonReader::Kind::Object) fail(quoted() + " lacks dtype, shape or data_offsets");
  int seen = 0;
  auto once = [&](int bit) {
    if (seen & bit) fail(quoted() + " has a member twice");
    seen |= bit;
  };
  in.object([&](const std::string& key) {
    if (key == "dtype") {
      once(1);
      if (in.kind() != JsonReader::Kind::Text)
        fail(quoted() + " lacks dtype, shape or data_offsets");
      e.dtype = in.text();
    } else if (key == "shape") {
      once(2);
      if (in.kind() != JsonReader::Kind::List)
        fail(quoted() + " lacks dtype, shape or data_offsets");
      in.list([&] {
        if (e.shape.size() == kMaxDims)
          fail(quoted() + " has more than " + std::to_string(kMaxDims) + " dims");
        e.shape.push_back(whole("a size of "));
      });
    } else if (key == "data_offsets") {
      once(4);
      if (in.kind() != JsonReader::Kind::List)
        fail(quoted() + " lacks dtype, shape or data_offsets");
      int n = 0;
      in.list([&] {
        if (n == 2) fail(quoted() + " lacks dtype, shape or data_offsets");
        (n++ ? e.end : e.begin) = static_cast<size_t>(whole("the position of "));
      });
      if (n != 2) fail(quoted() + " lacks dtype, shape or data_offsets");
    } else {
      in.skip();
    }
  });
  if (seen != 7) fail(quoted() + " lacks dtype, shape or data_offsets");
  if (e.begin > e.end || e.end > data_bytes)
    fail(quoted() + " is stored at " + std::to_string(e.begin) + " to " + std::to_string(e.end) +
         " of " + std::to_string(data_bytes) + " bytes");
  for (const TypeName& t : kTypes) {
    size_t bytes = 0;
    if (e.dtype == t.name &&
        (!byte_count(e.shape, size_of(t.type), bytes) || bytes != e.end - e.begin))
      fail(quoted() + ", " + e.dtype + to_string(e.shape) + ", has " +
           std::to_string(e.end - e.begin) + " bytes");
  }
  return e;
}

constexpr const char* kChecksum = "ingot.checksum";
constexpr size_t kChecksumDigits = 16;

std::string hex(uint64_t v) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(v));
  return text;
}

// The position of the checksum's digits in a header, or npos.
size_t checksum_at(std::string_view header) {
  const std::string key = std::string("\"") + kChecksum + "\":\"";
  const size_t at = header.find(key);
  return at == std::string_view::npos || at + key.size() + kChecksumDigits > header.size()
             ? std::string_view::npos
             : at + key.size();
}

void read_metadata(JsonReader& in, SafeTensorsHeader& h, const Fail& fail) {
  if (in.kind() != JsonReader::Kind::Object) fail("its metadata is not an object");
  std::vector<Metadata::value_type> texts;
  in.object([&](std::string key) {
    if (in.kind() != JsonReader::Kind::Text) fail("its metadata holds something other than text");
    std::string value = in.text();
    if (key == kChecksum && h.checksum.empty() && value.size() == kChecksumDigits)
      h.checksum = std::move(value);
    else
      texts.emplace_back(std::move(key), std::move(value));
  });
  const size_t count = texts.size();
  h.metadata = Metadata(std::move(texts));
  if (h.metadata.size() != count) fail("its metadata has a name twice");
}

// No gaps, no overlaps, nothing after the last one, no name twice.
void check_entries(SafeTensorsHeader& h, size_t data_bytes, const Fail& fail) {
  auto quoted = [](const SafeTensors::Entry& e) {
    return json_text(std::string_view(e.name).substr(0, 200));
  };
  std::stable_sort(h.entries.begin(), h.entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  size_t at = 0;
  for (const SafeTensors::Entry& e : h.entries) {
    if (e.begin != at)
      fail("the data of " + quoted(e) + " begins at " + std::to_string(e.begin) + ", not at " +
           std::to_string(at));
    at = e.end;
  }
  if (at != data_bytes) fail(std::to_string(data_bytes - at) + " bytes follow the last tensor");
  h.by_name.resize(h.entries.size());
  std::iota(h.by_name.begin(), h.by_name.end(), 0u);
  std::sort(h.by_name.begin(), h.by_name.end(),
            [&](uint32_t a, uint32_t b) { return h.entries[a].name < h.entries[b].name; });
  for (size_t i = 1; i < h.by_name.size(); ++i)
    if (const auto& e = h.entries[h.by_name[i]]; e.name == h.entries[h.by_name[i - 1]].name)
      fail("the name " + quoted(e) + " comes twice");
}

Bytes bytes_of(const std::string& s) {
  return {reinterpret_cast<const uint8_t*>(s.data()), s.size()};
}

}  // namespace

Source source_of(Bytes bytes) {
  return {bytes.size(), [bytes](uint64_t offset, void* to, size_t n) {
            if (n) std::memcpy(to, bytes.data() + offset, n);
          }};
}

Source source_of(const File& file, const SourceLoc& loc) {
  return {file.size(),
          [&file, loc](uint64_t offset, void* to, size_t n) { file.read(offset, to, n, loc); }};
}

const SafeTensors::Entry* SafeTensorsHeader::find(std::string_view name) const {
  auto at = std::lower_bound(by_name.begin(), by_name.end(), name,
                             [&](uint32_t i, std::string_view n) { return entries[i].name < n; });
  return at != by_name.end() && entries[*at].name == name ? &entries[*at] : nullptr;
}

SafeTensorsHeader parse_safetensors(const Source& file, const char* op, const std::string& path,
                                    const SourceLoc& loc) {
  const Fail fail{op, path, loc};
  std::array<uint8_t, 8> start{};
  if (file.size < start.size()) fail("it has " + std::to_string(file.size) + " bytes only");
  file.read(0, start.data(), start.size());
  const uint64_t length = Cursor(start, op, path, loc).u64();
  const size_t left = file.size - start.size();
  if (length > kMaxHeader || length > left)
    fail("its header would have " + std::to_string(length) + " bytes, " + std::to_string(left) +
         " are there");
  std::string text(static_cast<size_t>(length), '\0');
  file.read(start.size(), text.data(), text.size());
  SafeTensorsHeader h;
  h.data_begin = start.size() + text.size();
  const size_t data_bytes = file.size - h.data_begin;
  Budget budget(file.size, op, path, loc);
  JsonReader in(text, op, path, loc);
  if (in.kind() != JsonReader::Kind::Object) fail("its header is not an object");
  bool described = false;
  in.object([&](std::string name) {
    if (name != "__metadata__") {
      budget.take(2 * sizeof(SafeTensors::Entry) + name.size());
      h.entries.push_back(read_tensor(in, std::move(name), data_bytes, fail));
    } else if (std::exchange(described, true)) {
      fail("it has metadata twice");
    } else {
      read_metadata(in, h, fail);
    }
  });
  in.end();
  check_entries(h, data_bytes, fail);
  if (!h.checksum.empty()) {
    const size_t at = checksum_at(text);
    if (at == std::string_view::npos) h.checksum.clear();
    h.checksum_at = start.size() + at;
  }
  return h;
}

bool check_sum(const Source& file, const SafeTensorsHeader& header, const char* op,
               const std::string& path, const SourceLoc& loc) {
  if (header.checksum.empty()) return false;
  // Over everything, its own digits taken as zeros.
  Hash hash;
  std::vector<uint8_t> piece(std::min(file.size, std::max(header.data_begin, size_t{1} << 20)));
  for (size_t at = 0; at < file.size;) {
    const size_t n = std::min(piece.size(), file.size - at);
    file.read(at, piece.data(), n);
    if (at == 0)
      std::fill_n(piece.begin() + static_cast<std::ptrdiff_t>(header.checksum_at), kChecksumDigits,
                  '0');
    hash.add({piece.data(), n});
    at += n;
  }
  if (hex(hash.sum()) != header.checksum)
    fail_io(op, path, "is damaged: its checksum is wrong", loc,
            "use an intact copy; a tool that changed the tensors must drop ingot.checksum from the "
            "metadata");
  return true;
}

Tensor read_entry(const Source& file, const SafeTensorsHeader& header, const SafeTensors::Entry& e,
                  const Options& options, const char* op, const std::string& path,
                  const SourceLoc& loc) {
  for (const TypeName& t : kTypes) {
    if (e.dtype != t.name) continue;
    LocScope scope(loc);
    auto fill = [&](void* to) { file.read(header.data_begin + e.begin, to, e.end - e.begin); };
    return tensor_from(fill, t.type, e.shape, options, loc);
  }
  throw Error(ErrorKind::Unsupported, op,
              "\"" + printable(path) + "\": \"" + printable(e.name) + "\" is of type " +
                  printable(e.dtype, 40) + ", which Ingot does not have",
              loc, "convert the file, or read its other tensors with SafeTensors(path).get(name)");
}

NamedTensors read_all(const File& file, const Options& options, const char* op,
                      const std::string& path, const SourceLoc& loc) {
  const Source source = source_of(file, loc);
  const SafeTensorsHeader header = parse_safetensors(source, op, path, loc);
  check_sum(source, header, op, path, loc);
  NamedTensors all;
  for (const SafeTensors::Entry& e : header.entries)
    all.emplace_back(e.name, read_entry(source, header, e, options, op, path, loc));
  return all;
}

// ---- The open file

struct SafeTensors::State {
  std::string path;
  File file;
  SafeTensorsHeader header;
};

SafeTensors::SafeTensors(const std::string& path, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  const char* op = "load_safetensors";
  reading(op, path, loc, [&] {
    File file(path, op, loc);
    SafeTensorsHeader header = parse_safetensors(source_of(file, loc), op, path, loc);
    s_.reset(new State{path, std::move(file), std::move(header)});
  });
}
SafeTensors::~SafeTensors() = default;
SafeTensors::SafeTensors(SafeTensors&&) noexcept = default;

const std::vector<SafeTensors::Entry>& SafeTensors::entries() const { return s_->header.entries; }
const Metadata& SafeTensors::metadata() const { return s_->header.metadata; }
bool SafeTensors::has(std::string_view name) const { return s_->header.find(name) != nullptr; }

Tensor SafeTensors::get(std::string_view name, const Options& options, SourceLoc where) const {
  SourceLoc loc = user_loc(where);
  const char* op = "load_safetensors";
  if (const Entry* e = s_->header.find(name))
    return reading(op, s_->path, loc, [&] {
      return read_entry(source_of(s_->file, loc), s_->header, *e, options, op, s_->path, loc);
    });
  throw Error(ErrorKind::Value, op,
              "\"" + printable(s_->path) + "\" has no tensor \"" + printable(name) + "\"", loc,
              "entries() lists those it has");
}

bool SafeTensors::verify(SourceLoc where) const {
  SourceLoc loc = user_loc(where);
  return check_sum(source_of(s_->file, loc), s_->header, "load_safetensors", s_->path, loc);
}

NamedTensors load_safetensors(const std::string& path, const Options& options, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  const char* op = "load_safetensors";
  return reading(op, path, loc,
                 [&] { return read_all(File(path, op, loc), options, op, path, loc); });
}

// ---- Writing

std::vector<HostTensor> to_host(const NamedTensors& tensors, const char* op, const SourceLoc& loc) {
  std::unordered_set<std::string> names;
  std::vector<HostTensor> host;
  for (const auto& [name, t] : tensors) {
    const char* wrong = name == "__metadata__"       ? "is reserved"
                        : !is_utf8(name)             ? "is not UTF-8"
                        : !names.insert(name).second ? "comes twice"
                                                     : nullptr;
    if (wrong)
      throw Error(ErrorKind::Value, op, "the name \"" + printable(name) + "\" " + wrong, loc,
                  "give each tensor a unique name");
    const Tensor now = t.snapshot(loc);
    HostTensor h{name, now.dtype(loc), now.shape(loc), {}};
    h.bytes.resize(static_cast<size_t>(now.numel()) * size_of(h.dtype));
    now.copy_to(h.bytes.data(), loc);
    host.push_back(std::move(h));
  }
  return host;
}

namespace {

// The length and the JSON, padded so that data begins at a multiple of 64.
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
    json += "],\"data_offsets\":[" + std::to_string(at) + "," +
            std::to_string(at + t.bytes.size()) + "]}";
    at += t.bytes.size();
  }
  json += '}';
  json.resize((json.size() + 8 + 63) / 64 * 64 - 8, ' ');
  std::string header(8, '\0');
  for (size_t i = 0, n = json.size(); i < 8; ++i)
    header[i] = static_cast<char>(n >> (8 * i) & 0xff);
  return header + json;
}

}  // namespace

HostFile host_file(std::vector<HostTensor> tensors, const Metadata& metadata, const char* op,
                   const SourceLoc& loc) {
  for (const auto& [key, value] : metadata)
    if (!is_utf8(key) || !is_utf8(value))
      throw Error(ErrorKind::Value, op, "the metadata \"" + printable(key) + "\" is not UTF-8", loc,
                  "convert the text first");
  // Larger elements first, so that everything is aligned to its size.
  std::stable_sort(tensors.begin(), tensors.end(), [](const HostTensor& a, const HostTensor& b) {
    return size_of(a.dtype) > size_of(b.dtype);
  });
  Metadata all = metadata;
  all[kChecksum] = std::string(kChecksumDigits, '0');
  std::string header = safetensors_header(tensors, all);
  if (header.size() > kMaxHeader)
    throw Error(ErrorKind::Value, op,
                "names and metadata take " + std::to_string(header.size()) +
                    " bytes, more than the " + std::to_string(kMaxHeader) + " a reader accepts",
                loc, "store long lists of numbers as tensors");
  Hash hash;
  hash.add(bytes_of(header));
  for (const HostTensor& t : tensors)
    hash.add({reinterpret_cast<const uint8_t*>(t.bytes.data()), t.bytes.size()});
  header.replace(checksum_at(header), kChecksumDigits, hex(hash.sum()));
  return {std::move(tensors), std::move(header)};
}

void HostFile::write(const std::function<void(const void*, size_t)>& to) const {
  to(header.data(), header.size());
  for (const HostTensor& t : tensors)
    if (!t.bytes.empty()) to(t.bytes.data(), t.bytes.size());
}

void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const Metadata& metadata, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  const char* op = "save_safetensors";
  const HostFile file = host_file(to_host(tensors, op, loc), metadata, op, loc);
  AtomicFile out(path, op, loc);
  file.write([&](const void* data, size_t bytes) { out.write(data, bytes); });
  out.commit();
}

void write_safetensors(const std::function<void(const void*, size_t)>& write,
                       const NamedTensors& tensors, const Metadata& metadata, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  const char* op = "save_safetensors";
  host_file(to_host(tensors, op, loc), metadata, op, loc).write(write);
}

}  // namespace ingot::io
