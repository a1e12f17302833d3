#include "train.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <sstream>

#include "bottleneck.h"
#include "cli.h"
#include "files.h"
#include "plan_and_explain.h"
#include "progress.h"
#include "report.h"
#include "run_folder.h"
#include "tensorboard.h"

namespace ingot::cli {
using nlohmann::json;

// ---- One run

namespace {

class Trainer {
 public:
  Trainer(const TrainArgs& args, const Watcher& watcher);
  TrainResult run();

 private:
  void prepare_weights();
  int64_t resumed(Checkpoint& checkpoint) const;
  void restore_history(int64_t step);
  void log(const Point& p, bool test);
  Tensor one_step(const data::Batch& batch);
  void one_epoch();
  void observe(double loss, double lr, bool sampled);
  void after_epoch();
  void save(Checkpoint& checkpoint, int64_t epoch);
  void finish();
  void write_network();
  void print_results() const;
  Failure not_finite() const;
  int64_t step() const { return schedule_->last_epoch(); }
  /// Passes over the data so far, as a fraction.
  double epochs_done() const { return static_cast<double>(step()) / history_.per_epoch; }

  void say(const std::string& line) const;

  TrainArgs args_;
  Watcher watcher_;
  Recipe recipe_;
  Task task_;
  std::string out_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<optim::LRScheduler> schedule_;
  int64_t epochs_, total_;
  std::unique_ptr<RunFolder> folder_;
  std::unique_ptr<Progress> progress_;
  GrowingFile metrics_;
  bool metrics_whole_ = true;
  std::unique_ptr<EventFile> events_;
  Bottleneck bound_;
  int64_t steps_here_ = 0;  // of this process
  int64_t stride_ = 1;      // the metrics have every n-th step, however fast they are
  double rate_ = 0;         // units per second
  struct Window {
    double seconds = 0;
    int64_t steps = 0;
  } window_;             // what the rate is of
  std::string unsaved_;  // why the last checkpoint could not be saved
  bool stopped_ = false;
  History history_;
};

bool matches(const std::string& pattern, const std::string& text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    for (size_t i = 0; i <= text.size(); ++i)
      if (matches(pattern.substr(1), text.substr(i))) return true;
    return false;
  }
  return !text.empty() && pattern[0] == text[0] && matches(pattern.substr(1), text.substr(1));
}

void Trainer::say(const std::string& line) const {
  if (args_.silent) return;
  std::printf("%s\n", printable(line).c_str());
  std::fflush(stdout);
}

Trainer::Trainer(const TrainArgs& args, const Watcher& watcher)
    : args_(args),
      watcher_(watcher),
      recipe_(effective_recipe(args)),
      task_(recipe_, device_of(recipe_)),
      out_(args.out.empty() ? "out/" + recipe_.name() : args.out) {
  const int64_t per_epoch = task_.train().size();
  epochs_ = recipe_.integer("epochs");
  if (__builtin_mul_overflow(epochs_, per_epoch, &total_))
    throw Failure(kUsage, count_text(epochs_) + " epochs have more steps than can be counted",
                  "Set epochs lower.");
  if (recipe_.integer("steps") > 0)
    total_ = recipe_.integer("steps"), epochs_ = (total_ - 1) / per_epoch + 1;
  history_.per_epoch = static_cast<double>(per_epoch);
  // This many points draw any curve; short runs record every step.
  stride_ = std::max<int64_t>(1, total_ / 400);
  prepare_weights();
  std::vector<Tensor> trained;
  for (const Tensor& p : task_.model().parameters())
    if (p.requires_grad()) trained.push_back(p);
  if (trained.empty())
    throw Failure(kUsage, "--freeze " + args_.freeze + " leaves nothing to train",
                  "Freeze fewer parameters.");
  optimizer_ = make_optimizer(recipe_, trained);
  schedule_ = make_schedule(recipe_, *optimizer_, total_);
}

void Trainer::prepare_weights() {
  nn::Module& model = task_.model();
  if (!args_.from.empty()) {
    const std::string file = is_folder(args_.from) ? args_.from + "/model.safetensors" : args_.from;
    if (kind_of(file) == PathKind::None)
      throw Failure(kNoData, "there are no weights in " + args_.from,
                    "--from takes a run's folder or a file (safetensors, pt, npz).");
    const io::LoadReport report = [&] {
      try {
        return io::load_weights(model, file, {.strict = false});
      } catch (const Error& e) {
        if (e.kind() == ErrorKind::Unsupported) throw Failure(kDamaged, e.reason(), e.fix());
        if (e.kind() != ErrorKind::Io) throw;
        throw Failure(kDamaged, file + " cannot be read as weights, or is damaged",
                      "--from takes a run's folder or a file (safetensors, pt, npz).");
      }
    }();
    if (report.loaded.empty())
      throw Failure(kDamaged, "no weight in " + file + " fits this network",
                    "`ingot inspect " + file + "` lists them.");
    say(format("from %s: %zu weights taken, %zu of the network unchanged", file.c_str(),
               report.loaded.size(), report.missing.size() + report.misshapen.size()));
  }
  if (args_.lora > 0)
    say(format("LoRA of rank %lld in %lld layers", static_cast<long long>(args_.lora),
               static_cast<long long>(nn::add_lora(
                   model, "*", {.r = args_.lora, .lora_alpha = static_cast<double>(args_.lora)}))));
  if (args_.freeze.empty()) return;
  size_t frozen = 0, all = 0;
  for (auto& [name, p] : model.named_parameters()) {
    ++all;
    if (!matches(args_.freeze, name) && !matches(args_.freeze + ".*", name)) continue;
    Tensor(p).requires_grad_(false);
    ++frozen;
  }
  if (!frozen)
    throw Failure(
        kUsage, "no parameter's name matches --freeze " + args_.freeze,
        "`ingot explain " + args_.recipe + "` lists the names; * * matches any characters.");
  say(format("%zu of %zu parameters are frozen", frozen, all));
}

// A field of a line of metrics; 0 when it is missing.
static double number_in(const json& line, const char* key) {
  const auto at = line.find(key);
  return at != line.end() && at->is_number() ? at->get<double>() : 0.0;
}

// After --resume: what was logged up to the resumed step stays; the rest is logged again.
void Trainer::restore_history(int64_t step) {
  const std::string file = out_ + "/metrics.jsonl";
  std::string kept;
  // Half a GiB are years of figures.
  std::istringstream lines(step > 0 ? read_file(file, size_t{1} << 29).value_or(std::string())
                                    : std::string());
  for (std::string line; std::getline(lines, line);) {
    const json j = json::parse(line, nullptr, false);
    if (!j.is_object() || number_in(j, "step") > static_cast<double>(step)) continue;
    kept += line + "\n";
    Point p{static_cast<int64_t>(number_in(j, "step")),
            number_in(j, "epoch"),
            number_in(j, "loss"),
            number_in(j, "lr"),
            number_in(j, "rate"),
            number_in(j, "memory")};
    p.test_loss = number_in(j, "test_loss"), p.test_accuracy = number_in(j, "test_accuracy"),
    p.seconds = number_in(j, "seconds");
    (j.contains("test_loss") ? history_.test : history_.train).push_back(p);
    history_.seconds = std::max(history_.seconds, p.seconds);
    history_.peak = std::max(history_.peak, number_in(j, "peak_memory"));
  }
  write_file(file, kept);
  metrics_.open(file);
  if (step == 0) EventFile::clear(out_);
  events_ = std::make_unique<EventFile>(out_, step);
}

void Trainer::log(const Point& p, bool test) {
  json j{{"step", p.step}, {"epoch", p.epoch}, {"seconds", p.seconds}};
  if (test) {
    j["test_loss"] = p.test_loss, j["test_accuracy"] = p.test_accuracy;
    j["peak_memory"] = task_.device().memory().peak;
    events_->scalars(p.step, {{"test/loss", p.test_loss}, {"test/accuracy", p.test_accuracy}});
  } else {
    j["loss"] = p.loss, j["lr"] = p.lr, j["rate"] = p.rate,
    j["memory"] = static_cast<int64_t>(p.memory);
    events_->scalars(p.step, {{"train/loss", p.loss},
                              {"train/lr", p.lr},
                              {"train/rate", p.rate},
                              {"train/memory", p.memory}});
  }
  const bool written = metrics_.add(json_text(j) + "\n");
  if (!written && metrics_whole_)
    progress_->warn(
        out_ +
        "/metrics.jsonl cannot be written (is the disk full?): its lines are kept until "
        "there is room");
  metrics_whole_ = written;
  (test ? history_.test : history_.train).push_back(p);
}

// The fourth step is measured launch by launch: by then everything is compiled.
Tensor Trainer::one_step(const data::Batch& batch) {
  if (++steps_here_ != 4 || args_.quiet || args_.silent)
    return train_step(task_, *optimizer_, batch);
  return bound_.measure(task_.device(), [&] { return train_step(task_, *optimizer_, batch); });
}

void Trainer::one_epoch() {
  double mark = now(), asked = mark;
  auto count = [&] {
    const double t = now();
    history_.seconds += t - mark, window_.seconds += t - mark, mark = t;
  };
  for (const auto& b : task_.train()) {
    bound_.waited(now() - asked);
    const double lr = optimizer_->lr();
    const Tensor loss = one_step(b);
    schedule_->step();
    ++window_.steps;
    stopped_ = watcher_ && !watcher_(step(), total_, loss);
    const bool last = step() >= total_ || stopped_,
               sampled = last || step() == 1 || step() % stride_ == 0;
    // Reading the loss waits for the device, so long runs do not read it at every step.
    if (sampled || now() - mark > 0.1) {
      const double value = loss.item();
      count();
      if (!std::isfinite(value)) throw not_finite();
      observe(value, lr, sampled);
    }
    if (last) break;
    asked = now();
  }
  count();
}

void Trainer::observe(double loss, double lr, bool sampled) {
  const int64_t units = recipe_.integer("batch") * task_.units();
  // A very short interval gives no reliable rate.
  if (rate_ == 0 || window_.seconds > 0.02)
    rate_ = static_cast<double>(window_.steps * units) / std::max(window_.seconds, 1e-9);
  const auto memory = static_cast<double>(task_.device().memory().in_use);
  progress_->update(step(), rate_,
                    format("loss %.3f  lr %.1e  %s%s", loss, lr, bytes_text(memory).c_str(),
                           bound_.text(window_.seconds, window_.steps).c_str()));
  const bool old = window_.seconds > 0.5, first = step() == 1;
  if (sampled || old)
    log({step(), epochs_done(), loss, lr, rate_, memory, 0, 0, history_.seconds}, false);
  if (!old && !first) return;
  window_ = {};
  bound_.new_window();
  if (first) rate_ = 0;  // it included compilation
}

Failure Trainer::not_finite() const {
  return {kFailed, format("the loss is not finite at step %lld", static_cast<long long>(step())),
          "Lower the rate (--lr), or set clip to 1; the checkpoints in " + out_ + " are intact."};
}

// "3", or "0.03" within an epoch.
static std::string epoch_text(double epochs) {
  const double whole = std::round(epochs);
  return std::abs(epochs - whole) < 1e-9 ? count_text(static_cast<int64_t>(whole))
                                         : format("%.3g", epochs);
}

void Trainer::after_epoch() {
  const double start = now();
  history_.last = task_.evaluate();
  const Evaluation& e = history_.last;
  // Before the checkpoint is written: a useless one must not replace the previous one.
  if (!std::isfinite(e.loss)) throw not_finite();
  Point p;
  p.step = step(), p.epoch = epochs_done(), p.test_loss = e.loss, p.test_accuracy = e.accuracy,
  p.seconds = history_.seconds;
  log(p, true);
  progress_->say(format("epoch %s  test loss %.3f  %s %.2f %%  (%s)", epoch_text(p.epoch).c_str(),
                        e.loss, task_.is_text() ? "next-token accuracy" : "accuracy",
                        100 * e.accuracy, time_text(now() - start).c_str()));
}

// A full disk does not end the training: it reports that and tries again after the next test.
void Trainer::save(Checkpoint& checkpoint, int64_t epoch) {
  // A run that resumes here takes its metrics up to this step from the file.
  metrics_.sync();
  try {
    checkpoint.save(epoch);
    unsaved_.clear();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::Io) throw;
    unsaved_ = e.reason();
    progress_->warn(
        format("step %lld is not saved: %s. The training continues and tries again; older "
               "checkpoints are unchanged",
               static_cast<long long>(step()), unsaved_.c_str()));
  }
}

