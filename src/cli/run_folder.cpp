#include "run_folder.h"

#include <algorithm>
#include <filesystem>

#include <ingot/ingot.h>

#include "cli.h"

namespace ingot::cli {
namespace fs = std::filesystem;
using nlohmann::json;

// Where the data of a recipe is: data/NAME for the data sets Ingot knows by name.
static std::string data_path(const Recipe& recipe) {
  const std::string data = recipe.text("data");
  return data == "fashion-mnist" || data == "mnist" || data == "cifar10" ? "data/" + data : data;
}

json identity_of(const Recipe& recipe, const TrainArgs& args) {
  json settings_now = json::object();
  for (const Setting& s : settings()) {
    const std::string key = s.key;
    // These affect where and how fast it is computed and what the report shows, not the result.
    if (key == "device" || key == "workers" || key == "prompt") continue;
    if (s.standard.is_string())
      settings_now[key] = recipe.text(key);
    else if (s.standard.is_number_float())
      settings_now[key] = recipe.number(key);
    else
      settings_now[key] = recipe.integer(key);
  }
  return as_kept(
      {{"settings", settings_now},
       {"data", fingerprint(data_path(recipe))},
       {"options", {{"--from", args.from}, {"--freeze", args.freeze}, {"--lora", args.lora}}}});
}

static std::vector<std::string> checkpoints_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code e;
  for (fs::directory_iterator i(folder + "/checkpoints", e), end; !e && i != end; i.increment(e)) {
    const std::string name = i->path().filename().string();
    if (name.starts_with("ckpt-") && name.ends_with(".safetensors"))
      files.push_back(i->path().string());
  }
  if (e && e != std::errc::no_such_file_or_directory)
    throw Failure(kDamaged, folder + "/checkpoints cannot be read: " + e.message(),
                  "Restore its owner (chown), or name another folder with --out.");
  std::sort(files.begin(), files.end());
  return files;
}

// "of step 600", or "" when the file does not say.
static std::string step_of(const std::string& file) {
  try {
    const io::SafeTensors t(file);
    const auto step = t.metadata().find("schedule/last_epoch");
    if (step != t.metadata().end()) return " of step " + printable(step->second);
  } catch (const Error&) {  // damaged; resuming reports it
  }
  return {};
}

// Null where there is no such file, discarded where it cannot be read.
static json read_json(const std::string& file) {
  try {
    const auto text = read_file(file, size_t{16} << 20);
    return text ? json::parse(*text, nullptr, false, true) : json();
  } catch (const Failure&) {  // a pipe, a folder
    return json::value_t::discarded;
  }
}

static std::string shown(const json& v) {
  return v.is_string() ? v.get<std::string>() : json_text(v);
}

// "lr 0.01 -> 0.02, the data's content": what is not the same.
static std::string difference(const json& before, const json& now) {
  std::vector<std::string> changes;
  auto section = [&](const char* name) {
    for (const auto& [key, value] : now.at(name).items()) {
      const json old =
          before.contains(name) && before.at(name).is_object() && before.at(name).contains(key)
              ? before.at(name).at(key)
              : json();
      // A run of an older version may lack some entries.
      if (!old.is_null() && old != value)
        changes.push_back(key + " " + (shown(old).empty() ? "(none)" : shown(old)) + " -> " +
                          (shown(value).empty() ? "(none)" : shown(value)));
    }
  };
  section("settings");
  section("options");
  if (changes.empty() && before.contains("data") && before.at("data") != now.at("data"))
    changes.emplace_back("the content of the data");
  std::string list;
  for (const std::string& c : changes) list += (list.empty() ? "" : ", ") + c;
  return list;
}

RunFolder::RunFolder(const std::string& path, const json& now, const TrainArgs& args)
    : path_(path), now_(now) {
  std::error_code e;
  fs::create_directories(path_, e);
  if (e)
    throw Failure(kNotWritten, "the folder " + path_ + " cannot be made: " + e.message(),
                  "Name another with --out.");
  lock_ = std::make_unique<FolderLock>(path_);
  if (kind_of(path_ + "/sweep.json") != PathKind::None)
    throw Failure(kConflict, path_ + " holds a sweep, not a run",
                  "Name another folder with --out.");
  if (args.fresh)
    move_aside();
  else if (!args.resume)
    refuse_overwriting();
  else if (!checkpoints_in(path_).empty())
    compare(args.accept_changes);
  else if (kind_of(path_ + "/model.safetensors") != PathKind::None)
    throw Failure(kConflict, path_ + " holds a trained network but no checkpoint to resume from",
                  "--fresh starts over and keeps the old run aside; --from " + path_ +
                      " --out FOLDER starts from its weights.");
  else if (!difference(known(), now_).empty())
    move_aside();
  // A run that left nothing but its log is kept too.
  if (!args.resume && !args.fresh) move_aside();
  lock_->sign();
}

