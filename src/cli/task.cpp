#include "task.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>

#include <ingot/models.h>

#include "cli.h"
#include "files.h"

namespace ingot::cli {
namespace fs = std::filesystem;

static const std::vector<std::string> kFashion{"T-shirt", "trousers", "pullover", "dress", "coat",
                                               "sandal",  "shirt",    "trainer",  "bag",   "boot"};
static const std::vector<std::string> kDigits{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
static const std::vector<std::string> kCifar{"aeroplane", "car",  "bird",  "cat",  "deer",
                                             "dog",       "frog", "horse", "ship", "lorry"};

static void check_task(const Recipe& recipe) {
  const std::string task = recipe.text("task");
  if (task != "images" && task != "text" && task != "points")
    throw Failure(kUsage, recipe.name() + ": there is no task \"" + task + "\"",
                  "Set task to images, text or points.");
}

Task::Task(const Recipe& recipe, const Device& device, bool with_data)
    : recipe_(recipe), device_(device) {
  check_task(recipe);
  guess_model_shape();
  if (with_data) open_data();
  make_network();
}

Task::Task(const Recipe& recipe, const Device& device, const ModelShape& shape,
           std::vector<std::string> classes)
    : recipe_(recipe), device_(device), model_shape_(shape), classes_(std::move(classes)) {
  check_task(recipe);
  make_network();
}

void Task::make_network() {
  manual_seed(static_cast<uint64_t>(recipe_.integer("seed")));
  DeviceScope scope(device_);
  model_ = make_model(recipe_, model_shape_);
}

void Task::guess_model_shape() {
  const std::string data = recipe_.text("data");
  if (data == "cifar10")
    model_shape_ = {3, 32, 10}, classes_ = kCifar;
  else if (data == "mnist")
    model_shape_ = {1, 28, 10}, classes_ = kDigits;
  else if (data == "fashion-mnist")
    model_shape_ = {1, 28, 10}, classes_ = kFashion;
  else if (data == "spirals")
    model_shape_ = {1, 1, 2}, classes_ = {"orange", "blue"};
  else
    model_shape_ = {3, std::max<int64_t>(recipe_.integer("image_size"), 1), 10};
}

void Task::open_data() {
  const std::string task = recipe_.text("task"), data = recipe_.text("data");
  if (task == "points") return open_spirals();
  if (task == "text") return open_text(data);
  if (data == "fashion-mnist" || data == "mnist" || data == "cifar10") return open_named(data);
  open_folder(data);
}

static data::DataLoaderOptions loader_options(const Recipe& r, const Device& d, bool train) {
  return {.batch_size = r.integer("batch"),
          .shuffle = train,
          .num_workers = static_cast<int>(r.integer("workers")),
          .drop_last = train,
          .device = d,
          .seed = static_cast<uint64_t>(r.integer("seed"))};
}

static std::unique_ptr<data::DataLoader> make_loader(const data::AnyDataset& set, const Recipe& r,
                                                     const Device& d, bool train) {
  data::DataLoaderOptions o = loader_options(r, d, train);
  if (set->size() < o.batch_size) {
    if (train)
      throw Failure(
          kUsage,
          format("a batch of %lld is larger than the data's %lld samples",
                 static_cast<long long>(o.batch_size), static_cast<long long>(set->size())),
          "Set --batch lower.");
    o.drop_last = false;
  }
  return std::make_unique<data::DataLoader>(set, o);
}

static std::vector<data::Transform> augmentation(const Recipe& r, int side) {
  const std::string kind = r.text("augment");
  std::vector<data::Transform> steps;
  if (kind == "crop-flip")
    steps = {data::RandomCrop(side, {.padding = 4}), data::RandomHorizontalFlip()};
  else if (kind == "flip")
    steps = {data::RandomHorizontalFlip()};
  else if (!kind.empty())
    throw Failure(kUsage, "there is no augment \"" + kind + "\"",
                  "Set augment to flip or crop-flip, or leave it out.");
  return steps;
}

// Labels come from a file and may be out of range.
static void check_labels(const Tensor& labels, const std::string& root, int64_t classes) {
  const auto all = labels.to_vector<int64_t>();
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i] < 0 || all[i] >= classes)
      throw Failure(kDamaged,
                    format("the data in %s is damaged: record %zu has the label %lld, but the "
                           "classes are 0 to %lld",
                           root.c_str(), i, static_cast<long long>(all[i]),
                           static_cast<long long>(classes) - 1),
                    "Correct or remove that record, or download the data again: rm -r " +
                        shell_word(root) + "; tools/setup.sh --data " +
                        root.substr(root.rfind('/') + 1));
}

