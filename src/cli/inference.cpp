#include "inference.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>

#include "cli.h"
#include "files.h"
#include "train.h"

namespace ingot::cli {
namespace fs = std::filesystem;
using nlohmann::json;

int run_eval(const EvalArgs& args) {
  Trained t = load_trained(args.run, args.device, true);
  const Evaluation e = t.task->evaluate();
  if (args.json)
    std::cout << json_text({{"loss", e.loss}, {"accuracy", e.accuracy}, {"confusion", e.confusion}})
              << "\n";
  else
    std::cout << format("test loss %.4f  %s %.2f %%\n", e.loss,
                        t.task->is_text() ? "next-token accuracy" : "accuracy", 100 * e.accuracy);
  return kOk;
}

// Grey or colour as the network expects, cropped to its square.
static Tensor read_image(Task& task, const std::string& file) {
  const int side = static_cast<int>(task.model_shape().side);
  const Tensor image = data::load_image(file, static_cast<int>(task.model_shape().channels));
  return data::Transforms{data::Resize(side), data::CenterCrop(side)}(image);
}

static bool is_image(const fs::path& p) {
  const std::string e = p.extension().string();
  return e == ".png" || e == ".jpg" || e == ".jpeg" || e == ".PNG" || e == ".JPG";
}

static std::vector<std::string> images_in(const std::vector<std::string>& inputs) {
  std::vector<std::string> files;
  for (const std::string& i : inputs) {
    const PathKind kind = kind_of(i);
    if (kind == PathKind::Folder) {
      std::vector<std::string> found;
      std::error_code e;
      for (fs::recursive_directory_iterator f(i, e), end; !e && f != end; f.increment(e)) {
        std::error_code ignored;
        if (is_image(f->path()) && f->is_regular_file(ignored)) found.push_back(f->path().string());
      }
      if (e) throw Failure(kNoData, i + " cannot be read: " + e.message(), "Name another folder.");
      std::sort(found.begin(), found.end());
      if (found.empty())
        throw Failure(kNoData, "there are no images (PNG, JPEG) in " + i,
                      "Name another folder or a file.");
      files.insert(files.end(), found.begin(), found.end());
    } else if (kind != PathKind::None) {
      files.push_back(i);
    } else {
      throw Failure(kNoData, "there is no file " + i, "Name an image or a folder of images.");
    }
  }
  return files;
}

// A network may generate anything: on a terminal, control characters are shown, not obeyed.
static std::string written(const std::string& text) {
  if (!on_terminal()) return text;
  std::string s;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    s += (byte < 32 && c != '\n' && c != '\t') || byte == 127 ? format("\\x%02x", unsigned{byte})
                                                              : std::string(1, c);
  }
  return s;
}

int run_predict(const PredictArgs& args) {
  Trained t = load_trained(args.run, args.device, false);
  Task& task = *t.task;
  if (task.is_text()) {
    // For a text: its continuation.
    std::string prompt;
    for (const std::string& i : args.inputs) prompt += (prompt.empty() ? "" : " ") + i;
    std::cout << written(prompt + task.generate(prompt, 80, 0.5, 1)) << "\n";
    return kOk;
  }
  if (task.recipe().text("task") == "points")
    throw Failure(kUsage, "this network is for points, not for images",
                  "Its report.html shows what it learned.");
  NoGrad no_grad;
  task.model().eval();
  for (const std::string& file : images_in(args.inputs)) {
    const auto p = softmax(task.model()(read_image(task, file).unsqueeze(0).to(task.device())), -1)
                       .to_vector<float>();
    if (std::any_of(p.begin(), p.end(), [](float v) { return !std::isfinite(v); }))
      throw Failure(kFailed,
                    "the network has no prediction for " + file + ": its outputs are not finite",
                    "Its training went wrong: `ingot inspect --values " + shell_word(t.file) +
                        "` shows where; train again with a lower --lr.");
    std::vector<size_t> order(p.size());
    for (size_t i = 0; i < p.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] > p[b]; });
    order.resize(std::min(order.size(), static_cast<size_t>(std::max(1, args.top))));
    auto name = [&](size_t i) {
      return i < task.classes().size() ? task.classes()[i] : std::to_string(i);
    };
    if (args.json) {
      json list = json::array();
      for (const size_t i : order) list.push_back({{"class", name(i)}, {"probability", p[i]}});
      std::cout << json_text({{"file", file}, {"answers", list}}) << "\n";
      continue;
    }
    std::cout << printable(file) << ": ";
    for (const size_t i : order)
      std::cout << format("%s%s %.1f %%", i == order[0] ? "" : ", ", printable(name(i)).c_str(),
                          100.0 * static_cast<double>(p[i]));
    std::cout << "\n";
  }
  return kOk;
}

int run_generate(const GenerateArgs& args) {
  Trained t = load_trained(args.run, args.device, false);
  if (!t.task->is_text())
    throw Failure(kUsage,
                  args.run + " holds a network for " + t.task->recipe().text("task") +
                      ", which does not write",
                  "Train one that does: ingot train chars.");
  const std::string prompt = args.prompt.empty() ? t.task->recipe().text("prompt") : args.prompt;
  std::cout << written(prompt) << std::flush;
  t.task->generate(prompt, args.length, args.temperature, args.seed,
                   [](const std::string& piece) { std::cout << written(piece) << std::flush; });
  std::cout << "\n";
  return kOk;
}

}  // namespace ingot::cli
