// A recipe: a small text file (JSON; comments with //) that says what is trained, on what and how.
// A user copies one (`ingot recipes fashion > my.json`), edits it and trains it (`ingot train
// my.json`).
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace ingot::cli {

struct Setting {
  const char* key;
  nlohmann::json standard;  ///< the default; its type is the setting's type
  const char* meaning;
};
/// Every setting there is.
const std::vector<Setting>& settings();

class Recipe {
 public:
  /// The name of a recipe that comes with Ingot, or a file. Throws Failure(kUsage): unknown name,
  /// damaged file, unknown setting. `others`: what else could have been named, for the message.
  static Recipe load(const std::string& name_or_file, const std::vector<std::string>& others = {});
  /// From text; `file` is its name in messages.
  static Recipe parse(const std::string& text, const std::string& name, const std::string& file);
  /// As stored in a run's folder or a weights file.
  static Recipe from_json(const nlohmann::json& values, const std::string& name);

  /// "lr=0.01". Throws Failure(kUsage) for an unknown key or a value of another type.
  void set(const std::string& assignment);
  void set(const std::string& key, const nlohmann::json& value);

  std::string text(const std::string& key) const { return value(key).get<std::string>(); }
  double number(const std::string& key) const { return value(key).get<double>(); }
  int64_t integer(const std::string& key) const { return value(key).get<int64_t>(); }
  bool given(const std::string& key) const { return values_.contains(key); }
  const std::string& name() const { return name_; }
  const nlohmann::json& values() const { return values_; }

 private:
  const nlohmann::json& value(const std::string& key) const;
  std::string name_;
  nlohmann::json values_ = nlohmann::json::object();
};

/// Names of the recipes that come with the program, and the text of one ("" when there is none of
/// that name).
std::vector<std::string> recipe_names();
std::string recipe_text(const std::string& name);
/// What its first comment says, on one line.
std::string recipe_summary(const std::string& name);

}  // namespace ingot::cli