void Trainer::write_network() {
  nn::Module& model = task_.model();
  if (args_.lora > 0) nn::merge_lora(model);
  const json card{{"classes", task_.classes()},
                  {"channels", task_.model_shape().channels},
                  {"side", task_.model_shape().side},
                  {"count", task_.model_shape().classes}};
  try {
    io::save_weights(model, out_ + "/model.safetensors",
                     {{"ingot.recipe", json_text(recipe_.values())},
                      {"ingot.name", as_kept(recipe_.name()).get<std::string>()},
                      {"ingot.card", json_text(card)}});
    if (args_.report) write_report(task_, history_, out_);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::Io) throw;
    throw Failure(kNotWritten, "a result of the training could not be written: " + e.reason(),
                  unsaved_.empty()
                      ? "Make room on the disk; the same command with --resume then writes it from "
                        "the last checkpoint."
                      : "Make room on the disk; the same command with --resume continues from the "
                        "last saved checkpoint.");
  }
}

void Trainer::print_results() const {
  const Evaluation& e = history_.last;
  const char* out = out_.c_str();
  const std::string task = recipe_.text("task");
  say(format("%s %.2f %% after %s of training on %s, peak memory %s",
             task_.is_text() ? "next-token accuracy:" : "test accuracy", 100 * e.accuracy,
             time_text(history_.seconds).c_str(), task_.device().name().c_str(),
             bytes_text(history_.peak).c_str()));
  say(format("  %s/model.safetensors   the network, for ingot %s", out,
             task == "text"     ? "generate, predict and eval"
             : task == "points" ? "eval"
                                : "predict and eval"));
  if (args_.report) say(format("  %s/report.html         curves and examples, for a browser", out));
  say(format(
      "  %s/metrics.jsonl       all metrics, one line per step; tensorboard --logdir %s draws them",
      out, out));
}

