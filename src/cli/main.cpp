// The ingot program: its commands and options, and how errors are reported.
#include <algorithm>
#include <cctype>
#include <csignal>
#include <filesystem>
#include <functional>
#include <ios>
#include <iostream>
#include <new>
#include <string>

#include <ingot/ingot.h>

#include "cli.h"
#include "doctor.h"
#include "files.h"
#include "inference.h"
#include "inspect.h"
#include "plan_and_explain.h"
#include "profile.h"
#include "recipe.h"
#include "sweep.h"
#include "train.h"
#include "usage.h"

namespace ingot::cli {

static ExitCode code_of(const Error& e) {
  switch (e.kind()) {
    case ErrorKind::Device:
      return kNoDevice;
    case ErrorKind::OutOfMemory:
      return kNoRoom;
    case ErrorKind::Io:
      return kDamaged;
    default:
      return kFailed;
  }
}

// Reason and fix, without this program's own source line.
static std::string sentence(const Error& e) {
  std::string fix = e.fix();
  const std::string word = fix.substr(0, fix.find(' '));
  // A function call keeps its lower-case letter.
  if (!fix.empty() &&
      std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isalpha(c); }))
    fix[0] = static_cast<char>(std::toupper(fix[0]));
  return e.reason() + (fix.empty() ? "" : ". " + fix);
}

int report(const std::exception& e) {
  std::cout.flush();
  if (const auto* f = dynamic_cast<const Failure*>(&e)) {
    std::cerr << "ingot: "
              << printable(std::string(f->what()) + (f->fix().empty() ? "" : ". " + f->fix()))
              << "\n";
    return f->code();
  }
  if (const auto* ours = dynamic_cast<const Error*>(&e)) {
    std::cerr << "ingot: " << printable(sentence(*ours)) << "\n";
    return code_of(*ours);
  }
  if (dynamic_cast<const std::bad_alloc*>(&e)) {
    std::cerr << "ingot: out of memory. Close other programs, or use smaller batches or models\n";
    return kNoRoom;
  }
  if (const auto* files = dynamic_cast<const std::filesystem::filesystem_error*>(&e)) {
    std::cerr << "ingot: "
              << printable(files->path1().string() + " cannot be read: " + files->code().message())
              << "\n";
    return kNoData;
  }
  if (dynamic_cast<const std::ios_base::failure*>(&e)) {
    std::cerr << "ingot: a file cannot be read or written. Is the disk full?\n";
    return kNoData;
  }
  std::cerr << "ingot: " << printable(e.what()) << "\n";
  return kFailed;
}

struct Program {
  CLI::App app{"Ingot trains, runs and examines neural networks, on the CPU and on NVIDIA GPUs.",
               "ingot"};
  std::function<int()> chosen;

  void add_machine();
  void add_files();
  void add_train();
  void add_sweep();
  void add_profile();
  void add_use();
  void add_recipes();
  void add_plan_and_explain();
};

void Program::add_machine() {
  auto* devices = app.add_subcommand(
      "devices", "The CPU and the GPUs of this machine, and why a GPU is not available.");
  static bool json = false;
  devices->add_flag("--json", json, "machine-readable output");
  devices->callback([this] { chosen = [] { return run_devices(json); }; });

  auto* doctor = app.add_subcommand(
      "doctor",
      "Is this machine set up correctly? Each finding has a code and the command that fixes it.");
  static DoctorArgs args;
  static bool quick = false;
  doctor->add_flag("--json", args.json, "machine-readable output");
  doctor->add_flag("--quick", quick, "check only, measure nothing");
  doctor->add_option("--root", args.root,
                     "check a folder laid out like a machine's root instead (measures nothing)");
  doctor->footer(
      "Exits with status 1 when one of the findings is an error. docs/errors.md explains the "
      "codes.");
  doctor->callback([this] {
    args.measure = !quick;
    chosen = [] { return run_doctor(args); };
  });
}

void Program::add_files() {
  auto* inspect = app.add_subcommand(
      "inspect", "The contents of a file: safetensors, npy, npz, PyTorch's pt, IDX.");
  static InspectArgs args;
  inspect->add_option("file", args.file, "path of the file")->required();
  inspect->add_option("--only", args.pattern, "only tensors whose name contains this");
  inspect->add_flag("--values", args.values,
                    "also read the values: minimum, maximum, mean, standard deviation");
  inspect->add_flag("--json", args.json, "machine-readable output");
  inspect->callback([this] { chosen = [] { return run_inspect(args); }; });
}

