// The ingot program: its commands and options, and how what goes wrong is told.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include <CLI/CLI.hpp>

#include <ingot/ingot.h>

#include "cli.h"
#include "doctor.h"
#include "inspect.h"

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

// The library's message without the line of this program that met it: "[op] what\n  at file:line\n  fix:
// ...".
static std::string sentence(const Error& e) {
  const std::string message = e.what();
  std::string out;
  size_t at = 0;
  while (at < message.size()) {
    const size_t end = std::min(message.find('\n', at), message.size());
    const std::string line = message.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("  at ")) continue;
    out += (out.empty() ? "" : "\n") + line;
  }
  return out;
}

int report(const std::exception& e) {
  std::cout.flush();
  if (const auto* f = dynamic_cast<const Failure*>(&e)) {
    std::cerr << "ingot: " << f->what() << (f->fix().empty() ? "" : ". " + f->fix()) << "\n";
    return f->code();
  }
  if (const auto* ours = dynamic_cast<const Error*>(&e)) {
    std::cerr << "ingot: " << sentence(*ours) << "\n";
    return code_of(*ours);
  }
  std::cerr << "ingot: " << e.what() << "\n";
  return kFailed;
}

struct Program {
  CLI::App app{"Ingot trains, runs and examines neural networks, on the CPU and on NVIDIA GPUs."};
  std::function<int()> chosen;

  void add_machine();
  void add_files();
};

void Program::add_machine() {
  auto* devices =
      app.add_subcommand("devices", "The CPU and the GPUs of this machine, and why a GPU is not there.");
  static bool json = false;
  devices->add_flag("--json", json, "for a program to read");
  devices->callback([this] { chosen = [] { return run_devices(json); }; });

  auto* doctor = app.add_subcommand(
      "doctor", "Is this machine set up right? Each finding has a code and the command that mends it.");
  static DoctorArgs args;
  static bool quick = false;
  doctor->add_flag("--json", args.json, "for a program to read");
  doctor->add_flag("--quick", quick, "look only, measure nothing");
  doctor->add_option("--root", args.root,
                     "examine a folder that looks like a machine's root instead (measures nothing)");
  doctor->footer(
      "Leaves with 1 when there is an error among the findings. docs/errors.md explains the codes.");
  doctor->callback([this] {
    args.measure = !quick;
    chosen = [] { return run_doctor(args); };
  });
}

void Program::add_files() {
  auto* inspect =
      app.add_subcommand("inspect", "What is in a file: safetensors, npy, npz, PyTorch's pt, IDX.");
  static InspectArgs args;
  inspect->add_option("file", args.file, "the file")->required();
  inspect->add_option("--only", args.pattern, "tensors whose name contains this");
  inspect->add_flag("--values", args.values,
                    "read the values too: least, greatest, mean, standard deviation");
  inspect->add_flag("--json", args.json, "for a program to read");
  inspect->callback([this] { chosen = [] { return run_inspect(args); }; });
}

int run(int argc, char** argv) {
  Program p;
  p.app.set_version_flag("--version", std::string("ingot ") + INGOT_VERSION_STRING);
  p.app.require_subcommand(1);
  p.app.footer("`ingot COMMAND --help` says what a command takes.");
  p.add_machine();
  p.add_files();
  try {
    p.app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int code = p.app.exit(e, std::cout, std::cerr);
    return code == 0 ? kOk : kUsage;
  }
  return p.chosen();
}

}  // namespace ingot::cli

int main(int argc, char** argv) {
  try {
    return ingot::cli::run(argc, argv);
  } catch (const std::exception& e) {
    return ingot::cli::report(e);
  }
}
