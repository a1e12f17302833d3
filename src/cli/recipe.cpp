#include "recipe.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli.h"
#include "files.h"

namespace ingot::cli {
namespace fs = std::filesystem;
using nlohmann::json;

// Made by CMake from recipes/*.json: name, text, name, text, ..., null.
extern const char* const kRecipes[];

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all = {
      {"task", "images",
       "what is learned: images (classes of pictures), text (the next token), points (classes of "
       "points)"},
      {"data", "",
       "fashion-mnist, mnist, cifar10, spirals, or the path of a folder of pictures or a text"},
      {"tokens", "byte", "what a text file holds: byte, int16 (unsigned) or int32"},
      {"vocabulary", 256, "numbers of tokens there are"},
      {"image_size", 0, "pictures are cut to squares of this side; 0: as they are"},
      {"augment", "", "pictures changed at random: flip, crop-flip"},
      {"model", "cnn", "cnn, resnet, mlp (pictures, points); gpt, lstm (text)"},
      {"width", 32, "channels or features"},
      {"layers", 2, "stages, blocks or layers"},
      {"heads", 4, "attention heads (gpt)"},
      {"context", 128, "tokens seen at once (text)"},
      {"dropout", 0.0, "share of features left out while training"},
      {"epochs", 1, "passes over the data"},
      {"steps", 0, "if more than 0: as many steps instead of epochs"},
      {"batch", 64, "samples a step"},
      {"accumulate", 1,
       "a batch is worked on in so many parts, one after the other: less memory, the same result"},
      {"recompute", 0,
       "1: blocks are computed again for their gradients instead of kept (gpt, resnet, cnn): less "
       "memory, "
       "about a "
       "third more time"},
      {"lr", 0.001, "learning rate, the highest of the schedule"},
      {"optimizer", "adamw", "adamw, adam, sgd"},
      {"momentum", 0.9, "of sgd"},
      {"weight_decay", 0.01, ""},
      {"label_smoothing", 0.0, ""},
      {"schedule", "cosine", "onecycle, cosine, constant"},
      {"warmup", 0.0, "share of the steps in which the rate rises (cosine, constant)"},
      {"clip", 0.0, "the norm gradients are cut to; 0: not"},
      {"amp", "off", "off, or bf16: products in bfloat16"},
      {"seed", 1, "of initial weights, order of samples, dropout"},
      {"workers", -1, "threads that prepare batches; -1: as fits the machine"},
      {"device", "auto", "cpu, cpu:1, cuda, cuda:1, or auto: a GPU if there is one"},
      {"prompt", "", "what generated text begins with"},
  };
  return all;
}

static const Setting& find(const std::string& key, const std::string& where) {
  std::vector<std::string> keys;
  for (const Setting& s : settings()) {
    if (key == s.key) return s;
    keys.emplace_back(s.key);
  }
  const std::string near = nearest(key, keys);
  throw Failure(kUsage, where + ": there is no setting \"" + key.substr(0, 200) + "\"",
                near.empty() ? "`ingot recipes --settings` lists them."
                             : "Did you mean " + near + "? `ingot recipes --settings` lists them.");
}

// A value as messages show it: of a file, it may be as long and as deep as it likes.
static std::string shown(const json& value) {
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  const std::string text = json_text(value);
  return text.size() <= 200 ? text : text.substr(0, 200) + "...";
}

