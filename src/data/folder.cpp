// Folders of images, and files of tokens.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>

#include "data/pixels.h"
#include "ingot/data/readers.h"
#include "io/file.h"
#include "ops/common.h"

namespace ingot::data {

namespace fs = std::filesystem;

// ---- ImageFolder

namespace {

bool is_image(const fs::path& p) {
  std::string e = p.extension().string();
  std::transform(e.begin(), e.end(), e.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return e == ".png" || e == ".jpg" || e == ".jpeg";
}

// A class's name is written to model files, reports and messages: it must be text.
void check_class(const std::string& name, const std::string& root, const SourceLoc& loc) {
  const bool control =
      std::any_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (!io::is_utf8(name) || control)
    io::fail_io("ImageFolder", root,
                "the name of the class folder \"" + name + "\" " +
                    (control ? "has control characters" : "is not UTF-8"),
                loc, "rename the folder");
}

}  // namespace

ImageFolder::ImageFolder(const std::string& root, const ImageFolderOptions& options,
                         SourceLoc where)
    : o_(options) {
  SourceLoc loc = user_loc(where);
  if (o_.channels != 1 && o_.channels != 3)
    fail(ErrorKind::Value, "ImageFolder", "channels is 1 or 3", loc);
  std::error_code error;
  std::vector<std::pair<std::string, std::string>> found;  // class, file
  std::vector<std::string> empty;
  for (fs::directory_iterator classes(root, error), end; !error && classes != end;
       classes.increment(error)) {
    std::error_code ignored;  // a link that leads nowhere is no class
    if (!classes->is_directory(ignored)) continue;
    std::string name = classes->path().filename().string();
    check_class(name, root, loc);
    const size_t before = found.size();
    for (fs::recursive_directory_iterator f(classes->path(), error), last; !error && f != last;
         f.increment(error))
      if (is_image(f->path()) && f->is_regular_file(ignored))
        found.emplace_back(name, f->path().string());
    if (found.size() == before) empty.push_back(name);
    classes_.push_back(std::move(name));
  }
  if (error) io::fail_io("ImageFolder", root, "cannot be read: " + error.message(), loc);
  if (found.empty())
    io::fail_io("ImageFolder", root, "has no PNG or JPEG files in folders of their classes", loc,
                "one folder per class: root/cat/1.jpg, root/dog/2.jpg");
  if (!empty.empty())
    io::fail_io(
        "ImageFolder", root,
        "the class folder \"" + *std::min_element(empty.begin(), empty.end()) +
            "\" has no PNG or JPEG files" +
            (empty.size() > 1 ? ", nor do " + std::to_string(empty.size() - 1) + " others" : ""),
        loc, "put images into it, or remove it");
  std::sort(classes_.begin(), classes_.end());
  std::sort(found.begin(), found.end());
  for (auto& [name, file] : found)
    files_.emplace_back(std::move(file), std::lower_bound(classes_.begin(), classes_.end(), name) -
                                             classes_.begin());
}

Sample ImageFolder::get(int64_t index) const {
  if (index < 0 || index >= size())
    fail(ErrorKind::Index, "ImageFolder", "there is no sample " + std::to_string(index),
         SourceLoc::current());
  const std::string& path = files_[static_cast<size_t>(index)].first;
  const int64_t label = files_[static_cast<size_t>(index)].second;
  Tensor image = io::reading("ImageFolder", path, SourceLoc::current(), [&] {
    io::FileBytes file(path, "ImageFolder", SourceLoc::current());
    return decode_and_transform(file.bytes(), o_.channels, o_.transform, path,
                                SourceLoc::current());
  });
  return {image,
          make_tensor(int64, {}, [&](void* out) { std::memcpy(out, &label, sizeof label); })};
}

// ---- TokenFile

// Read as needed and not mapped: a file that is truncated while in use is then an error, where a
// mapping would end the process by SIGBUS.
struct TokenFile::File {
  io::File file;
};

TokenFile::TokenFile(const std::string& path, int64_t block_size, const TokenFileOptions& o,
                     SourceLoc where)
    : block_(block_size), stride_(o.stride ? o.stride : block_size), dtype_(o.dtype) {
  SourceLoc loc = user_loc(where);
  auto bad = [&](const char* what) { fail(ErrorKind::Value, "TokenFile", what, loc); };
  if (block_size < 1) bad("block_size is below 1");
  if (o.stride < 0) bad("the stride is negative");
  if (o.dtype != uint8 && o.dtype != int16 && o.dtype != int32)
    bad("tokens are uint8, int16 or int32");
  if (!(o.begin >= 0 && o.begin <= o.end && o.end <= 1))
    bad("begin and end are fractions of the file, 0 <= begin <= end <= 1");
  file_ = std::make_shared<File>(File{io::File(path, "TokenFile", loc)});
  size_t bytes = file_->file.size(), each = size_of(o.dtype);
  if (bytes % each)
    io::fail_io("TokenFile", path,
                "has " + std::to_string(bytes) +
                    " bytes, which is not a multiple of the token size " + std::to_string(each),
                loc);
  auto total = static_cast<int64_t>(bytes / each);
  first_ = static_cast<int64_t>(std::floor(o.begin * static_cast<double>(total)));
  count_ = static_cast<int64_t>(std::floor(o.end * static_cast<double>(total))) - first_;
  if (count_ < block_ + 1)
    io::fail_io("TokenFile", path,
                "has " + std::to_string(count_) + " tokens in this range, but one sample takes " +
                    std::to_string(block_ + 1),
                loc);
  size_ = (count_ - block_ - 1) / stride_ + 1;
}
TokenFile::~TokenFile() = default;
TokenFile::TokenFile(const TokenFile&) = default;

void TokenFile::read(int64_t from, int64_t* out, int64_t n) const {
  const size_t each = size_of(dtype_), count = static_cast<size_t>(n);
  // Read into the end of the result and widened from its beginning: no token is
  // overwritten before it is read.
  uint8_t* p = reinterpret_cast<uint8_t*>(out) + count * (sizeof *out - each);
  file_->file.read(static_cast<uint64_t>(first_ + from) * each, p, count * each,
                   SourceLoc::current());
  for (size_t i = 0; i < count; ++i) {
    if (dtype_ == uint8) {
      out[i] = p[i];
    } else if (dtype_ == int16) {
      uint16_t v;
      std::memcpy(&v, p + 2 * i, 2);
      out[i] = v;
    } else {
      int32_t v;
      std::memcpy(&v, p + 4 * i, 4);
      out[i] = v;
    }
  }
}

Sample TokenFile::get(int64_t index) const {
  if (index < 0 || index >= size_)
    fail(ErrorKind::Index, "TokenFile", "there is no sample " + std::to_string(index),
         SourceLoc::current());
  auto part = [&](int64_t shift) {
    return make_tensor(int64, {block_}, [&](void* out) {
      read(index * stride_ + shift, static_cast<int64_t*>(out), block_);
    });
  };
  return {part(0), part(1)};
}

Sample TokenFile::get_batch(std::span<const int64_t> indices, uint64_t, uint64_t) const {
  for (int64_t i : indices)
    if (i < 0 || i >= size_)
      fail(ErrorKind::Index, "TokenFile", "there is no sample " + std::to_string(i),
           SourceLoc::current());
  auto part = [&](int64_t shift) {
    return make_tensor(int64, {static_cast<int64_t>(indices.size()), block_}, [&](void* out) {
      for (size_t k = 0; k < indices.size(); ++k)
        read(indices[k] * stride_ + shift,
             static_cast<int64_t*>(out) + static_cast<int64_t>(k) * block_, block_);
    });
  };
  return {part(0), part(1)};
}

void save_tokens(const std::string& path, const std::vector<int64_t>& tokens, DType dtype,
                 SourceLoc where) {
  SourceLoc loc = user_loc(where);
  if (dtype != uint8 && dtype != int16 && dtype != int32)
    fail(ErrorKind::Value, "save_tokens", "tokens are uint8, int16 or int32", loc);
  int64_t limit = dtype == uint8 ? 255 : dtype == int16 ? 65535 : 0x7fffffff;
  size_t each = size_of(dtype);
  std::vector<uint8_t> bytes(tokens.size() * each);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] > limit)
      fail(ErrorKind::Value, "save_tokens",
           "the token " + std::to_string(tokens[i]) + " does not fit into " +
               std::string(name_of(dtype)),
           loc);
    for (size_t b = 0; b < each; ++b)
      bytes[i * each + b] = static_cast<uint8_t>(tokens[i] >> (8 * b));
  }
  io::AtomicFile out(path, "save_tokens", loc);
  out.write(bytes.data(), bytes.size());
  out.commit();
}

}  // namespace ingot::data
