// Readers of data files. As in io.h: every length is checked before memory is taken, a damaged file
// throws Error(Io) naming it. gzip-packed files are unpacked on the way where that is said.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ingot/data/dataset.h"
#include "ingot/data/transforms.h"

namespace ingot::data {

/// An IDX file, gzip-packed or not: uint8, int8, int16, int32, float32 or float64, any number of
/// dims.
Tensor load_idx(const std::string& path, SourceLoc loc = SourceLoc::current());

/// Files of CIFAR's binary version, one after the other: images uint8 [n, 3, 32, 32] and labels
/// int64 [n]. label_bytes: 1 for CIFAR-10, 2 for CIFAR-100, whose second label is taken.
std::pair<Tensor, Tensor> load_cifar(const std::vector<std::string>& paths, int label_bytes = 1,
                                     SourceLoc loc = SourceLoc::current());

/// A PNG or JPEG file: uint8 [channels, height, width]. channels: 1 or 3 converts, 0 keeps grey and
/// converts all else to colour.
Tensor load_image(const std::string& path, int channels = 3, SourceLoc loc = SourceLoc::current());
/// Writes an image, uint8 [1 or 3, height, width], as its file extension says: .png, .jpg or .jpeg.
/// Throws Error(Value) for another extension.
void save_image(const std::string& path, const Tensor& image, int quality = 90,
                SourceLoc loc = SourceLoc::current());

struct CsvOptions {
  char delimiter = ',';
  std::optional<bool> header{};  ///< whether the first line names the columns; when not given, it
                                 ///< does if one of its fields is not a number
  DType dtype = float32;
};
struct Csv {
  std::vector<std::string> columns;  ///< "" without a header
  Tensor values;                     ///< [rows, columns]
};
/// Numbers in lines; fields may be quoted, an empty one is NaN (0 in an integer type). Throws
/// Error(Io), naming line and column, for a field that is not a number or a line of another length.
Csv load_csv(const std::string& path, const CsvOptions& options = {},
             SourceLoc loc = SourceLoc::current());

struct ImageFolderOptions {
  Transforms transform{ToTensor()};
  int channels = 3;
};
/// Images (PNG, JPEG) in one folder per class, as torchvision's: sample i is {image, label}, labels
/// int64 0-d, classes by the names of their folders. With a first transform that crops or shrinks
/// (Resize, RandomResizedCrop) only what it needs is decoded. Throws Error(Io) for a folder without
/// images.
class ImageFolder : public Dataset {
 public:
  explicit ImageFolder(const std::string& root, const ImageFolderOptions& options = {},
                       SourceLoc loc = SourceLoc::current());
  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  Sample get(int64_t index) const override;
  uint64_t fingerprint() const override;
  const std::vector<std::string>& classes() const { return classes_; }
  const std::string& path(int64_t index) const { return files_[static_cast<size_t>(index)].first; }

 private:
  ImageFolderOptions o_;
  std::vector<std::string> classes_;
  std::vector<std::pair<std::string, int64_t>> files_;
};

struct TokenFileOptions {
  DType dtype =
      uint8;  ///< of the file: uint8 (text as bytes), int16 (read as unsigned: 0..65535) or int32
  int64_t stride = 0;         ///< from the start of one sample to that of the next; 0: block_size
  double begin = 0, end = 1;  ///< the part of the file to use, as fractions of its tokens
};
/// Windows of a file of tokens, read as they are needed: sample i is {x, y}, int64 [block_size]
/// each, y one token further than x. Text files are files of bytes. Throws Error(Io) when the file
/// has no complete sample, or becomes shorter while it is used, Error(Value) for a bad option.
class TokenFile : public Dataset {
 public:
  TokenFile(const std::string& path, int64_t block_size, const TokenFileOptions& options = {},
            SourceLoc loc = SourceLoc::current());
  ~TokenFile() override;
  TokenFile(const TokenFile&);
  int64_t size() const override { return size_; }
  Sample get(int64_t index) const override;
  Sample get_batch(std::span<const int64_t> indices, uint64_t seed, uint64_t epoch) const override;
  uint64_t fingerprint() const override;
  /// Tokens of the part that is used.
  int64_t tokens() const { return count_; }

 private:
  struct File;
  void read(int64_t from, int64_t* out, int64_t n) const;
  std::shared_ptr<const File> file_;
  int64_t block_, stride_, first_ = 0, count_ = 0, size_ = 0;
  DType dtype_;
};
/// Writes tokens as TokenFile reads them. Throws Error(Value) for one that the type cannot hold.
void save_tokens(const std::string& path, const std::vector<int64_t>& tokens, DType dtype = int16,
                 SourceLoc loc = SourceLoc::current());

}  // namespace ingot::data
