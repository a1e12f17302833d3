#include "sweep.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <numeric>

#include "cli.h"
#include "files.h"
#include "report.h"

namespace ingot::cli {
namespace fs = std::filesystem;
using nlohmann::json;

// ---- The settings to try

static const Setting& setting_of(const std::string& key) {
  for (const Setting& s : settings())
    if (key == s.key) return s;
  Recipe::from_json(json::object(), "--set").set(key + "=");  // throws, with the nearest name
  throw Failure(kUsage, "there is no setting \"" + key + "\"");
}

static json value_of(const Setting& s, const std::string& text) {
  const json v = json::parse(text, nullptr, false);
  return s.standard.is_string() || v.is_discarded() ? json(text) : v;
}

// Three digits are enough and are easier to read and to type.
static double rounded(double v) {
  if (v == 0) return 0;
  const double unit = std::pow(10, std::floor(std::log10(std::abs(v))) - 2);
  return std::stod(format("%.10g", std::round(v / unit) * unit));
}

json Choice::at(double u) const {
  if (is_list())
    return list[std::min(list.size() - 1,
                         static_cast<size_t>(u * static_cast<double>(list.size())))];
  if (whole) {
    const double v = log ? std::exp(std::log(low) + u * (std::log(high + 1) - std::log(low)))
                         : low + u * (high - low + 1);
    return static_cast<int64_t>(std::min(std::floor(v), high));
  }
  return rounded(log ? std::exp(std::log(low) + u * (std::log(high) - std::log(low)))
                     : low + u * (high - low));
}

Choice Choice::parse(const std::string& assignment) {
  const size_t eq = assignment.find('=');
  if (eq == std::string::npos || eq == 0)
    throw Failure(kUsage, "--set takes key=values, not \"" + assignment + "\"",
                  "For example: --set lr=1e-4..1e-2:log --set width=128,256.");
  Choice c;
  const std::string key = assignment.substr(0, eq);
  std::string text = assignment.substr(eq + 1);
  const Setting& s = setting_of(key);
  const size_t dots = text.find("..");
  if (dots != std::string::npos && !s.standard.is_string()) {
    const size_t colon = text.find(':');
    const std::string scale = colon == std::string::npos ? "" : text.substr(colon + 1);
    text = text.substr(0, colon);
    char *end1 = nullptr, *end2 = nullptr;
    const std::string from = text.substr(0, dots), to = text.substr(dots + 2);
    c.low = std::strtod(from.c_str(), &end1), c.high = std::strtod(to.c_str(), &end2);
    c.log = scale == "log", c.whole = s.standard.is_number_integer();
    if (from.empty() || to.empty() || *end1 || *end2 || !(c.low < c.high) ||
        (!scale.empty() && !c.log) || (c.log && c.low <= 0))
      throw Failure(
          kUsage, "\"" + assignment + "\" is not a range",
          "Write the lower end first: --set lr=1e-4..1e-2:log (\":log\" needs ends above 0).");
    c.key = key;
  } else if (text.find(',') != std::string::npos) {
    for (size_t at = 0; at <= text.size();) {
      const size_t comma = std::min(text.find(',', at), text.size());
      c.list.push_back(value_of(s, text.substr(at, comma - at)));
      at = comma + 1;
    }
    c.key = key;
  }
  return c;
}

namespace {

// All combinations of lists; otherwise points that fill the space evenly however many of them are
// taken (Halton's).
class Space {
 public:
  Space(std::vector<Choice> choices, int64_t seed) : choices_(std::move(choices)), seed_(seed) {
    for (const Choice& c : choices_)
      grid_ = grid_ && c.is_list(),
      combinations_ *= c.is_list() ? static_cast<int64_t>(c.list.size()) : 1;
  }
  int64_t standard_trials() const { return grid_ ? combinations_ : 16; }
  int64_t most_trials() const { return grid_ ? combinations_ : 100000; }

  std::map<std::string, json> trial(int64_t number, int64_t of) const {
    std::map<std::string, json> values;
    if (grid_) {
      int64_t rest = spread(number, of);
      for (const Choice& c : choices_) {
        const auto n = static_cast<int64_t>(c.list.size());
        values[c.key] = c.list[static_cast<size_t>(rest % n)];
        rest /= n;
      }
      return values;
    }
    for (size_t i = 0; i < choices_.size(); ++i) {
      const double u = halton(number + 1, i) +
                       static_cast<double>(seed_ - 1) * 0.618034 * static_cast<double>(i + 1);
      values[choices_[i].key] = choices_[i].at(u - std::floor(u));
    }
    return values;
  }