void Task::open_named(const std::string& name) {
  const std::string root = "data/" + name;
  if (!is_folder(root))
    throw Failure(kNoData, "the data of \"" + recipe_.name() + "\" is missing: no folder " + root,
                  "Download it with: tools/setup.sh --data " + name);
  auto open = [&](bool train) -> data::AnyDataset {
    const auto steps = train ? augmentation(recipe_, static_cast<int>(model_shape_.side))
                             : std::vector<data::Transform>{};
    const data::VisionOptions o{.train = train, .transform = data::Transforms(steps)};
    auto bytes = [&](const data::VisionDataset& set) -> data::AnyDataset {
      check_labels(set.labels(), root, model_shape_.classes);
      // Images stay bytes until they are on the device; there the network's first kernel converts
      // them.
      if (steps.empty()) return data::TensorDataset({set.images(), set.labels()});
      return set;
    };
    if (name == "mnist") return bytes(data::MNIST(root, o));
    if (name == "cifar10") return bytes(data::CIFAR10(root, o));
    return bytes(data::FashionMNIST(root, o));
  };
  auto opened = [&](bool train) {
    try {
      return open(train);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::Io) throw;
      throw Failure(kDamaged, "the data in " + root + " is incomplete or damaged: " + e.reason(),
                    "Download it again: rm -r " + root + "; tools/setup.sh --data " + name);
    }
  };
  train_ = make_loader(opened(true), recipe_, device_, true);
  test_ = make_loader(opened(false), recipe_, device_, false);
}

static bool has_images(const fs::path& folder) {
  std::error_code e;
  for (fs::recursive_directory_iterator i(folder, e), end; !e && i != end; i.increment(e)) {
    std::string kind = i->path().extension().string();
    for (char& c : kind) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    std::error_code ignored;
    if ((kind == ".png" || kind == ".jpg" || kind == ".jpeg") && i->is_regular_file(ignored))
      return true;
  }
  return false;
}

// One folder per class, each with images in it and a name that text files can hold.
static void check_classes(const std::string& root) {
  bool any = false;
  std::error_code e;
  for (fs::directory_iterator i(root, e), end; !e && i != end; i.increment(e)) {
    std::error_code ignored;
    if (!i->is_directory(ignored)) continue;
    any = true;
    const std::string name = i->path().filename().string(), shown = printable(root + "/" + name);
    if (printable(name) != name)
      throw Failure(kUsage, "the name of the class folder " + shown + " is not plain text (UTF-8)",
                    "Rename it.");
    if (!has_images(i->path()))
      throw Failure(kNoData, "the class folder " + shown + " has no PNG or JPEG files in it",
                    "Add images of that class, or remove the folder.");
  }
  if (e)
    throw Failure(kNoData, root + " cannot be read: " + e.message(),
                  "Name another: --set data=FOLDER.");
  if (!any)
    throw Failure(
        kNoData, root + " has no folders of images in it",
        "One folder per class is needed: " + root + "/cat/1.jpg, " + root + "/dog/2.jpg.");
}

