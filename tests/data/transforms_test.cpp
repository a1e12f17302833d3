// Transforms: against Pillow's results, against what they say, and the same for the same sample.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <cmath>
#include <filesystem>
#include <functional>

#include "support/folder.h"

using namespace ingot;

namespace {

std::string file(const std::string& name) { return std::string(INGOT_TEST_FILES) + "/" + name; }

Tensor truth(const std::string& name) {
  for (auto& [n, t] : io::load_npz(file("images.npz")))
    if (n == name) return t;
  FAIL("no image " << name);
  return {};
}

int64_t worst(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  return (a.to(int32) - b.to(int32)).abs().max().item<int64_t>();
}

ErrorKind kind_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind();
  }
  return ErrorKind::Internal;
}

Tensor run(const data::Transforms& t, const Tensor& x, uint64_t seed) {
  data::RandomScope scope(seed, 0, 0);
  return t(x);
}

}  // namespace

TEST_CASE("sizes, as Pillow makes them") {
  Tensor x = truth("rgb");
  CHECK(worst(data::Transforms{data::Resize(30, 20)}(x), truth("down")) <= 1);
  CHECK(worst(data::Transforms{data::Resize(90, 100)}(x), truth("up")) <= 1);
  CHECK(worst(data::Transforms{data::Resize(24)}(x), truth("shorter24")) <= 1);
  CHECK(worst(data::Transforms{data::Resize(48, 64)}(x), x) == 0);
  CHECK(data::Transforms{data::Resize(10)}(x.transpose(1, 2)).shape() == Dims{3, 13, 10});
}

TEST_CASE("parts") {
  Tensor x = truth("rgb");
  CHECK(worst(data::Transforms{data::CenterCrop(20)}(x),
              x[{Ellipsis, Slice{14, 34}, Slice{22, 42}}]) == 0);
  Tensor wide = data::Transforms{data::CenterCrop(60)}(x);
  CHECK(worst(wide[{Ellipsis, Slice{6, 54}, Slice{}}], x[{Ellipsis, Slice{}, Slice{2, 62}}]) == 0);
  CHECK(wide[{Ellipsis, Slice{0, 6}, Slice{}}].to(int64).sum().item() == 0);
  bool all_found = true;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Tensor c = run({data::RandomCrop(40)}, x, seed);
    bool found = false;
    for (int y = 0; y <= 8 && !found; ++y)
      for (int k = 0; k <= 24 && !found; ++k)
        found = worst(c, x[{Ellipsis, Slice{y, y + 40}, Slice{k, k + 40}}]) == 0;
    all_found = all_found && found;
  }
  CHECK(all_found);
  CHECK(run({data::RandomCrop(56, {.padding = 4})}, x, 1).shape() == Dims{3, 56, 56});
  CHECK(kind_of([&] { run({data::RandomCrop(57, {.padding = 4})}, x, 1); }) == ErrorKind::Value);
  CHECK(run({data::RandomResizedCrop(16)}, x, 1).shape() == Dims{3, 16, 16});
  // The full image when nothing else is allowed.
  CHECK(worst(run({data::RandomResizedCrop(20, {.scale = {1, 1}, .ratio = {64.0 / 48, 64.0 / 48}})},
                  x, 1),
              data::Transforms{data::Resize(20, 20)}(x)) == 0);
}

TEST_CASE("Resize and CenterCrop together make what they make one after the other") {
  Tensor x = randint(0, 256, {3, 61, 97}, {}, Generator(3)).to(uint8).eval_();
  for (int size : {8, 40, 61, 90})
    for (int crop : {1, 7, 8, 40, 61, 95}) {
      CAPTURE(size);
      CAPTURE(crop);
      const Tensor both = data::Transforms{data::Resize(size), data::CenterCrop(crop)}(x),
                   apart = data::Transforms{data::CenterCrop(crop)}(
                       data::Transforms{data::Resize(size)}(x));
      CHECK(worst(both, apart) == 0);
    }
  // A strip would become 234,881,024 x 224 pixels on the way.
  Folder f;
  std::filesystem::create_directories(f / "a");
  data::save_image(f / "a/strip.png", zeros({1, 1, 1 << 20}, uint8));
  data::ImageFolder cropped(f.path, {.transform = {data::Resize(224), data::CenterCrop(224)}});
  CHECK(cropped.get(0)[0].shape() == Dims{3, 224, 224});
  data::ImageFolder whole(f.path, {.transform = {data::Resize(224)}});
  std::string message;
  try {
    whole.get(0);
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::Io);
    message = e.what();
  }
  CHECK(message.find("strip.png") != std::string::npos);
  CHECK(message.find("234881024 x 224") != std::string::npos);
}

