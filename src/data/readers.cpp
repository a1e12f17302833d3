// IDX, CIFAR, CSV and single images.
#include "data/readers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "data/host.h"
#include "data/pixels.h"
#include "io/budget.h"
#include "io/codecs.h"
#include "io/tensor_bytes.h"
#include "ops/common.h"

namespace ingot::data {

using io::Bytes;

// ---- IDX: two zeros, the type, the number of dims, the sizes and the elements, all big-endian.

namespace {

struct IdxHeader {
  DType type = uint8;
  Dims shape;
  size_t element = 1, bytes = 0, length = 0;  // of an element, of all of them, of the header
};

// `size`: of the complete file, which a compressed one does not state.
IdxHeader idx_header(Bytes head, std::optional<size_t> size, const std::string& path,
                     const SourceLoc& loc) {
  io::Cursor in(head, "load_idx", path, loc);
  if (in.left() < 4 || in.u16() != 0) in.fail("is not an IDX file");
  const uint8_t code = in.u8(), rank = in.u8();
  static const std::pair<uint8_t, DType> types[] = {
      {0x08, uint8}, {0x09, int8}, {0x0b, int16}, {0x0c, int32}, {0x0d, float32}, {0x0e, float64}};
  const auto* type = std::find_if(std::begin(types), std::end(types),
                                  [&](const auto& t) { return t.first == code; });
  if (type == std::end(types) || rank > kMaxDims)
    in.fail("is not an IDX file: type " + std::to_string(code) + ", " + std::to_string(rank) +
            " dims");
  IdxHeader h;
  h.type = type->second;
  for (int i = 0; i < rank; ++i) h.shape.push_back(in.u32_big());
  h.element = size_of(h.type);
  h.length = in.at();
  if (!io::byte_count(h.shape, h.element, h.bytes) || (size && h.bytes != *size - h.length))
    in.fail("is damaged: " + to_string(h.shape) + " does not take " +
            (size ? std::to_string(*size - h.length) + " bytes" : "an impossible number of bytes"));
  return h;
}

// From the file's byte order to this machine's.
void from_big_endian(uint8_t* p, const IdxHeader& h) {
  for (size_t i = 0; h.element > 1 && i < h.bytes; i += h.element)
    std::reverse(p + i, p + i + h.element);
}

}  // namespace

Tensor parse_idx(Bytes file, const std::string& path, const SourceLoc& loc) {
  const char* op = "load_idx";
  if (!io::is_gzip(file)) {
    const IdxHeader h = idx_header(file, file.size(), path, loc);
    return make_tensor(h.type, h.shape, [&](void* out) {
      if (h.bytes) std::memcpy(out, file.data() + h.length, h.bytes);
      from_big_endian(static_cast<uint8_t*>(out), h);
    });
  }
  // Compressed: the header's sizes are known, and checked, before the rest is unpacked.
  try {
    io::Codecs& codecs = io::codecs(op, loc);
    std::array<uint8_t, 4 + 4 * kMaxDims> head{};
    const size_t n = codecs.gunzip_head(file, head.data(), head.size());
    const IdxHeader h = idx_header({head.data(), n}, {}, path, loc);
    io::Budget(file.size(), op, path, loc).take(h.bytes);
    return make_tensor(h.type, h.shape, [&](void* out) {
      uint8_t none = 0;
      codecs.gunzip_rest(file, h.length, h.bytes ? static_cast<uint8_t*>(out) : &none, h.bytes);
      from_big_endian(static_cast<uint8_t*>(out), h);
    });
  } catch (const io::CodecError& e) {
    io::fail_io(op, path, std::string("cannot be unpacked: ") + e.what(), loc);
  }
}

Tensor load_idx(const std::string& path, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  return io::reading("load_idx", path, loc, [&] {
    io::FileBytes file(path, "load_idx", loc);
    return parse_idx(file.bytes(), path, loc);
  });
}

// ---- CIFAR: records of one or two labels and 3072 pixels.

void parse_cifar(Bytes file, int label_bytes, std::vector<uint8_t>& pixels,
                 std::vector<int64_t>& labels, const std::string& path, const SourceLoc& loc) {
  constexpr size_t kPixels = 3 * 32 * 32;
  size_t record = kPixels + static_cast<size_t>(label_bytes);
  if (file.empty() || file.size() % record)
    io::fail_io("load_cifar", path,
                "has " + std::to_string(file.size()) +
                    " bytes, which is not a multiple of the record size " + std::to_string(record),
                loc);
  int64_t classes = label_bytes == 1 ? 10 : 100;
  for (size_t at = 0; at < file.size(); at += record) {
    int64_t label = file[at + static_cast<size_t>(label_bytes) - 1];
    if (label >= classes)
      io::fail_io(
          "load_cifar", path,
          "has the label " + std::to_string(label) + " in record " + std::to_string(at / record),
          loc);
    labels.push_back(label);
    Bytes p = file.subspan(at + static_cast<size_t>(label_bytes), kPixels);
    pixels.insert(pixels.end(), p.begin(), p.end());
  }
}

std::pair<Tensor, Tensor> load_cifar(const std::vector<std::string>& paths, int label_bytes,
                                     SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  if (label_bytes != 1 && label_bytes != 2)
    fail(ErrorKind::Value, "load_cifar", "label_bytes is 1 or 2", loc);
  std::vector<uint8_t> pixels;
  std::vector<int64_t> labels;
  for (const std::string& path : paths) {
    io::reading("load_cifar", path, loc, [&] {
      io::FileBytes file(path, "load_cifar", loc);
      io::Budget budget(file.bytes().size(), "load_cifar", path, loc);
      std::vector<uint8_t> own;
      parse_cifar(io::unpacked(file.bytes(), budget, own, "load_cifar", path, loc), label_bytes,
                  pixels, labels, path, loc);
    });
  }
  int64_t n = static_cast<int64_t>(labels.size());
  Device cpu(DeviceType::CPU, 0);
  return {from_data(pixels.data(), {n, 3, 32, 32}, cpu), from_data(labels.data(), {n}, cpu)};
}

// ---- Images

Tensor load_image(const std::string& path, int channels, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  if (channels != 0 && channels != 1 && channels != 3)
    fail(ErrorKind::Value, "load_image", "channels is 0, 1 or 3", loc);
  return io::reading("load_image", path, loc, [&] {
    io::FileBytes file(path, "load_image", loc);
    io::Image image =
        io::decode_image(file.bytes(), channels, {}, nullptr, "load_image", path, loc);
    Pixels p;
    p.width = image.width, p.height = image.height, p.channels = image.channels;
    p.bytes.assign(image.pixels.get(),
                   image.pixels.get() + image.row_bytes() * static_cast<size_t>(image.height));
    return p.tensor();
  });
}

void save_image(const std::string& path, const Tensor& image, int quality, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  auto ends = [&](std::string_view e) {
    return path.size() > e.size() && path.compare(path.size() - e.size(), e.size(), e) == 0;
  };
  bool png = ends(".png");
  if (!png && !ends(".jpg") && !ends(".jpeg"))
    fail(ErrorKind::Value, "save_image", "\"" + path + "\" does not end in .png, .jpg or .jpeg",
         loc);
  if (quality < 1 || quality > 100)
    fail(ErrorKind::Value, "save_image", "the quality is between 1 and 100", loc);
  Pixels p = Pixels::of(image, loc);
  p.to_bytes();
  io::Image decoded(p.width, p.height, p.channels);
  std::memcpy(decoded.pixels.get(), p.bytes.data(), p.bytes.size());
  io::Codecs& c = io::codecs("save_image", loc);
  std::vector<uint8_t> data;
  try {
    data = png ? c.encode_png(decoded) : c.encode_jpeg(decoded, quality);
  } catch (const io::CodecError& e) {
    io::fail_io("save_image", path, e.what(), loc);
  }
  io::AtomicFile out(path, "save_image", loc);
  out.write(data.data(), data.size());
  out.commit();
}

// ---- CSV

namespace {

constexpr size_t kMostColumns = 1'000'000;

// One line's fields; quotes may contain delimiters, line ends and doubled quotes.
struct CsvReader {
  std::string_view s;
  char delimiter;
  const std::string& path;
  const SourceLoc& loc;
  size_t at = 0, line = 0;