 private:
  static double halton(int64_t n, size_t dim) {
    static const int64_t primes[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
    const int64_t base = primes[dim % 12];
    double u = 0, part = 1;
    for (; n > 0; n /= base)
      part /= static_cast<double>(base), u += part * static_cast<double>(n % base);
    return u;
  }
  // A subset of all combinations should not be just its first corner.
  int64_t spread(int64_t number, int64_t of) const {
    if (of >= combinations_) return number;
    int64_t stride =
        std::max<int64_t>(1, static_cast<int64_t>(0.618 * static_cast<double>(combinations_)));
    while (std::gcd(stride, combinations_) != 1) ++stride;
    return number * stride % combinations_;
  }
  std::vector<Choice> choices_;
  int64_t seed_, combinations_ = 1;
  bool grid_ = true;
};

// ---- The state of a sweep, kept in its folder

json to_json(const Trial& t) {
  return {{"number", t.number},   {"values", t.values}, {"state", t.state},
          {"why", t.why},         {"loss", t.loss},     {"accuracy", t.accuracy},
          {"seconds", t.seconds}, {"part", t.part},     {"tenths", t.tenths}};
}

Trial trial_from(const json& j) {
  Trial t;
  t.number = j.at("number"), t.values = j.at("values").get<std::map<std::string, json>>(),
  t.state = j.at("state"), t.why = j.at("why");
  t.loss = j.at("loss"), t.accuracy = j.at("accuracy"), t.seconds = j.at("seconds"),
  t.part = j.at("part");
  t.tenths = j.at("tenths").get<std::vector<double>>();
  return t;
}

class Sweep {
 public:
  explicit Sweep(const SweepArgs& args);
  int run();

 private:
  void load();
  void save() const;
  void run_trial(Trial& t);
  bool hopeless(const Trial& t) const;
  bool watch(Trial& t, int64_t step, int64_t total, const Tensor& loss);
  std::string folder(const Trial& t) const { return out_ + "/" + trial_folder(t); }
  std::string best_command() const;
  std::string values_text(const Trial& t) const;
  void finish() const;