void RunFolder::refuse_overwriting() const {
  const auto files = checkpoints_in(path_);
  const std::string ways =
      "--resume continues, --fresh starts over and keeps the old run aside, --out names another "
      "folder.";
  if (!files.empty())
    throw Failure(kConflict, "there are checkpoints" + step_of(files.back()) + " in " + path_,
                  ways);
  if (kind_of(path_ + "/model.safetensors") != PathKind::None)
    throw Failure(kConflict, "there is a trained network in " + path_,
                  "--fresh starts over and keeps the old run aside, --out names another folder.");
}

void RunFolder::move_aside() {
  std::vector<fs::path> parts;
  std::error_code e;
  for (fs::directory_iterator i(path_, e), end; !e && i != end; i.increment(e)) {
    const std::string name = i->path().filename().string();
    for (const char* ours : {"checkpoints", "metrics.jsonl", "recipe.json", "run.json",
                             "model.safetensors", "report.html", "samples", "plane.png"})
      if (name == ours) parts.push_back(i->path());
    if (name.starts_with("events.out.tfevents.")) parts.push_back(i->path());
  }
  if (e)
    throw Failure(kNotWritten, "the folder " + path_ + " cannot be read: " + e.message(),
                  "Name another with --out.");
  if (parts.empty()) return;
  std::string aside;
  for (int n = 1;; ++n) {
    aside = path_ + "/old-" + std::to_string(n);
    if (fs::create_directory(aside, e)) break;  // false where one is there
    if (e)
      throw Failure(kNotWritten, "the old run cannot be kept in " + aside + ": " + e.message(),
                    "Name another folder with --out.");
  }
  for (const fs::path& p : parts) {
    fs::rename(p, fs::path(aside) / p.filename(), e);
    if (e)
      throw Failure(kNotWritten, p.string() + " cannot be moved to " + aside + ": " + e.message(),
                    "Name another folder with --out.");
  }
  messages_.push_back("the run that was in " + path_ + " is now in " + aside);
}

// The settings the run in the folder was started with, as far as they are recorded: run.json, or
// the settings alone by recipe.json.
json RunFolder::known() const {
  const json whole = read_json(path_ + "/run.json"), recipe = read_json(path_ + "/recipe.json");
  const auto has = [&](const char* name) {
    return whole.contains(name) && whole.at(name).is_object() && !whole.at(name).empty();
  };
  if (whole.is_object() && has("settings")) return whole;
  json part = json::object();
  if (recipe.is_object()) try {
      part["settings"] = identity_of(Recipe::from_json(recipe, "recipe.json"), {}).at("settings");
    } catch (const Failure&) {  // of another program
    }
  return part;
}

void RunFolder::compare(bool accept) {
  const json before = known();
  if (before.empty()) {
    const std::string what = path_ + " does not record the settings of its run";
    if (!accept)
      throw Failure(kConflict, what + ": run.json and recipe.json are missing or damaged",
                    "--accept-changes continues with the settings given now, --fresh starts over.");
    messages_.push_back(what + ": they are not compared");
    return;
  }
  const std::string changes = difference(before, now_);
  const bool same_data = before.contains("data") || now_.at("data") == "";
  if (changes.empty() && same_data) return;
  if (changes.empty()) {
    const std::string what =
        path_ + "/run.json is missing or damaged: whether the data is that of the run is not known";
    if (!accept)
      throw Failure(kConflict, what,
                    "--accept-changes continues with the data there is, --fresh starts over.");
    messages_.push_back(what);
    return;
  }
  if (!accept)
    throw Failure(
        kConflict,
        "the checkpoints in " + path_ + " are of a run with other settings: " + printable(changes),
        "Continue that run with ingot train " + shell_word(path_ + "/recipe.json") +
            " --resume --out " + shell_word(path_) +
            "; --accept-changes continues with the new settings, --fresh starts over.");
  messages_.push_back("continues with changes: " + printable(changes));
}

void RunFolder::write_down(const Recipe& recipe) const {
  write_file(path_ + "/recipe.json", json_text(recipe.values(), 2) + "\n");
  write_file(path_ + "/run.json", json_text(now_, 1) + "\n");
}

}  // namespace ingot::cli