// --amp alone means bf16.
static void add_amp(CLI::App* command, TrainArgs& a) {
  const CLI::callback_t read = [&a](const CLI::results_t& words) {
    a.amp = words.empty() || words[0].empty() || words[0] == "{}" ? "bf16" : words[0];
    return true;
  };
  command->add_option("--amp", read, "matrix products in bfloat16: bf16, off")
      ->expected(0, 1)
      ->type_name("TEXT=bf16");
}

void Program::add_train() {
  auto* train = app.add_subcommand(
      "train",
      "Train a network by a recipe; writes the network, checkpoints, metrics and report.html.");
  static TrainArgs a;
  train
      ->add_option("recipe", a.recipe,
                   "a recipe's name (`ingot recipes` lists them) or your own file")
      ->required();
  train->add_option("--device", a.device, "cpu, cuda, cuda:1; auto: a GPU if there is one");
  train->add_option("--epochs", a.epochs, "passes over the data")->check(integer());
  train->add_option("--batch", a.batch, "samples per step")->check(integer());
  train->add_option("--lr", a.lr, "learning rate")->check(positive());
  add_amp(train, a);
  train->add_option("--set", a.sets, "any setting of the recipe: --set width=64 --set dropout=0.1")
      ->take_all();
  auto* resume =
      train->add_flag("--resume", a.resume, "continue from the newest checkpoint in --out");
  train
      ->add_flag("--fresh", a.fresh,
                 "start over in a folder that has a run; the old run is kept in --out/old-N")
      ->excludes(resume);
  train
      ->add_flag("--accept-changes", a.accept_changes,
                 "resume although the settings or the data have changed")
      ->needs(resume);
  train->add_option("--from", a.from,
                    "start from the weights of a run or a file (safetensors, pt, npz)");
  train->add_option("--freeze", a.freeze,
                    "do not train parameters whose names match: \"stages.*\"");
  train->add_option("--lora", a.lora, "train low-rank updates of this rank only")->check(integer());
  train->add_option("--out", a.out, "folder of the run; default: out/RECIPE");
  train->add_option("--memory", a.memory, "limit on the device memory used: 8GiB");
  train->add_flag("--quiet", a.quiet, "no progress bar");
  train->add_flag("--json", a.json, "machine-readable result, and no other output");
  train->footer(
      "Ctrl-C and SIGTERM save a checkpoint and exit with status 130 and 143; --resume continues "
      "to the same result.\n"
      "  ingot train fashion --epochs 10 --lr 0.02\n"
      "  ingot train chars --set data=my.txt --set width=256 --device cuda --amp\n"
      "  ingot train images --set data=my/images --from out/cifar --freeze \"body.*\"");
  train->callback([this] { chosen = [] { return run_train(a); }; });
}

void Program::add_sweep() {
  auto* sweep = app.add_subcommand(
      "sweep",
      "Train a recipe with varied settings; a ranked table and sweep.html show which are best.");
  static SweepArgs s;
  TrainArgs& a = s.recipe;
  sweep->add_option("recipe", a.recipe, "a recipe's name or a file")->required();
  sweep
      ->add_option(
          "--set", a.sets,
          "what to vary: lr=1e-4..1e-2:log (a range), width=128,256 (a list), epochs=2 (one value)")
      ->take_all();
  sweep
      ->add_option("--trials", s.trials,
                   "number of trials; default: all combinations of lists, or 16")
      ->check(integer());
  sweep->add_option("--epochs", a.epochs, "passes over the data in each trial")->check(integer());
  sweep->add_option("--batch", a.batch, "samples per step")->check(integer());
  sweep->add_option("--device", a.device, "cpu, cuda, cuda:1; auto: a GPU if there is one");
  sweep->add_option("--seed", s.seed, "a different seed samples other points of the ranges")
      ->check(integer());
  sweep->add_option("--out", a.out, "folder of the sweep; default: out/sweep-RECIPE");
  sweep->add_flag("--no-stop", s.no_stop, "run hopeless trials to their end");
  sweep->add_flag("--json", s.json, "machine-readable output");
  sweep->footer(
      "A trial is stopped when its training loss is above the median of the others at the same "
      "point and does not approach it fast enough. Stop the sweep at any time: the same command "
      "resumes it.");
  sweep->callback([this] { chosen = [] { return run_sweep(s); }; });
}