  SweepArgs args_;
  TrainArgs base_;
  std::unique_ptr<FolderLock> lock_;
  std::vector<Choice> choices_;
  std::string name_, out_;
  json about_;
  bool by_accuracy_ = true, may_stop_ = true;
  std::vector<Trial> trials_;
  std::vector<Tensor> losses_;  // of the current tenth
};

Sweep::Sweep(const SweepArgs& args) : args_(args), base_(args.recipe) {
  base_.sets.clear();
  for (const std::string& s : args.recipe.sets) {
    Choice c = Choice::parse(s);
    if (c.key.empty())
      base_.sets.push_back(s);
    else
      choices_.push_back(std::move(c));
  }
  if (choices_.empty())
    throw Failure(kUsage, "there is nothing to try: no --set names several values",
                  "For example: --set lr=1e-4..1e-2:log --set width=128,256.");
  const Recipe recipe = effective_recipe(base_);
  device_of(recipe);
  name_ = recipe.name();
  out_ = base_.out.empty() ? "out/sweep-" + name_ : base_.out;
  by_accuracy_ = recipe.text("task") != "text";
  const Space space(choices_, args.seed);
  const int64_t n =
      std::min(space.most_trials(), args.trials > 0 ? args.trials : space.standard_trials());
  for (int64_t i = 0; i < n; ++i) {
    Trial t;
    t.number = i + 1, t.values = space.trial(i, n);
    for (const auto& [key, value] : t.values) {
      // Losses of different kinds cannot be compared during training.
      if (key == "label_smoothing" || key == "context" || key == "tokens" || key == "vocabulary")
        may_stop_ = false;
      Recipe(recipe).set(key, value);
    }
    trials_.push_back(t);
  }
  may_stop_ = may_stop_ && !args.no_stop;
  about_ = as_kept({{"recipe", recipe.values()}, {"sets", args.recipe.sets}, {"seed", args.seed}});
  std::error_code e;
  fs::create_directories(out_, e);
  if (e)
    throw Failure(kNotWritten, "the folder " + out_ + " cannot be made: " + e.message(),
                  "Name another with --out.");
  lock_ = std::make_unique<FolderLock>(out_);
  for (const char* part : {"/run.json", "/recipe.json", "/model.safetensors", "/checkpoints"})
    if (kind_of(out_ + part) != PathKind::None)
      throw Failure(kConflict, out_ + " holds a run of ingot train, not a sweep",
                    "Name another folder with --out.");
  load();
  lock_->sign();
}

void Sweep::load() {
  const std::string file = out_ + "/sweep.json";
  const auto text = read_file(file, size_t{1} << 30);
  if (!text) return;
  const json j = json::parse(*text, nullptr, false);
  if (j.is_object() && j.contains("about") && j.at("about") != about_)
    throw Failure(kUsage, out_ + " holds another sweep",
                  "Name another folder with --out, or delete this one.");
  size_t kept = 0;
  try {
    for (const json& t : j.at("trials")) {
      const Trial old = trial_from(t);
      // More trials than before may be requested; a partial grid is then a different one.
      for (Trial& now : trials_)
        if (now.number == old.number && now.values == old.values) now = old, kept += old.ended();
    }
  } catch (const json::exception&) {
    throw Failure(kDamaged, file + " is damaged", "Delete the folder, or name another with --out.");
  }
  if (kept && !args_.json) std::cout << kept << " trials are done already\n";
}

void Sweep::save() const {
  json list = json::array();
  for (const Trial& t : trials_)
    if (t.ended() || !t.tenths.empty()) list.push_back(to_json(t));
  write_file(out_ + "/sweep.json", json_text({{"about", about_}, {"trials", list}}, 1) + "\n");
}

// Worse than the median of the others at the same point, by more than its recent progress could
// make up for in the time left.
bool Sweep::hopeless(const Trial& t) const {
  const size_t k = t.tenths.size();
  if (k < 2 || k >= 10) return false;
  std::vector<double> others;
  for (const Trial& o : trials_)
    if (o.number != t.number && o.tenths.size() >= k) others.push_back(o.tenths[k - 1]);
  if (others.size() < 3) return false;
  std::nth_element(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2),
                   others.end());
  const double middle = others[others.size() / 2], now_at = t.tenths.back();
  return now_at > middle && now_at - (t.tenths[k - 2] - now_at) > middle;
}

bool Sweep::watch(Trial& t, int64_t step, int64_t total, const Tensor& loss) {
  losses_.push_back(loss.detach());
  if (step * 10 / total == (step - 1) * 10 / total) return true;
  double sum = 0;
  for (const Tensor& l : losses_) sum += l.item();
  const double mean = sum / static_cast<double>(losses_.size());
  losses_.clear();
  // Few steps reach several tenths at once.
  while (static_cast<int64_t>(t.tenths.size()) < step * 10 / total)
    t.tenths.push_back(std::isfinite(mean) ? mean : 1e30);
  save();
  if (!std::isfinite(mean)) throw Failure(kFailed, "the loss is not finite");
  return !(may_stop_ && hopeless(t));
}

std::string Sweep::values_text(const Trial& t) const {
  std::string s;
  for (const Choice& c : choices_) {
    s += (s.empty() ? "" : " ") + c.key + "=" + value_text(t.values.at(c.key));
  }
  return s;
}

void Sweep::run_trial(Trial& t) {
  TrainArgs a = base_;
  a.out = folder(t);
  a.silent = true, a.resume = true, a.fresh = false;
  if (!args_.json)
    a.label = format("trial %lld/%zu", static_cast<long long>(t.number), trials_.size());
  for (const auto& [key, value] : t.values) a.sets.push_back(key + "=" + value_text(value));
  // Separate options (--lr) must not override the settings that are tried.
  if (t.values.count("lr")) a.lr = 0;
  if (t.values.count("batch")) a.batch = 0;
  if (t.values.count("epochs")) a.epochs = 0;
  losses_.clear();
  try {
    const TrainResult r = train(a, [&](int64_t step, int64_t total, const Tensor& loss) {
      return watch(t, step, total, loss);
    });
    t.loss = r.last.loss, t.accuracy = r.last.accuracy, t.seconds = r.seconds;
    t.part = static_cast<double>(r.steps) / static_cast<double>(r.total);
    t.state = r.stopped ? "stopped" : "done";
  } catch (const Failure& e) {
    if (e.code() != kFailed && e.code() != kNoRoom) throw;
    t.state = "failed", t.why = e.what();
  }
  save();
  // Only now that its result is saved.
  std::error_code ignored;
  fs::remove_all(a.out + "/checkpoints", ignored);
}

int Sweep::run() {
  if (!args_.json)
    std::cout << format("%s: %zu trials in %s; stop it at any time, the same command resumes it\n",
                        name_.c_str(), trials_.size(), out_.c_str())
              << std::flush;
  for (Trial& t : trials_) {
    if (t.ended()) continue;
    if (!is_folder(folder(t) + "/checkpoints")) t.tenths.clear();
    run_trial(t);
    if (args_.json) continue;
    std::cout << format("trial %lld/%zu  %s  ", static_cast<long long>(t.number), trials_.size(),
                        printable(values_text(t)).c_str());
    if (t.state == "failed")
      std::cout << printable(t.why);
    else
      std::cout << format("test loss %.4f  %s %.2f %%  (%s)%s", t.loss,
                          by_accuracy_ ? "accuracy" : "next-token accuracy", 100 * t.accuracy,
                          time_text(t.seconds).c_str(),
                          t.state == "stopped"
                              ? format("  stopped at %.0f %%: hopeless", 100 * t.part).c_str()
                              : "");
    std::cout << "\n" << std::flush;
  }
  finish();
  return kOk;
}

void Sweep::finish() const {
  const auto order = ranked(trials_, by_accuracy_);
  const bool any = !order.empty() && order[0]->state == "done";
  write_file(out_ + "/sweep.html",
             sweep_page(name_, choices_, trials_, by_accuracy_, any ? best_command() : ""));
  if (args_.json) {
    json list = json::array();
    for (const Trial* t : order) list.push_back(to_json(*t));
    std::cout << json_text(list, 1) << "\n";
    return;
  }
  std::vector<std::string> header{"rank", "trial"};
  for (const Choice& c : choices_) header.push_back(c.key);
  for (const char* h :
       {"test loss", by_accuracy_ ? "accuracy" : "next-token accuracy", "time", "state"})
    header.emplace_back(h);
  Table table(header);
  for (size_t i = 0; i < order.size(); ++i) {
    const Trial& t = *order[i];
    std::vector<std::string> row{std::to_string(i + 1), std::to_string(t.number)};
    for (const Choice& c : choices_) row.push_back(value_text(t.values.at(c.key)));
    const bool failed = t.state == "failed";
    row.push_back(failed ? "" : format("%.4f", t.loss));
    row.push_back(failed ? "" : format("%.2f %%", 100 * t.accuracy));
    row.push_back(failed ? "" : time_text(t.seconds));
    row.push_back(t.state == "stopped"  ? format("stopped at %.0f %%", 100 * t.part)
                  : t.state == "failed" ? "failed: " + t.why
                                        : t.state);
    table.row(row);
  }
  std::cout << "\n" << table.text();
  if (!any) throw Failure(kFailed, "no trial finished", "Try lower rates or smaller batches.");
  std::cout << "\nbest: " << printable(best_command()) << "\n  " << folder(*order[0])
            << "/model.safetensors   its network\n  " << out_ << "/sweep.html   the charts\n";
}

std::string Sweep::best_command() const {
  const Trial& first = *ranked(trials_, by_accuracy_).front();
  std::string best = "ingot train " + shell_word(args_.recipe.recipe);
  for (const std::string& s : base_.sets) best += " --set " + shell_word(s);
  for (const Choice& c : choices_)
    best += " --set " + shell_word(c.key + "=" + value_text(first.values.at(c.key)));
  if (base_.epochs > 0) best += format(" --epochs %lld", static_cast<long long>(base_.epochs));
  if (base_.batch > 0) best += format(" --batch %lld", static_cast<long long>(base_.batch));
  return best;
}

}  // namespace

std::vector<const Trial*> ranked(const std::vector<Trial>& trials, bool by_accuracy) {
  std::vector<const Trial*> order;
  for (const Trial& t : trials)
    if (t.ended()) order.push_back(&t);
  auto rank = [&](const Trial* t) {
    const int group = t->state == "done" ? 0 : t->state == "stopped" ? 1 : 2;
    return std::tuple(group, group == 1 ? -t->part : 0, by_accuracy ? -t->accuracy : 0, t->loss);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const Trial* a, const Trial* b) { return rank(a) < rank(b); });
  return order;
}

std::string trial_folder(const Trial& trial) {
  return format("trial-%03lld", static_cast<long long>(trial.number));
}

std::string value_text(const json& value) {
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

int run_sweep(const SweepArgs& args) { return Sweep(args).run(); }

}  // namespace ingot::cli