TEST_CASE("turning about") {
  Tensor x = truth("rgb");
  CHECK(worst(data::Transforms{data::RandomHorizontalFlip(1)}(x), x.flip(2)) == 0);
  CHECK(worst(data::Transforms{data::RandomVerticalFlip(1)}(x), x.flip(1)) == 0);
  CHECK(worst(data::Transforms{data::RandomHorizontalFlip(0)}(x), x) == 0);
  int flipped = 0;
  for (uint64_t seed = 0; seed < 200; ++seed)
    flipped += worst(run({data::RandomHorizontalFlip()}, x, seed), x) != 0;
  CHECK(flipped > 60);
  CHECK(flipped < 140);
  CHECK(worst(data::Transforms{data::RandomRotation(0)}(x), x) == 0);
  // A square rotated by 90 degrees, as Pillow rotates it: the seed whose angle is nearest to 90
  // degrees.
  Tensor square = x[{Ellipsis, Slice{}, Slice{0, 48}}], want = truth("rotate90");
  int64_t best = 1 << 30;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    data::RandomScope scope(seed, 0, 0);
    if (std::abs(data::random().uniform(-180, 180) - 90) > 0.3) continue;
    Tensor got = run({data::RandomRotation(180)}, square, seed);
    best = std::min(best, (got.to(int32) - want.to(int32))
                              .abs()[{Ellipsis, Slice{4, 44}, Slice{4, 44}}]
                              .max()
                              .item<int64_t>());
  }
  CHECK(best <= 30);
}

TEST_CASE("colour") {
  Tensor x = truth("rgb");
  CHECK(worst(run({data::ColorJitter({})}, x, 3), x) == 0);
  Tensor b = run({data::ColorJitter({.brightness = 0.5})}, x, 3);
  double ratio = b.to(float32).mean().item() / x.to(float32).mean().item();
  CHECK(ratio != 1);
  // Black stays black by brightness, grey stays grey by saturation and hue.
  CHECK(run({data::ColorJitter({.brightness = 0.9})}, zeros({3, 4, 4}, uint8), 5)
            .to(int64)
            .sum()
            .item() == 0);
  Tensor grey = full({3, 4, 4}, 100, uint8);
  CHECK(worst(run({data::ColorJitter({.contrast = 0.9, .saturation = 0.9, .hue = 0.5})}, grey, 5),
              grey) == 0);
  // A hue moved by a third of the circle takes red to green or blue; value and chroma stay.
  Tensor red = zeros({3, 2, 2}, uint8).clone();
  red[0] = 200;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Tensor h = run({data::ColorJitter({.hue = 0.5})}, red, seed);
    CHECK(h.max().item<int64_t>() == 200);
    CHECK(h.min().item<int64_t>() == 0);
  }
  CHECK(kind_of([] { data::ColorJitter({.hue = 0.6}); }) == ErrorKind::Value);
}

TEST_CASE("numbers") {
  Tensor x = truth("rgb");
  Tensor t = data::Transforms{data::ToTensor()}(x);
  CHECK(t.dtype() == float32);
  CHECK(t.to_vector<float>() == (x.to(float32) / 255.0).to_vector<float>());
  Tensor n = data::Transforms{data::ToTensor(), data::Normalize({0.5, 0.25, 0}, {0.5, 2, 1})}(x);
  Tensor want = (t - tensor({0.5, 0.25, 0.0}).reshape({3, 1, 1})) /
                tensor({0.5, 2.0, 1.0}).reshape({3, 1, 1});
  CHECK((n - want).abs().max().item() < 1e-6);
  int erased = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Tensor e = run({data::RandomErasing({.value = -5})}, x, seed);
    int64_t count = (e == -5.0).to(int64).sum().item<int64_t>();
    erased += count > 0;
    CHECK(count % 3 == 0);
    CHECK(count <= 3 * 48 * 64 * 0.36);
  }
  CHECK(erased > 30);
  CHECK(erased < 70);
  CHECK(data::Transforms{data::Lambda([](const Tensor& p) { return p.flip(2); })}(x)
            .to_vector<int>() == x.flip(2).to_vector<int>());
}

