// Transforms of images, with torchvision's names and defaults. Random ones draw from the sample's
// own sequence (random()), so that a sample of an epoch is the same whatever thread makes it.
//
//   data::Transforms t = {data::RandomResizedCrop(224), data::RandomHorizontalFlip(),
//   data::ToTensor(),
//                         data::Normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225})};
#pragma once
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ingot/data/dataset.h"

namespace ingot::data {

struct Pixels;  // the pixels of an image on their way through the transforms

/// One step; made by the functions below.
class Transform {
 public:
  struct Impl;
  explicit Transform(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

/// Steps in order. Without ToTensor the result is uint8.
class Transforms {
 public:
  Transforms() = default;
  Transforms(std::initializer_list<Transform> steps) : steps_(steps) {}
  explicit Transforms(std::vector<Transform> steps) : steps_(std::move(steps)) {}
  /// An image [channels, height, width] of uint8 (or float32 in [0, 1]) through all steps. Throws
  /// Error(Shape) or Error(DType) for another tensor.
  Tensor operator()(const Tensor& image, SourceLoc loc = SourceLoc::current()) const;
  bool empty() const { return steps_.empty(); }
  const std::vector<Transform>& steps() const { return steps_; }

 private:
  std::vector<Transform> steps_;
};

/// The shorter side becomes `size`. Bilinear, averaging where it shrinks, as Pillow does. Sizes
/// below 1 throw Error(Value), as below.
Transform Resize(int size, SourceLoc loc = SourceLoc::current());
Transform Resize(int height, int width, SourceLoc loc = SourceLoc::current());
/// The centre; what is outside the image is 0.
Transform CenterCrop(int size, SourceLoc loc = SourceLoc::current());
struct RandomCropOptions {
  int padding = 0;  ///< pixels of 0 added on each side first
};
/// Error(Value) in the loop for an image that is too small.
Transform RandomCrop(int size, const RandomCropOptions& options = {},
                     SourceLoc loc = SourceLoc::current());
struct RandomResizedCropOptions {
  std::pair<double, double> scale{0.08, 1.0};         ///< share of the area
  std::pair<double, double> ratio{3.0 / 4, 4.0 / 3};  ///< width over height
};
Transform RandomResizedCrop(int size, const RandomResizedCropOptions& options = {},
                            SourceLoc loc = SourceLoc::current());
/// With probability p; Error(Value) unless it is one.
Transform RandomHorizontalFlip(double p = 0.5, SourceLoc loc = SourceLoc::current());
Transform RandomVerticalFlip(double p = 0.5, SourceLoc loc = SourceLoc::current());
/// By an angle in [-degrees, degrees], about the centre, nearest pixel; corners are 0.
Transform RandomRotation(double degrees, SourceLoc loc = SourceLoc::current());
struct ColorJitterOptions {
  double brightness = 0;  ///< factor in [1 - b, 1 + b]; so are the next two
  double contrast = 0;
  double saturation = 0;
  double hue = 0;  ///< shift in [-hue, hue], at most 0.5 of the circle
};
/// In a random order. Throws Error(Value) for a negative value or a hue above 0.5.
Transform ColorJitter(const ColorJitterOptions& options, SourceLoc loc = SourceLoc::current());
/// To float32 in [0, 1].
Transform ToTensor();
/// (x - mean) / std for each channel, in float32. Throws Error(Value) when mean and std differ in
/// length or a std is 0.
Transform Normalize(std::vector<double> mean, std::vector<double> std,
                    SourceLoc loc = SourceLoc::current());
struct RandomErasingOptions {
  double p = 0.5;
  std::pair<double, double> scale{0.02, 0.33};
  std::pair<double, double> ratio{0.3, 3.3};
  double value = 0;
};
/// A rectangle becomes `value`; makes float32 first.
Transform RandomErasing(const RandomErasingOptions& options = {},
                        SourceLoc loc = SourceLoc::current());
/// Anything else, on the tensor as it is at that point.
Transform Lambda(std::function<Tensor(const Tensor&)> fn);

}  // namespace ingot::data
