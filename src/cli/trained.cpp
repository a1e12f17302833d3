// A trained network, read back from what `ingot train` wrote.
#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli.h"
#include "files.h"
#include "train.h"

namespace ingot::cli {
namespace fs = std::filesystem;
using nlohmann::json;

// What is wrong with a trained network's file.
static Failure unreadable(const std::string& file) {
  const std::string checkpoints = (fs::path(file).parent_path() / "checkpoints").string();
  if (!is_folder(checkpoints))
    return {kDamaged, file + " is not a network of ingot train, or it is damaged",
            "Name a run's folder (out/fashion) or its model.safetensors."};
  return {kDamaged, file + " is damaged",
          "The checkpoints in " + checkpoints +
              " are untouched: ingot train RECIPE --resume writes it again."};
}

// Runs f, whose errors can only come from the file.
template <class F>
static auto read(const std::string& file, F&& f) {
  try {
    return f();
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::OutOfMemory) throw;
    if (e.kind() == ErrorKind::Unsupported) throw Failure(kDamaged, e.reason(), e.fix());
    throw unreadable(file);
  } catch (const json::exception&) {
    throw unreadable(file);
  } catch (const Failure& e) {
    // Unknown settings and impossible sizes come from a damaged file, not from the command line.
    if (e.code() != kUsage) throw;
    throw unreadable(file);
  }
}

struct Network {
  Recipe recipe;
  json card;
  StateDict state;
};

// The file states its network's size: sizes that its own tensors could not fill are not built.
static bool plausible(const Network& n, const io::SafeTensors& weights) {
  const Recipe& recipe = n.recipe;
  double elements = 0;  // at most
  for (const auto& e : weights.entries()) elements += static_cast<double>(e.end - e.begin);
  const auto tensors = static_cast<int64_t>(weights.entries().size());
  bool fits = recipe.integer("layers") <= tensors;
  for (const char* key : {"width", "vocabulary", "heads"})
    fits = fits && static_cast<double>(recipe.integer(key)) <= std::max(elements, 256.0);
  for (const char* key : {"channels", "side", "count"}) {
    const double v = n.card.at(key).get<double>();
    fits = fits && v >= 1 && v <= std::max(elements, 4096.0);
  }
  const auto& classes = n.card.at("classes");
  fits = fits && classes.is_array() &&
         static_cast<double>(classes.size()) <= n.card.at("count").get<double>();
  for (const auto& c : classes) fits = fits && c.is_string();
  if (recipe.text("task") == "text") fits = fits && recipe.integer("context") <= (int64_t{1} << 24);
  return fits;
}

static Network read_network(const std::string& file) {
  const io::SafeTensors weights(file);
  const auto& m = weights.metadata();
  if (!m.count("ingot.recipe"))
    throw Failure(kDamaged, file + " was not written by ingot train",
                  "Use it with: ingot train RECIPE --from " + file + ".");
  Network n;
  n.recipe = Recipe::from_json(json::parse(m.at("ingot.recipe")), m.at("ingot.name"));
  n.card = json::parse(m.at("ingot.card"));
  if (n.recipe.text("task") == "images" && n.recipe.integer("image_size") == 0)
    n.recipe.set("image_size", n.card.at("side"));
  if (!plausible(n, weights)) throw unreadable(file);
  for (const auto& e : weights.entries()) n.state.tensors.emplace_back(e.name, weights.get(e.name));
  return n;
}

static std::unique_ptr<Task> task_of(const Network& n, const Device& device) {
  const ModelShape shape{n.card.at("channels"), n.card.at("side"), n.card.at("count")};
  return std::make_unique<Task>(n.recipe, device, shape,
                                n.card.at("classes").get<std::vector<std::string>>());
}

Trained load_trained(const std::string& run, const std::string& device, bool with_data) {
  const std::string file = is_folder(run) ? run + "/model.safetensors" : run;
  if (kind_of(file) == PathKind::None)
    throw Failure(kNoData, "there is no trained network in " + run,
                  is_file("out/" + run + "/model.safetensors")
                      ? "Did you mean out/" + run + "?"
                      : "Train one first: ingot train RECIPE --out " + run +
                            " (`ingot recipes` lists them).");
  Network n = read(file, [&] { return read_network(file); });
  n.recipe.set("device", device.empty() ? "auto" : device);
  const Device where = device_of(n.recipe);
  Trained t{with_data ? std::make_unique<Task>(n.recipe, where)
                      : read(file, [&] { return task_of(n, where); }),
            file};
  read(file, [&] { t.task->model().load_state_dict(n.state); });
  return t;
}

}  // namespace ingot::cli