void Task::open_folder(const std::string& root) {
  if (!is_folder(root))
    throw Failure(kNoData, "the data of \"" + recipe_.name() + "\" is missing: no folder " + root,
                  "Name a folder of images with one folder per class: --set data=FOLDER.");
  if (recipe_.integer("image_size") < 8)
    throw Failure(kUsage, "images of a folder need an image_size of at least 8",
                  "For example: --set image_size=64.");
  const int side = static_cast<int>(recipe_.integer("image_size"));
  const bool split = is_folder(root + "/train") && is_folder(root + "/test");
  for (const std::string& folder : split ? std::vector<std::string>{root + "/train", root + "/test"}
                                         : std::vector<std::string>{root})
    check_classes(folder);
  auto options = [&](bool train) {
    std::vector<data::Transform> steps{data::Resize(side), data::CenterCrop(side)};
    if (train)
      for (const auto& t : augmentation(recipe_, side)) steps.push_back(t);
    return data::ImageFolderOptions{.transform = data::Transforms(steps), .channels = 3};
  };
  if (split) {
    const data::ImageFolder train(root + "/train", options(true)),
        test(root + "/test", options(false));
    if (train.classes() != test.classes())
      throw Failure(kNoData, root + "/train and " + root + "/test have different classes",
                    "Both need one folder per class, with the same names.");
    classes_ = train.classes();
    train_ = make_loader(train, recipe_, device_, true);
    test_ = make_loader(test, recipe_, device_, false);
  } else {
    const data::ImageFolder train(root, options(true)), test(root, options(false));
    classes_ = train.classes();
    std::vector<int64_t> for_train, for_test;
    for (int64_t i = 0; i < train.size(); ++i) (i % 10 == 9 ? for_test : for_train).push_back(i);
    if (for_test.empty()) throw Failure(kNoData, root + " has fewer than 10 images", "Add more.");
    train_ = make_loader(data::Subset(train, for_train), recipe_, device_, true);
    test_ = make_loader(data::Subset(test, for_test), recipe_, device_, false);
  }
  model_shape_ = {3, side, static_cast<int64_t>(classes_.size())};
}

void Task::open_text(const std::string& path) {
  require_plain(path);
  if (!is_file(path)) {
    const bool ours = path == "data/text/kjv.txt";
    throw Failure(
        kNoData, "the data of \"" + recipe_.name() + "\" is missing: no file " + path,
        ours
            ? "Download it with: tools/setup.sh --data text, or use your own text: --set data=FILE."
        : recipe_.text("tokens") == "byte"
            ? "Name a file: --set data=FILE."
            : "Name a file of tokens, " + recipe_.text("tokens") + " each: --set data=FILE.");
  }
  const std::string kind = recipe_.text("tokens");
  if (kind != "byte" && kind != "int16" && kind != "int32")
    throw Failure(kUsage, "there is no token type \"" + kind + "\"",
                  "Set tokens to byte, int16 or int32.");
  data::TokenFileOptions o{.dtype = kind == "byte"    ? uint8
                                    : kind == "int16" ? int16
                                                      : int32,
                           .end = 0.95};
  // The test part is a twentieth of the text; one sample must fit into it.
  const int64_t each = kind == "byte"    ? 1
                       : kind == "int16" ? 2
                                         : 4,
                needed = each * 20 * (recipe_.integer("context") + 2);
  std::error_code e;
  if (const auto size = fs::file_size(path, e); e || static_cast<int64_t>(size) < needed)
    throw Failure(kNoData,
                  path + " is too short: a context of " +
                      std::to_string(recipe_.integer("context")) + " takes at least " +
                      count_text(needed) + " bytes",
                  "Take a longer text, or set context lower.");
  const data::TokenFile train(path, recipe_.integer("context"), o);
  o.begin = 0.95, o.end = 1;
  const data::TokenFile test(path, recipe_.integer("context"), o);
  train_ = make_loader(train, recipe_, device_, true);
  // A part of the rest is enough.
  std::vector<int64_t> some;
  for (int64_t i = 0; i < std::min<int64_t>(test.size(), 40 * recipe_.integer("batch")); ++i)
    some.push_back(i);
  test_ = make_loader(data::Subset(test, some), recipe_, device_, false);
}