void Program::add_use() {
  auto* eval =
      app.add_subcommand("eval", "The loss and accuracy of a trained network on its test data.");
  static EvalArgs e;
  eval->add_option("run", e.run, "a run's folder (out/fashion) or its model.safetensors")
      ->required();
  eval->add_option("--device", e.device, "cpu, cuda, ...");
  eval->add_flag("--json", e.json, "machine-readable output");
  eval->callback([this] { chosen = [] { return run_eval(e); }; });

  auto* predict = app.add_subcommand(
      "predict", "What a trained network predicts for images, folders of images, or a text.");
  static PredictArgs p;
  predict->add_option("run", p.run, "a run's folder or its model.safetensors")->required();
  predict->add_option("input", p.inputs, "images, folders, or a text")->required();
  predict->add_option("--top", p.top, "classes to show")->check(integer());
  predict->add_option("--device", p.device, "cpu, cuda, ...");
  predict->add_flag("--json", p.json, "machine-readable output, one line per image");
  predict->callback([this] { chosen = [] { return run_predict(p); }; });

  auto* generate =
      app.add_subcommand("generate", "Generate text with a trained network, token by token.");
  static GenerateArgs g;
  generate->add_option("run", g.run, "a run's folder or its model.safetensors")->required();
  generate->add_option("--prompt", g.prompt, "text to continue");
  generate->add_option("--length", g.length, "tokens")->check(integer());
  generate
      ->add_option("--temperature", g.temperature,
                   "0: always the most likely token; 1: sample from the network's distribution")
      ->check(not_negative());
  generate->add_option("--seed", g.seed, "seed of the sampling")->check(integer(0));
  generate->add_option("--device", g.device, "cpu, cuda, ...");
  generate->callback([this] { chosen = [] { return run_generate(g); }; });
}

static void add_recipe_options(CLI::App* command, TrainArgs& a) {
  command->add_option("recipe", a.recipe, "a recipe's name or a file")->required();
  command->add_option("--batch", a.batch, "samples per step")->check(integer());
  command->add_option("--set", a.sets, "any setting of the recipe")->take_all();
  add_amp(command, a);
}

void Program::add_plan_and_explain() {
  auto* plan = app.add_subcommand("plan",
                                  "How much memory a recipe's training takes, and whether it fits. "
                                  "Needs neither GPU nor data.");
  static PlanArgs p;
  add_recipe_options(plan, p.recipe);
  plan->add_option("--device", p.recipe.device,
                   "device to train on: cpu, cuda; auto: a GPU if there is one");
  plan->add_option("--gpu", p.gpu, "does it fit on this GPU? h200, h100, a100, l4, rtx4090, ...");
  plan->add_option("--memory", p.memory, "does it fit in this much? 16GiB")->excludes("--gpu");
  plan->add_flag("--json", p.json, "machine-readable output");
  plan->footer(
      "Exits with status 5 when it does not fit, and names the cheapest remedy.\n"
      "  ingot plan gpt2 --gpu rtx4090\n"
      "  ingot plan chars --batch 64 --memory 8GiB");
  plan->callback([this] { chosen = [] { return run_plan(p); }; });

  auto* explain = app.add_subcommand(
      "explain",
      "A recipe's network and what one step of it does: kernels, bytes, predicted time.");
  static ExplainArgs e;
  add_recipe_options(explain, e.recipe);
  explain->add_option("--device", e.recipe.device, "cpu, cuda, ...");
  explain->add_option("--rates", e.rates, "predict the time at another device's rates: h200");
  explain->add_flag("--kernels", e.kernels, "every kernel, with its ops and bytes");
  explain->add_flag("--why", e.why,
                    "the same, and why library calls did not get the kernels that the device "
                    "prefers");
  explain->add_flag("--json", e.recipe.json, "machine-readable output");
  explain->callback([this] { chosen = [] { return run_explain(e); }; });

  auto* bench =
      app.add_subcommand("bench",
                         "How fast models train here: the CPU and, where there is one, the GPU, "
                         "the ratio, and the share of the hardware's limit.");
  static BenchArgs b;
  b.recipes = {"fashion", "cifar", "chars", "chars-lstm", "unet", "lstm-8192"};
  bench->add_option("recipe", b.recipes,
                    "recipes, unet (1024 x 1024), lstm-8192 (8192 time steps); default: fashion "
                    "cifar chars chars-lstm unet lstm-8192");
  bench->add_option("--device", b.devices, "these devices only")->take_all();
  bench->add_option("--seconds", b.seconds, "seconds per measurement")->check(positive());
  bench->add_flag("--json", b.json, "machine-readable output");
  bench->callback([this] { chosen = [] { return run_bench(b); }; });
}