void Trainer::finish() {
  history_.steps = step();
  write_network();
  print_results();
  if (!unsaved_.empty())
    throw Failure(kNotWritten, "the last checkpoint could not be saved: " + unsaved_,
                  "The network itself is in " + out_ + "/model.safetensors.");
  if (!metrics_whole_)
    throw Failure(kNotWritten,
                  out_ + "/metrics.jsonl is incomplete: there was no room for its last lines",
                  "The network itself is in " + out_ + "/model.safetensors.");
}

// The epoch to continue with.
int64_t Trainer::resumed(Checkpoint& checkpoint) const {
  const char* const anew = "--fresh starts over and keeps them aside.";
  int64_t epoch = 0;
  try {
    epoch = checkpoint.resume();
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::Io) throw Failure(kDamaged, e.reason(), anew);
    // Parts that are missing or do not fit.
    if (e.kind() != ErrorKind::State && e.kind() != ErrorKind::Shape &&
        e.kind() != ErrorKind::Value)
      throw;
    throw Failure(kConflict, "the checkpoints in " + out_ + " are of a run with other settings",
                  "Continue that one: ingot train " + shell_word(out_ + "/recipe.json") +
                      " --resume --out " + shell_word(out_) + ".");
  }
  if (step() == 0 && !checkpoint.messages().empty() && !checkpoint.files().empty())
    throw Failure(kDamaged, "no checkpoint in " + out_ + " can be read", anew);
  return epoch;
}

