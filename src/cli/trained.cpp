// A trained network, read back from what `ingot train` wrote.
#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli.h"
#include "train.h"

namespace ingot::cli {
namespace fs = std::filesystem;
using nlohmann::json;

// What is wrong with a trained network's file.
static Failure unreadable(const std::string& file) {
  const std::string checkpoints = (fs::path(file).parent_path() / "checkpoints").string();
  if (!fs::is_directory(checkpoints))
    return {kDamaged, file + " is not a network of ingot train, or it is damaged",
            "Name a run's folder (out/fashion) or its model.safetensors."};
  return {
      kDamaged, file + " is damaged",
      "The checkpoints in " + checkpoints + " are untouched: ingot train RECIPE --resume writes it again."};
}

// A file says how large its network is: sizes that its own tensors could not fill are not built.
static bool plausible(const Recipe& recipe, const json& card, const io::SafeTensors& weights) {
  double elements = 1;
  for (const auto& e : weights.entries()) elements += static_cast<double>(e.shape.numel());
  const auto tensors = static_cast<int64_t>(weights.entries().size());
  bool fits = recipe.integer("layers") <= tensors;
  for (const char* key : {"width", "vocabulary", "heads"})
    fits = fits && static_cast<double>(recipe.integer(key)) <= std::max(elements, 256.0);
  for (const char* key : {"channels", "side", "count"}) {
    const double v = card.at(key).get<double>();
    fits = fits && v >= 1 && v <= std::max(elements, 4096.0);
  }
  const auto& classes = card.at("classes");
  fits = fits && classes.is_array() && static_cast<double>(classes.size()) <= card.at("count").get<double>();
  for (const auto& c : classes) fits = fits && c.is_string();
  if (recipe.text("task") == "text") fits = fits && recipe.integer("context") <= (int64_t{1} << 24);
  return fits;
}

Trained load_trained(const std::string& run, const std::string& device, bool with_data) {
  const std::string file = fs::is_directory(run) ? run + "/model.safetensors" : run;
  if (!fs::exists(file))
    throw Failure(
        kNoData, "there is no trained network in " + run,
        fs::exists("out/" + run + "/model.safetensors")
            ? "Did you mean out/" + run + "?"
            : "Train one first: ingot train RECIPE --out " + run + " (`ingot recipes` lists them).");
  Recipe recipe;
  json card;
  StateDict state;
  try {
    const io::SafeTensors weights(file);
    const auto& m = weights.metadata();
    if (!m.count("ingot.recipe"))
      throw Failure(kDamaged, file + " was not written by ingot train",
                    "Use it with: ingot train RECIPE --from " + file + ".");
    recipe = Recipe::from_json(json::parse(m.at("ingot.recipe")), m.at("ingot.name"));
    card = json::parse(m.at("ingot.card"));
    if (recipe.text("task") == "images" && recipe.integer("image_size") == 0)
      recipe.set("image_size", card.at("side"));
    if (!plausible(recipe, card, weights)) throw unreadable(file);
    for (const auto& e : weights.entries()) state.tensors.emplace_back(e.name, weights.get(e.name));
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::Io && e.kind() != ErrorKind::Value)
      throw;  // Value: metadata that is not there
    throw unreadable(file);
  } catch (const json::exception&) {
    throw unreadable(file);
  } catch (const Failure& e) {
    // Settings that no recipe has: of a damaged file, not of the command line.
    if (e.code() != kUsage) throw;
    throw unreadable(file);
  }
  recipe.set("device", device.empty() ? "auto" : device);
  Trained t{std::make_unique<Task>(recipe, device_of(recipe), with_data), file};
  if (!with_data)
    t.task->set_ends({card.at("channels"), card.at("side"), card.at("count")}, card.at("classes"));
  try {
    t.task->model().load_state_dict(state);
  } catch (const Error&) {
    throw unreadable(file);
  }
  return t;
}

}  // namespace ingot::cli