  [[noreturn]] void bad(const std::string& what) const {
    io::fail_io("load_csv", path, "line " + std::to_string(line) + ": " + what, loc);
  }

  std::string quoted() {
    std::string f;
    for (++at;; ++at) {
      if (at >= s.size()) bad("a quote is not closed");
      if (s[at] != '"')
        f += s[at];
      else if (at + 1 < s.size() && s[at + 1] == '"')
        f += s[at++];
      else
        break;
    }
    ++at;
    if (at < s.size() && s[at] != delimiter && s[at] != '\n' && s[at] != '\r')
      bad("something follows a closing quote");
    return f;
  }

  bool next(std::vector<std::string>& fields) {
    fields.clear();
    if (at >= s.size()) return false;
    ++line;
    while (true) {
      if (at < s.size() && s[at] == '"') {
        fields.push_back(quoted());
      } else {
        size_t end = at;
        while (end < s.size() && s[end] != delimiter && s[end] != '\n' && s[end] != '\r') ++end;
        fields.emplace_back(s.substr(at, end - at));
        at = end;
      }
      if (at < s.size() && s[at] == delimiter) {
        if (fields.size() == kMostColumns)
          bad("it has more than " + std::to_string(kMostColumns) + " fields");
        ++at;
        continue;
      }
      if (at < s.size() && s[at] == '\r') ++at;
      if (at < s.size() && s[at] == '\n') ++at;
      return true;
    }
  }
};

bool number(std::string_view field, double& v) {
  while (!field.empty() && field.front() == ' ') field.remove_prefix(1);
  while (!field.empty() && field.back() == ' ') field.remove_suffix(1);
  if (!field.empty() && field.front() == '+') field.remove_prefix(1);
  v = std::numeric_limits<double>::quiet_NaN();
  if (field.empty()) return true;
  auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), v);
  return error == std::errc() && end == field.data() + field.size();
}

}  // namespace