TEST_CASE("bad arguments") {
  CHECK(kind_of([] { data::Resize(0); }) == ErrorKind::Value);
  CHECK(kind_of([] { data::CenterCrop(-1); }) == ErrorKind::Value);
  CHECK(kind_of([] { data::RandomCrop(3, {.padding = -1}); }) == ErrorKind::Value);
  CHECK(kind_of([] { data::RandomResizedCrop(3, {.scale = {0.5, 0.1}}); }) == ErrorKind::Value);
  CHECK(kind_of([] { data::RandomHorizontalFlip(1.5); }) == ErrorKind::Value);
  CHECK(kind_of([] { data::RandomRotation(-1); }) == ErrorKind::Value);
  CHECK(kind_of([] { data::Normalize({1}, {0}); }) == ErrorKind::Value);
  CHECK(kind_of([] { data::Normalize({1, 2}, {1}); }) == ErrorKind::Value);
  CHECK(kind_of([] { data::RandomErasing({.p = 2}); }) == ErrorKind::Value);
  CHECK(kind_of([] {
          data::Transforms{data::ToTensor()}(zeros({2, 3}, uint8));
        }) == ErrorKind::Shape);
  CHECK(kind_of([] {
          data::Transforms{data::ToTensor()}(zeros({3, 2, 2}, int64));
        }) == ErrorKind::DType);
  CHECK(kind_of([] {
          data::Transforms{data::Normalize({1, 1}, {1, 1})}(zeros({3, 2, 2}, uint8));
        }) == ErrorKind::Value);
}

TEST_CASE(
    "a sample of an epoch comes out the same whatever thread makes it, and another in the next") {
  Tensor images = randint(0, 256, {12, 3, 20, 20}, uint8).eval_(), labels = arange(12);
  data::Transforms t = {
      data::RandomCrop(20, {.padding = 4}), data::RandomHorizontalFlip(), data::RandomRotation(20),
      data::ColorJitter({.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1}),
      data::RandomErasing()};
  std::vector<std::vector<float>> first;
  for (int workers : {0, 3})
    for (bool shuffle : {false, true}) {
      data::DataLoader loader(
          data::VisionDataset(images, labels, t),
          {.batch_size = 5, .shuffle = shuffle, .num_workers = workers, .seed = 1});
      for (int epoch = 0; epoch < 2; ++epoch) {
        std::vector<std::vector<float>> got(12);
        for (auto [x, y] : loader)
          for (int64_t i = 0; i < y.size(0); ++i)
            got[static_cast<size_t>(y[i].item<int64_t>())] = x[i].to_vector<float>();
        if (first.empty()) first = got;
        CHECK((got == first) == (epoch == 0));
      }
    }
}

TEST_CASE("a JPEG of which only a part is decoded gives what the whole would") {
  Folder f;
  // Smooth, so that averaging in the decoder and after it agree.
  Tensor y = arange(400).reshape({400, 1}).to(float32),
         x = arange(600).reshape({1, 600}).to(float32);
  Tensor image =
      stack({x * 0.4 + y * 0.01, y * 0.6 + x * 0.01, (x + y) * 0.2}).clamp(0, 255).to(uint8);
  data::save_image(f / "a.png", image);
  std::filesystem::create_directories(f / "jpg/a");
  std::filesystem::create_directories(f / "png/a");
  data::save_image(f / "jpg/a/a.jpg", image, 98);
  data::save_image(f / "png/a/a.png", data::load_image(f / "jpg/a/a.jpg"));
  for (const data::Transforms& t :
       {data::Transforms{data::RandomResizedCrop(40)},
        data::Transforms{data::RandomResizedCrop(120)}, data::Transforms{data::Resize(50)},
        data::Transforms{data::Resize(300)}, data::Transforms{data::CenterCrop(100)}}) {
    data::ImageFolder part(f / "jpg", {.transform = t}), whole(f / "png", {.transform = t});
    for (uint64_t seed = 0; seed < 30; ++seed) {
      Tensor a, b;
      {
        data::RandomScope scope(seed, 0, 0);
        a = part.get(0)[0];
      }
      {
        data::RandomScope scope(seed, 0, 0);
        b = whole.get(0)[0];
      }
      CHECK(worst(a, b) <= 4);
    }
  }
}