static std::pair<Tensor, Tensor> spirals(int per_spiral, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> noise(0, 0.02f);
  std::vector<float> xy;
  std::vector<int64_t> which;
  for (int i = 0; i < per_spiral; ++i)
    for (int spiral : {0, 1}) {
      const float t = std::sqrt(static_cast<float>(i) / static_cast<float>(per_spiral));
      const float angle = 9.5f * t + 3.14159265f * static_cast<float>(spiral);
      xy.push_back(0.95f * t * std::cos(angle) + noise(generator));
      xy.push_back(0.95f * t * std::sin(angle) + noise(generator));
      which.push_back(spiral);
    }
  const auto n = static_cast<int64_t>(which.size());
  return {tensor(xy, {n, 2}, "cpu"), tensor(which, {n}, "cpu")};
}

void Task::open_spirals() {
  const auto [x, y] = spirals(800, 7);
  const auto [tx, ty] = spirals(200, 8);
  train_ = make_loader(data::TensorDataset({x, y}), recipe_, device_, true);
  test_ = make_loader(data::TensorDataset({tx, ty}), recipe_, device_, false);
}

Tensor Task::loss(const Tensor& logits, const Tensor& target) const {
  const CrossEntropyOptions o{.label_smoothing =
                                  model_->is_training() ? recipe_.number("label_smoothing") : 0};
  return is_text() ? cross_entropy(logits.flatten(0, 1), target.flatten(), o)
                   : cross_entropy(logits, target, o);
}

Tensor Task::forward_loss(const Tensor& x, const Tensor& y) {
  amp::Autocast scope(bfloat16, uses_amp());
  return loss((*model_)(x), y);
}

std::vector<Tensor> Task::example(int64_t batch) const {
  if (is_text()) {
    const Dims d{batch, recipe_.integer("context")};
    return {zeros(d, {int64, device_}), zeros(d, {int64, device_})};
  }
  if (recipe_.text("task") == "points")
    return {zeros({batch, 2}, {float32, device_}), zeros({batch}, {int64, device_})};
  return {
      zeros({batch, model_shape_.channels, model_shape_.side, model_shape_.side}, {uint8, device_}),
      zeros({batch}, {int64, device_})};
}

std::pair<Tensor, Tensor> Task::test_batch(const Tensor& x, const Tensor& y) {
  // The logits themselves are not requested: for text they would be most of the memory.
  const auto answer = [&]() -> std::pair<Tensor, Tensor> {
    amp::Autocast scope(bfloat16, uses_amp());
    const Tensor logits = (*model_)(x);
    return {loss(logits, y), logits.argmax(-1)};
  };
  std::pair<Tensor, Tensor> both = answer();
  eval({both.first, both.second});
  return both;
}

void Task::evaluate_example(const std::vector<Tensor>& batch) {
  NoGrad no_grad;
  model_->eval();
  test_batch(batch[0], batch[1]);
  model_->train();
}

Evaluation Task::evaluate() {
  NoGrad no_grad;
  model_->eval();
  Evaluation e;
  const auto k = static_cast<size_t>(model_shape_.classes);
  if (!is_text()) e.confusion.assign(k, std::vector<int64_t>(k));
  int64_t count = 0, right = 0;
  for (const auto& batch : test()) {
    const auto [l, answers] = test_batch(batch[0], batch[1]);
    const auto said = answers.to_vector<int64_t>(), truth = batch[1].to_vector<int64_t>();
    for (size_t i = 0; i < said.size(); ++i) {
      right += said[i] == truth[i];
      if (is_text()) continue;
      // Checked when the data is opened, and again here, where it is used as an index.
      if (truth[i] < 0 || truth[i] >= model_shape_.classes || said[i] < 0 ||
          said[i] >= model_shape_.classes)
        throw Failure(kDamaged,
                      format("a label of the test data is %lld, but the classes are 0 to %lld",
                             static_cast<long long>(truth[i]),
                             static_cast<long long>(model_shape_.classes) - 1),
                      "Correct the data, or remove that record.");
      ++e.confusion[static_cast<size_t>(truth[i])][static_cast<size_t>(said[i])];
    }
    count += static_cast<int64_t>(said.size());
    e.loss += l.item() * static_cast<double>(said.size());
  }
  e.loss /= static_cast<double>(count);
  e.accuracy = static_cast<double>(right) / static_cast<double>(count);
  model_->train();
  return e;
}