void Program::add_profile() {
  auto* profile = app.add_subcommand("profile",
                                     "Where the time of a step goes: the slowest kernels, their "
                                     "share of the limit, and what bounds the step.");
  static ProfileArgs p;
  add_recipe_options(profile, p.recipe);
  profile->add_option("--device", p.recipe.device, "cpu, cuda, ...");
  profile->add_option("--steps", p.steps, "steps to measure")->check(integer());
  profile->add_option("--top", p.top, "kernels to show")->check(integer());
  profile->add_option("--trace", p.trace,
                      "file for the Perfetto trace; default: out/RECIPE-trace.json");
  profile->add_flag("--json", p.json, "machine-readable output");
  profile->footer("Without the recipe's data it profiles steps on zeros and says so.");
  profile->callback([this] { chosen = [] { return run_profile(p); }; });
}

// One recipe's settings, all settings there are, or all recipes.
static std::string recipes_json(const std::string& name, bool all_settings) {
  nlohmann::json j = nlohmann::json::array();
  if (!name.empty()) return json_text(Recipe::load(name).values(), 2) + "\n";
  if (all_settings) {
    for (const Setting& s : settings())
      j.push_back({{"setting", s.key}, {"standard", s.standard}, {"meaning", s.meaning}});
  } else {
    for (const std::string& n : recipe_names())
      j.push_back(
          {{"name", n}, {"summary", recipe_summary(n)}, {"settings", Recipe::load(n).values()}});
  }
  return json_text(j, 2) + "\n";
}

void Program::add_recipes() {
  auto* recipes = app.add_subcommand("recipes",
                                     "List the recipes; with a name, print that recipe, ready to "
                                     "copy: ingot recipes fashion > my.json");
  static std::string name;
  static bool all = false;
  recipes->add_option("name", name, "print this one");
  recipes->add_flag("--settings", all, "list the settings a recipe can have");
  static bool json = false;
  recipes->add_flag("--json", json, "machine-readable output");
  recipes->callback([this] {
    chosen = [] {
      if (json) {
        std::cout << recipes_json(name, all);
      } else if (!name.empty()) {
        Recipe::load(name);
        std::cout << recipe_text(name);
      } else if (all) {
        Table t({"setting", "default", "meaning"});
        for (const Setting& s : settings()) t.row({s.key, s.standard.dump(), s.meaning});
        std::cout << t.text();
      } else {
        for (const std::string& n : recipe_names()) {
          std::cout << recipe_summary(n) << "\n";
        }
      }
      return static_cast<int>(kOk);
    };
  });
}

int run(int argc, char** argv) {
  Program p;
  p.app.set_version_flag("--version", std::string("ingot ") + INGOT_VERSION_STRING);
  p.app.require_subcommand(1);
  p.app.footer(
      "`ingot COMMAND --help` lists a command's options. To begin with:\n"
      "  ingot doctor             is this machine set up correctly?\n"
      "  ingot train spirals      needs no data, takes seconds\n"
      "  ingot recipes            what else can be trained");
  p.add_train();
  p.add_sweep();
  p.add_use();
  p.add_plan_and_explain();
  p.add_profile();
  p.add_recipes();
  p.add_machine();
  p.add_files();
  try {
    p.app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return p.app.exit(e, std::cout, std::cerr);  // --help, --version
    if (argc == 1) {
      std::cerr << p.app.help();
      return kUsage;
    }
    throw mistake(p.app, e, argc, argv);
  }
  return p.chosen();
}

}  // namespace ingot::cli

int main(int argc, char** argv) {
  // A limit on file sizes (ulimit -f) then makes write() fail, which is reported, instead of
  // killing the program.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return ingot::cli::run(argc, argv);
  } catch (const std::exception& e) {
    return ingot::cli::report(e);
  }
}
