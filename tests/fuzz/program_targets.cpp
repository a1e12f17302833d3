// Targets of the program ingot: recipes, and what a trained network's file says about itself.
#include <ingot/ingot.h>

#include <cstdlib>
#include <memory>

#include "cli/cli.h"
#include "cli/files.h"
#include "cli/train.h"
#include "file_targets.h"
#include "targets.h"

namespace ingot::cli {
// The program's own recipes, of which none is read here.
extern const char* const kRecipes[];
const char* const kRecipes[] = {nullptr};
}  // namespace ingot::cli

namespace ingot::fuzz {
namespace {

using namespace ingot::cli;

// What the program would say and exit with, as an Error. Other exits than these no file may cause.
template <class F>
void as_error(std::initializer_list<ExitCode> codes, F&& f) {
  try {
    f();
  } catch (const Failure& e) {
    bool expected = false;
    for (const ExitCode code : codes) expected = expected || e.code() == code;
    throw Error(expected ? ErrorKind::Io : ErrorKind::Internal, "program", e.what());
  }
}

constexpr size_t kMemory = size_t{256} << 20;  // for a network

void try_recipe(const std::string& text) {
  Recipe r = Recipe::parse(text, "fuzz", "file");
  if (Recipe::from_json(as_kept(r.values()), "fuzz").values() != as_kept(r.values())) std::abort();
  device_of(r);
  r.set("device", "cpu");
  const Task task(r, Device("cpu"), false);
  // Of few parameters: a recipe may ask for a network as large as it likes.
  const auto optimizer = make_optimizer(r, nn::Linear(2, 2).parameters());
  const auto schedule = make_schedule(r, *optimizer, r.integer("steps"));
  for (int i = 0; i < 3; ++i) schedule->step();
}

}  // namespace

void recipe(const uint8_t* data, size_t size) {
  const MemoryLimit small(kMemory);
  as_error({kUsage, kNoDevice},
           [&] { try_recipe(std::string(reinterpret_cast<const char*>(data), size)); });
}

void card(const uint8_t* data, size_t size) {
  const std::string file = folder() + "/card.safetensors";
  put(file, safetensors_file(data, size));
  const MemoryLimit small(kMemory);
  as_error({kDamaged}, [&] {
    const Trained t = load_trained(file, "cpu", false);
    eval(t.task->model().parameters());
    if (!t.task->is_text() &&
        t.task->classes().size() > static_cast<size_t>(t.task->model_shape().classes))
      std::abort();
  });
}

}  // namespace ingot::fuzz