void Recipe::set(const std::string& key, const json& value) {
  const Setting& s = find(key, name_);
  const bool fits = s.standard.is_string()         ? value.is_string()
                    : s.standard.is_number_float() ? value.is_number()
                                                   : value.is_number_integer();
  if (!fits)
    throw Failure(kUsage,
                  name_ + ": " + key + " is " + shown(value) + ", but it must be " +
                      (s.standard.is_string()         ? "a text"
                       : s.standard.is_number_float() ? "a number"
                                                      : "a whole number"),
                  std::string("It says: ") + s.meaning + ".");
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    throw Failure(kUsage, name_ + ": " + key + " is " + shown(value) + ", which is too large",
                  std::string("It says: ") + s.meaning + ".");
  const double most = key == "layers"       ? 1000
                      : key == "workers"    ? 1024
                      : key == "seed"       ? 9.3e18
                      : key == "image_size" ? 1 << 20
                      : key == "width"      ? 1 << 24
                                            : 1e12;
  if (value.is_number_integer() && value.get<double>() > most)
    throw Failure(kUsage, name_ + ": " + key + " is " + shown(value) + ", which is too large",
                  format("At most %.0f: ", most) + s.meaning + ".");
  const bool may_be_negative = key == "workers",
             may_be_zero = s.standard == 0 || key == "accumulate" || s.standard.is_number_float();
  if (value.is_number() && !may_be_negative &&
      (value.get<double>() < 0 || (!may_be_zero && value.get<double>() == 0)))
    throw Failure(kUsage, name_ + ": " + key + " is " + shown(value) + ", which is too small",
                  std::string("It says: ") + s.meaning + ".");
  const bool share =
      key == "dropout" || key == "label_smoothing" || key == "warmup" || key == "momentum";
  if (share && value.get<double>() >= 1)
    throw Failure(kUsage, name_ + ": " + key + " is " + shown(value) + ", but it must be below 1",
                  "It is a share, such as 0.1.");
  values_[key] = value;
}

void Recipe::set(const std::string& assignment) {
  const size_t at = assignment.find('=');
  if (at == std::string::npos || at == 0)
    throw Failure(kUsage, "--set takes key=value, not \"" + assignment + "\"",
                  "For example: --set width=64.");
  const std::string key = assignment.substr(0, at), text = assignment.substr(at + 1);
  const Setting& s = find(key, "--set");
  json value = json::parse(text, nullptr, false);
  if (s.standard.is_string() || value.is_discarded()) value = text;
  set(key, value);
}

const json& Recipe::value(const std::string& key) const {
  if (const auto found = values_.find(key); found != values_.end()) return *found;
  return find(key, name_).standard;
}

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const char* const* p = kRecipes; *p; p += 2) names.emplace_back(p[0]);
  return names;
}

std::string recipe_text(const std::string& name) {
  for (const char* const* p = kRecipes; *p; p += 2)
    if (name == p[0]) return p[1];
  return {};
}

std::string recipe_summary(const std::string& name) {
  std::istringstream lines(recipe_text(name));
  std::string text;
  for (std::string line; std::getline(lines, line) && line.starts_with("// ");)
    text += (text.empty() ? "" : " ") + line.substr(3);
  return text;
}

Recipe Recipe::from_json(const json& values, const std::string& name) {
  Recipe r;
  r.name_ = name;
  if (!values.is_object())
    throw Failure(kUsage, name + " is not a recipe: it is not a list of settings in {}",
                  "`ingot recipes fashion` shows one.");
  for (const auto& [key, value] : values.items()) r.set(key, value);
  return r;
}

Recipe Recipe::parse(const std::string& text, const std::string& name, const std::string& file) {
  json values;
  try {
    values = json::parse(text, nullptr, true, true);
  } catch (const json::exception& e) {
    std::string why = e.what();
    if (const size_t at = why.find("parse error"); at != std::string::npos) why = why.substr(at);
    throw Failure(kUsage, file + " cannot be read: " + why,
                  "Recipes are JSON; // begins a comment.");
  }
  return from_json(values, name);
}

Recipe Recipe::load(const std::string& name_or_file, const std::vector<std::string>& others) {
  std::string text = recipe_text(name_or_file);
  const bool is_file = fs::is_regular_file(name_or_file);
  if (is_file) {
    std::ifstream in(name_or_file);
    std::stringstream s;
    s << in.rdbuf();
    text = s.str();
  }
  if (text.empty()) {
    std::vector<std::string> known = recipe_names();
    known.insert(known.end(), others.begin(), others.end());
    std::string list;
    for (const std::string& n : known) list += (list.empty() ? "" : ", ") + n;
    const std::string near = nearest(name_or_file, known);
    throw Failure(kUsage, "there is no recipe \"" + name_or_file + "\"",
                  (near.empty() ? "" : "Did you mean " + near + "? ") + "There are " + list +
                      "; a file of yours works too.");
  }
  return parse(text, is_file ? fs::path(name_or_file).stem().string() : name_or_file, name_or_file);
}

}  // namespace ingot::cli
