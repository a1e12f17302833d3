#include "train.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "bound.h"
#include "cli.h"
#include "progress.h"
#include "report.h"
#include "tensorboard.h"

namespace ingot::cli {
namespace fs = std::filesystem;
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
  void after_epoch(int64_t epoch);
  void finish();
  Failure not_finite() const;
  int64_t step() const { return schedule_->last_epoch(); }

  void say(const std::string& line) const;

  TrainArgs args_;
  Watcher watcher_;
  Recipe recipe_;
  Task task_;
  std::string out_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<optim::LRScheduler> schedule_;
  int64_t epochs_, total_;
  std::unique_ptr<Progress> progress_;
  std::ofstream metrics_;
  std::unique_ptr<EventFile> events_;
  Bound bound_;
  int64_t steps_here_ = 0;  // of this process
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
  std::printf("%s\n", line.c_str());
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
  total_ = epochs_ * per_epoch;
  if (recipe_.integer("steps") > 0)
    total_ = recipe_.integer("steps"), epochs_ = (total_ + per_epoch - 1) / per_epoch;
  std::error_code e;
  fs::create_directories(out_, e);
  if (e)
    throw Failure(kFailed, "the folder " + out_ + " cannot be made: " + e.message(),
                  "Name another with --out.");
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
    const std::string file = fs::is_directory(args_.from) ? args_.from + "/model.safetensors" : args_.from;
    if (!fs::exists(file))
      throw Failure(kNoData, "there are no weights in " + args_.from,
                    "--from takes a run's folder or a file (safetensors, pt, npz).");
    const io::LoadReport report = [&] {
      try {
        return io::load_weights(model, file, {.strict = false});
      } catch (const Error& e) {
        if (e.kind() != ErrorKind::Io) throw;
        throw Failure(kDamaged, file + " cannot be read as weights, or is damaged",
                      "--from takes a run's folder or a file (safetensors, pt, npz).");
      }
    }();
    if (report.loaded.empty())
      throw Failure(kDamaged, "no weight in " + file + " fits this network",
                    "`ingot inspect " + file + "` lists them.");
    say(format("from %s: %zu weights taken, %zu of the network left as they were", file.c_str(),
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
    throw Failure(kUsage, "no parameter's name matches --freeze " + args_.freeze,
                  "`ingot explain " + args_.recipe + "` lists the names; * stands for any characters.");
  say(format("%zu of %zu parameters are frozen", frozen, all));
}

// After --resume: what was logged up to the step that is resumed stays, the rest will happen again.
void Trainer::restore_history(int64_t step) {
  const std::string file = out_ + "/metrics.jsonl";
  std::vector<std::string> kept;
  std::ifstream in(file);
  for (std::string line; step > 0 && std::getline(in, line);) {
    const json j = json::parse(line, nullptr, false);
    if (!j.is_object() || j.value("step", int64_t{0}) > step) continue;
    kept.push_back(line);
    Point p{j.value("step", int64_t{0}), j.value("epoch", 0.0), j.value("loss", 0.0),
            j.value("lr", 0.0),          j.value("rate", 0.0),  j.value("memory", 0.0)};
    p.test_loss = j.value("test_loss", 0.0), p.test_accuracy = j.value("test_accuracy", 0.0),
    p.seconds = j.value("seconds", 0.0);
    (j.contains("test_loss") ? history_.test : history_.train).push_back(p);
    history_.seconds = std::max(history_.seconds, p.seconds);
    history_.peak = std::max(history_.peak, j.value("peak_memory", 0.0));
  }
  in.close();
  std::ofstream again(file, std::ios::trunc);
  for (const std::string& line : kept) again << line << "\n";
  again.close();
  metrics_.open(file, std::ios::app);
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
    j["loss"] = p.loss, j["lr"] = p.lr, j["rate"] = p.rate, j["memory"] = p.memory;
    events_->scalars(
        p.step,
        {{"train/loss", p.loss}, {"train/lr", p.lr}, {"train/rate", p.rate}, {"train/memory", p.memory}});
  }
  metrics_ << j.dump() << std::endl;
  (test ? history_.test : history_.train).push_back(p);
}

// The fourth step is measured launch by launch: by then everything is compiled.
Tensor Trainer::one_step(const data::Batch& batch) {
  if (++steps_here_ != 4) return train_step(task_, *optimizer_, batch);
  return bound_.measure([&] { return train_step(task_, *optimizer_, batch); });
}

void Trainer::one_epoch() {
  const int64_t per_epoch = task_.train().size(), batch = recipe_.integer("batch");
  double last_read = now(), window_start = now(), asked = now();
  int64_t window_steps = 0;
  for (const auto& b : task_.train()) {
    bound_.waited(now() - asked);
    const double lr = optimizer_->lr();
    const Tensor loss = one_step(b);
    schedule_->step();
    ++window_steps;
    stopped_ = watcher_ && !watcher_(step(), total_, loss);
    const bool last = step() >= total_ || stopped_;
    // Reading the loss waits for the device, so it is not read at every step.
    if (now() - last_read > 0.1 || last || step() == 1) {
      const double value = loss.item();
      const double t = now(),
                   rate = static_cast<double>(window_steps * batch * task_.units()) / (t - window_start);
      history_.seconds += t - last_read;
      last_read = t;
      if (!std::isfinite(value)) throw not_finite();
      const double memory = static_cast<double>(task_.device().memory().in_use);
      progress_->update(step(), rate,
                        format("loss %.3f  lr %.1e  %s%s", value, lr, bytes_text(memory).c_str(),
                               bound_.text(t - window_start, window_steps).c_str()));
      if (t - window_start > 0.5 || last || step() == 1) {
        log({step(), static_cast<double>(step()) / static_cast<double>(per_epoch), value, lr, rate, memory, 0,
             0, history_.seconds},
            false);
        window_start = t, window_steps = 0;
        bound_.new_window();
      }
    }
    if (last) break;
    asked = now();
  }
  history_.seconds += now() - last_read;
}

Failure Trainer::not_finite() const {
  return {kFailed, format("the loss is not finite at step %lld", static_cast<long long>(step())),
          "Lower the rate (--lr), or set clip to 1; checkpoints in " + out_ + " are whole."};
}

void Trainer::after_epoch(int64_t epoch) {
  const double start = now();
  history_.last = task_.evaluate();
  const Evaluation& e = history_.last;
  // Before the checkpoint is written: the one before it must not give way to one that is of no use.
  if (!std::isfinite(e.loss)) throw not_finite();
  Point p;
  p.step = step(), p.epoch = static_cast<double>(epoch + 1), p.test_loss = e.loss,
  p.test_accuracy = e.accuracy, p.seconds = history_.seconds;
  log(p, true);
  progress_->say(format("epoch %lld  test loss %.3f  %s %.2f %%  (%s)", static_cast<long long>(epoch) + 1,
                        e.loss, task_.is_text() ? "next token right" : "accuracy", 100 * e.accuracy,
                        time_text(now() - start).c_str()));
}

void Trainer::finish() {
  history_.steps = step();
  nn::Module& model = task_.model();
  if (args_.lora > 0) nn::merge_lora(model);
  json card{{"classes", task_.classes()},
            {"channels", task_.ends().channels},
            {"side", task_.ends().side},
            {"count", task_.ends().classes}};
  io::save_weights(model, out_ + "/model.safetensors",
                   {{"ingot.recipe", recipe_.values().dump()},
                    {"ingot.name", recipe_.name()},
                    {"ingot.card", card.dump()}});
  if (args_.report) write_report(task_, history_, out_);
  const Evaluation& e = history_.last;
  const char* out = out_.c_str();
  say(format("%s %.2f %% after %s of training on %s, peak memory %s",
             task_.is_text() ? "next token right:" : "test accuracy", 100 * e.accuracy,
             time_text(history_.seconds).c_str(), task_.device().name().c_str(),
             bytes_text(history_.peak).c_str()));
  say(format("  %s/model.safetensors   the network, for ingot predict, eval, generate", out));
  if (args_.report) say(format("  %s/report.html         curves and examples, for a browser", out));
  say(format("  %s/metrics.jsonl       every figure, one line each; tensorboard --logdir %s draws them", out,
             out));
}

// The epoch to go on with.
int64_t Trainer::resumed(Checkpoint& checkpoint) const {
  try {
    return checkpoint.resume();
  } catch (const Error& e) {
    // Parts that are not there or do not fit; a file that cannot be read is another matter.
    if (e.kind() != ErrorKind::State && e.kind() != ErrorKind::Shape && e.kind() != ErrorKind::Value) throw;
    throw Failure(kDamaged, "the checkpoints in " + out_ + " are of a run with other settings",
                  "Go on with that one's: ingot train " + out_ + "/recipe.json --resume --out " + out_ + ".");
  }
}

TrainResult Trainer::run() {
  Checkpoint checkpoint(out_ + "/checkpoints", {.keep = 2}, task_.model(), *optimizer_, *schedule_,
                        task_.train());
  if (!args_.resume && !checkpoint.files().empty()) {
    // A new run in an old folder: the old checkpoints must not be taken for its own.
    for (const std::string& f : checkpoint.files()) fs::remove(f);
  }
  int64_t epoch = args_.resume ? resumed(checkpoint) : 0;
  if (args_.resume && checkpoint.files().empty())
    say(format("there is no checkpoint in %s: starting from the beginning", out_.c_str()));
  restore_history(args_.resume ? step() : 0);
  std::ofstream(out_ + "/recipe.json") << recipe_.values().dump(2) << "\n";
  say(format("%s on %s: %s parameters, %s steps of %lld", recipe_.name().c_str(),
             task_.device().name().c_str(), count_text(task_.model().parameter_count()).c_str(),
             count_text(total_).c_str(), static_cast<long long>(recipe_.integer("batch"))));
  if (step() > 0) say(format("resumed at step %lld", static_cast<long long>(step())));
  progress_ =
      std::make_unique<Progress>(total_, task_.unit()[0] == 't' ? " tokens" : std::string(" ") + task_.unit(),
                                 args_.quiet || args_.silent);
  if (step() >= total_) history_.last = task_.evaluate();
  const auto every =
      std::max<int64_t>(1, epochs_ / 10);  // many short epochs: not a checkpoint and a test after each
  for (; step() < total_ && !stopped_; ++epoch) {
    one_epoch();
    const bool last = step() >= total_ || stopped_;
    if (last || (epoch + 1) % every == 0) {
      after_epoch(epoch);
      checkpoint.save(epoch + 1);
    }
  }
  progress_->finish();
  history_.peak = std::max(history_.peak, static_cast<double>(task_.device().memory().peak));
  finish();
  return {history_.last, history_.seconds, step(), total_, stopped_};
}

}  // namespace

