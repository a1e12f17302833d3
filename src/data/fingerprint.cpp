// Distinguishes data sets of the same size: a hash over what can be read quickly. A checkpoint
// keeps it, so that training is not resumed on other data. It detects mistakes, not forgery.
#include <algorithm>
#include <filesystem>

#include "data/host.h"
#include "ingot/data/datasets.h"
#include "ingot/data/readers.h"
#include "io/file.h"
#include "io/hash.h"

namespace ingot::data {
namespace {

class Print {
 public:
  explicit Print(std::string_view kind) { add(kind); }
  void add(std::string_view text) {
    add(static_cast<uint64_t>(text.size()));
    hash_.add({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }
  void add(uint64_t number) {
    hash_.add({reinterpret_cast<const uint8_t*>(&number), sizeof number});
  }
  void add(int64_t number) { add(static_cast<uint64_t>(number)); }
  // All bytes of up to 256 MiB (some 30 ms); of more, 4,096 pieces of 16 KiB.
  void add(const Tensor& t) {
    constexpr size_t kAll = size_t{256} << 20, kPieces = 4096, kPiece = 16384;
    add(std::string_view(name_of(t.dtype())));
    for (int64_t d : t.shape()) add(d);
    const size_t n = static_cast<size_t>(t.numel()) * size_of(t.dtype());
    const auto* p = static_cast<const uint8_t*>(host_data(t));
    if (n <= kAll) return hash_.add({p, n});
    for (size_t i = 0; i < kPieces; ++i) hash_.add({p + (n - kPiece) / (kPieces - 1) * i, kPiece});
  }
  // 0 means unknown.
  uint64_t sum() const { return std::max<uint64_t>(hash_.sum(), 1); }

 private:
  io::Hash hash_;
};

// A file's size and its first bytes.
void add_file(Print& print, const std::string& path) {
  const SourceLoc loc;
  const io::File file(path, "fingerprint", loc);
  std::string head(std::min<size_t>(file.size(), 4096), '\0');
  file.read(0, head.data(), head.size(), loc);
  print.add(static_cast<uint64_t>(file.size()));
  print.add(head);
}

}  // namespace

uint64_t Dataset::fingerprint() const { return 0; }

uint64_t TensorDataset::fingerprint() const {
  Print p("tensors");
  for (const Tensor& t : tensors_) p.add(t);
  return p.sum();
}

uint64_t VisionDataset::fingerprint() const {
  Print p("images");
  p.add(images_);
  p.add(labels_);
  return p.sum();
}

uint64_t Subset::fingerprint() const {
  Print p("subset");
  p.add(dataset_->fingerprint());
  for (int64_t i : indices_) p.add(i);
  return p.sum();
}

uint64_t ConcatDataset::fingerprint() const {
  Print p("concat");
  for (const AnyDataset& d : datasets_) p.add(d->fingerprint());
  return p.sum();
}

// All names, and the beginnings of 64 files.
uint64_t ImageFolder::fingerprint() const {
  Print p("folder");
  for (const std::string& c : classes_) p.add(c);
  for (const auto& [path, label] : files_) {
    p.add(std::filesystem::path(path).filename().string());
    p.add(label);
  }
  constexpr size_t kFiles = 64;
  for (size_t i = 0, n = std::min(kFiles, files_.size()); i < n; ++i)
    add_file(p, files_[i * files_.size() / n].first);
  return p.sum();
}

// The range in use, and 64 pieces of it.
uint64_t TokenFile::fingerprint() const {
  Print p("tokens");
  for (int64_t v : {first_, count_, block_, stride_}) p.add(v);
  constexpr int64_t kPieces = 64, kPiece = 1024;
  std::vector<int64_t> tokens(static_cast<size_t>(std::min(count_, kPiece)));
  for (int64_t i = 0; i < kPieces; ++i) {
    read((count_ - static_cast<int64_t>(tokens.size())) * i / (kPieces - 1), tokens.data(),
         static_cast<int64_t>(tokens.size()));
    for (int64_t t : tokens) p.add(t);
  }
  return p.sum();
}

uint64_t Shapes::fingerprint() const {
  Print p("shapes");
  p.add(o_.size);
  p.add(static_cast<int64_t>(o_.side));
  p.add(o_.seed);
  return p.sum();
}

}  // namespace ingot::data