Csv parse_csv(std::string_view text, const CsvOptions& o, const std::string& path,
              const SourceLoc& loc) {
  LocScope scope(loc);
  CsvReader in{text, o.delimiter, path, loc};
  Csv csv;
  std::vector<std::string> fields;
  std::vector<double> values;
  size_t columns = 0;
  double v = 0;
  bool first = true;
  while (in.next(fields)) {
    if (fields.size() == 1 && fields[0].empty()) continue;  // an empty line
    if (first) {
      first = false;
      columns = fields.size();
      bool names = o.header.value_or(std::any_of(
          fields.begin(), fields.end(), [&](const std::string& f) { return !number(f, v); }));
      csv.columns = names ? fields : std::vector<std::string>(columns);
      if (names) continue;
    }
    if (fields.size() != columns)
      in.bad("it has " + std::to_string(fields.size()) + " fields, the first line " +
             std::to_string(columns));
    for (size_t i = 0; i < columns; ++i) {
      if (!number(fields[i], v))
        in.bad("field " + std::to_string(i + 1) + " is not a number: \"" + fields[i].substr(0, 40) +
               "\"");
      values.push_back(v);
    }
  }
  int64_t rows = columns ? static_cast<int64_t>(values.size() / columns) : 0;
  csv.values = from_data(values.data(), {rows, static_cast<int64_t>(columns)},
                         Options(o.dtype, Device(DeviceType::CPU, 0)));
  csv.values.eval_();
  return csv;
}

Csv load_csv(const std::string& path, const CsvOptions& options, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  if (options.delimiter == '"' || options.delimiter == '\n' || options.delimiter == '\r')
    fail(ErrorKind::Value, "load_csv", "the delimiter cannot be a quote or a line end", loc);
  return io::reading("load_csv", path, loc, [&] {
    io::FileBytes file(path, "load_csv", loc);
    io::Budget budget(file.bytes().size(), "load_csv", path, loc);
    std::vector<uint8_t> own;
    Bytes b = io::unpacked(file.bytes(), budget, own, "load_csv", path, loc);
    return parse_csv({reinterpret_cast<const char*>(b.data()), b.size()}, options, path, loc);
  });
}

}  // namespace ingot::data