TrainResult train(const TrainArgs& args, const Watcher& watcher) {
  if (!args.memory.empty()) device_of(effective_recipe(args)).set_memory_limit(parse_bytes(args.memory));
  try {
    return Trainer(args, watcher).run();
  } catch (const OutOfMemory& e) {
    throw Failure(
        kNoRoom,
        "the batch does not fit: " + bytes_text(static_cast<double>(e.requested)) +
            " more were asked for with " + bytes_text(static_cast<double>(e.in_use)) + " in use" +
            (e.limit ? " of " + bytes_text(static_cast<double>(e.limit)) : ""),
        "Use a smaller --batch, or --set accumulate=2; `ingot plan " + args.recipe + "` says what fits.");
  } catch (const Error& e) {
    const Recipe r = effective_recipe(args);
    const std::string task = r.text("task");
    if (e.kind() == ErrorKind::Io && task == "images" && e.op() == "ImageFolder")
      throw Failure(kDamaged, "a picture cannot be read: " + e.reason(),
                    "Take that file out of " + r.text("data") + ", or replace it.");
    if (e.kind() != ErrorKind::Index || task != "text") throw;
    throw Failure(kUsage,
                  "a token in " + r.text("data") + " is not below the vocabulary's " +
                      std::to_string(r.integer("vocabulary")),
                  "Set vocabulary higher (bytes: 256), or tokens to what the file holds.");
  }
}

int run_train(const TrainArgs& args) {
  train(args);
  return kOk;
}

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
    for (const auto& e : weights.entries()) state.tensors.emplace_back(e.name, weights.get(e.name));
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::Io && e.kind() != ErrorKind::Value)
      throw;  // Value: metadata that is not there
    throw unreadable(file);
  } catch (const json::exception&) {
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