TrainResult Trainer::run() {
  folder_ = std::make_unique<RunFolder>(out_, identity_of(recipe_, args_), args_);
  for (const std::string& m : folder_->messages()) say(m);
  Checkpoint checkpoint(out_ + "/checkpoints", {.keep = 2}, task_.model(), *optimizer_, *schedule_,
                        task_.train());
  int64_t epoch = args_.resume ? resumed(checkpoint) : 0;
  if (args_.resume && checkpoint.files().empty())
    say(format("there is no checkpoint in %s: starting from the beginning", out_.c_str()));
  folder_->write_down(recipe_);
  restore_history(step());
  say(format("%s on %s: %s parameters, %s steps of %lld", recipe_.name().c_str(),
             task_.device().name().c_str(), count_text(task_.model().parameter_count()).c_str(),
             count_text(total_).c_str(), static_cast<long long>(recipe_.integer("batch"))));
  if (step() > 0) say(format("resumed at step %lld", static_cast<long long>(step())));
  progress_ = std::make_unique<Progress>(
      total_, task_.unit()[0] == 't' ? " tokens" : std::string(" ") + task_.unit(),
      args_.quiet || (args_.silent && args_.label.empty()), args_.label);
  if (step() >= total_) history_.last = task_.evaluate();
  const auto every =
      std::max<int64_t>(1, epochs_ / 10);  // many short epochs: no checkpoint and test after each
  for (; step() < total_ && !stopped_; ++epoch) {
    try {
      one_epoch();
    } catch (const Error& e) {
      // A save that a signal requested.
      if (e.kind() != ErrorKind::Io || e.op() != "save") throw;
      throw Failure(kNotWritten,
                    "stopped by a signal, and this step could not be saved: " + e.reason(),
                    "Make room; --resume continues from the previous checkpoint.");
    }
    const bool last = step() >= total_ || stopped_;
    if (last || (epoch + 1) % every == 0) {
      after_epoch();
      save(checkpoint, epoch + 1);
    }
  }
  progress_->finish();
  history_.peak = std::max(history_.peak, static_cast<double>(task_.device().memory().peak));
  finish();
  return {history_.last, history_.seconds,
          step(),        total_,
          stopped_,      task_.device().name(),
          out_,          epochs_done(),
          history_.peak, task_.model().parameter_count()};
}

}  // namespace