std::vector<SampleImage> Task::samples(int64_t count) {
  NoGrad no_grad;
  model_->eval();
  std::vector<SampleImage> found;
  const data::Dataset& set = test_->dataset();
  for (int64_t i = 0; i < std::min(count, set.size()); ++i) {
    const data::Sample s = set.get(i * (set.size() / std::min(count, set.size())));
    const Tensor p = softmax((*model_)(s[0].unsqueeze(0).to(device_)), -1)[0];
    const auto values = p.to_vector<float>();
    const auto best = std::max_element(values.begin(), values.end());
    found.push_back({s[0], s[1].item<int64_t>(), best - values.begin(), *best});
  }
  model_->train();
  return found;
}

// Continues `tokens` until take() returns false: in blocks, each up to a full context; the next
// block starts from the second half of the previous one. All blocks but the first have one shape,
// so that one plan serves them.
static void write_on(models::GPT& gpt, std::vector<int64_t> tokens, double temperature,
                     uint64_t seed, const Device& device,
                     const std::function<bool(int64_t)>& take) {
  const int64_t context = gpt.config().context;
  for (bool open = true; open; seed += 1000003) {
    const auto have = static_cast<int64_t>(tokens.size()),
               used = have < context ? have : context / 2;
    const Tensor start =
        tensor(std::vector<int64_t>(tokens.end() - used, tokens.end()), {1, used}, device);
    gpt.generate(start, {.max_new_tokens = context - used,
                         .temperature = temperature,
                         .seed = seed,
                         .on_tokens = [&](const std::vector<int64_t>& row) {
                           tokens.push_back(row[0]);
                           return open = take(row[0]);
                         }});
  }
}

// The same for any other model, which reads the end of the text again for every token.
static void write_on(nn::Module& model, std::vector<int64_t> tokens, double temperature,
                     uint64_t seed, const Device& device, int64_t context,
                     const std::function<bool(int64_t)>& take) {
  NoGrad no_grad;
  std::mt19937_64 generator(seed);
  for (bool open = true; open;) {
    // One shape for all calls, so that one plan serves them: the padding is at the end, which
    // earlier positions do not see.
    const auto used = std::min(static_cast<int64_t>(tokens.size()), context);
    std::vector<int64_t> window(tokens.end() - used, tokens.end());
    window.resize(static_cast<size_t>(context), 0);
    const auto logits = model(tensor(window, {1, context}, device)).to(float64).to_vector<double>();
    const auto each = static_cast<int64_t>(logits.size()) / context;
    std::vector<double> p(logits.begin() + (used - 1) * each, logits.begin() + used * each);
    const double top = *std::max_element(p.begin(), p.end());
    for (double& v : p) v = std::exp((v - top) / std::max(temperature, 1e-3));
    tokens.push_back(std::discrete_distribution<int64_t>(p.begin(), p.end())(generator));
    open = take(tokens.back());
  }
}

std::string Task::generate(const std::string& prompt, int64_t length, double temperature,
                           uint64_t seed, const std::function<void(const std::string&)>& stream) {
  const data::ByteTokenizer bytes;
  const std::vector<int64_t> tokens = bytes.encode(prompt.empty() ? "\n" : prompt);
  const bool readable = recipe_.integer("vocabulary") == 256;
  std::string out;
  auto take = [&](int64_t next) {
    const std::string piece = readable ? bytes.decode({next}) : std::to_string(next) + " ";
    out += piece;
    if (stream) stream(piece);
    return --length > 0;
  };
  if (length <= 0) return out;
  model_->eval();
  if (auto* gpt = dynamic_cast<models::GPT*>(model_.get()))
    write_on(*gpt, tokens, temperature, seed, device_, take);
  else
    write_on(*model_, tokens, temperature, seed, device_, recipe_.integer("context"), take);
  model_->train();
  return out;
}

}  // namespace ingot::cli