TrainResult train(const TrainArgs& args, const Watcher& watcher) {
  const Recipe recipe = effective_recipe(args);
  if (!args.memory.empty()) device_of(recipe).set_memory_limit(parse_bytes(args.memory));
  try {
    return Trainer(args, watcher).run();
  } catch (const OutOfMemory& e) {
    throw no_room(recipe, args.recipe, e);
  } catch (const Error& e) {
    const std::string task = recipe.text("task");
    if (e.kind() == ErrorKind::Io && task == "images" && e.op() == "ImageFolder")
      throw Failure(kDamaged, "an image cannot be read: " + e.reason(),
                    "Remove that file from " + recipe.text("data") + ", or replace it.");
    if (e.kind() != ErrorKind::Index || task != "text") throw;
    throw Failure(kUsage,
                  "a token in " + recipe.text("data") + " is not below the vocabulary's " +
                      std::to_string(recipe.integer("vocabulary")),
                  "Set vocabulary higher (bytes: 256), or tokens to what the file holds.");
  }
}

int run_train(const TrainArgs& args) {
  if (!args.json) {
    train(args);
    return kOk;
  }
  TrainArgs quiet = args;
  quiet.silent = true;
  const TrainResult r = train(quiet);
  json j{{"folder", r.folder},
         {"device", r.device},
         {"parameters", r.parameters},
         {"steps", r.steps},
         {"epochs", r.epochs},
         {"seconds", r.seconds},
         {"test_loss", r.last.loss},
         {"test_accuracy", r.last.accuracy},
         {"peak_memory", static_cast<int64_t>(r.peak)},
         {"model", r.folder + "/model.safetensors"},
         {"metrics", r.folder + "/metrics.jsonl"}};
  if (args.report) j["report"] = r.folder + "/report.html";
  std::cout << json_text(j, 2) << "\n";
  return kOk;
}

}  // namespace ingot::cli
