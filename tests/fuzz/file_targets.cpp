// Targets that read files by their paths: checkpoints, weights split over several files.
#include "file_targets.h"

#include <ingot/ingot.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>

#include "io/hash.h"
#include "support/folder.h"
#include "targets.h"

namespace ingot::fuzz {

const std::string& folder() {
  static const Folder here;
  return here.path;
}

void put(const std::string& path, const std::string& content) { write_file(path, content); }

namespace {

void make_checksum_right(std::string& file, size_t header_end) {
  const std::string key = "\"ingot.checksum\":\"";
  constexpr size_t kDigits = 16;
  const size_t at = file.find(key) + key.size();
  if (at < key.size() || at + kDigits > header_end) return;
  file.replace(at, kDigits, kDigits, '0');
  io::Hash hash;
  hash.add({reinterpret_cast<const uint8_t*>(file.data()), file.size()});
  char digits[kDigits + 1];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash.sum()));
  file.replace(at, kDigits, digits);
}

void expect(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "checkpoint: %s\n", what);
  std::abort();
}

std::string bytes_of(const Tensor& t) {
  std::string bytes(static_cast<size_t>(t.numel()) * size_of(t.dtype()), '\0');
  t.copy_to(bytes.data());
  return bytes;
}

std::string find_bytes(const std::string& file, const std::string& name) {
  return bytes_of(io::SafeTensors(file).get(name));
}

// Everything a run has, as small as it goes.
struct Run {
  nn::Linear model{3, 2};
  optim::AdamW opt{model.parameters(), {.lr = 0.01}};
  optim::StepLR schedule{opt, 1, 0.5};
  amp::GradScaler scaler{{.init_scale = 256, .growth_interval = 3}};
  optim::EMA average{opt};
  data::DataLoader train{data::TensorDataset({ones({4, 3}), zeros({4, 2})}),
                         {.batch_size = 2, .shuffle = true, .num_workers = 0, .seed = 5}};
  Generator noise{9};
  std::unique_ptr<Checkpoint> file = std::make_unique<Checkpoint>(
      folder() + "/checkpoints", CheckpointOptions{.keep = 1, .handle_signals = false}, model, opt,
      schedule, scaler, average, train, noise);

  void epoch() {
    for (auto [x, y] : train) {
      scaler.scale(mse_loss(model(x), y)).backward();
      scaler.step(opt);
      scaler.update();
    }
    schedule.step();
  }
  // The tensors as a file has them.
  std::map<std::string, std::string> tensors() const {
    std::map<std::string, std::string> all;
    auto add = [&](const std::string& part, const StateDict& d) {
      for (const auto& [name, t] : d) all[part + "." + name] = bytes_of(t);
    };
    add("model", model.state_dict()), add("optimizer", opt.state_dict());
    add("scaler", scaler.state_dict()), add("ema", average.state_dict());
    return all;
  }
  // All of it, bit for bit.
  std::string state() const {
    std::string all;
    for (const Generator& g : {noise, default_generator()})
      all += std::to_string(g.seed()) + ":" + std::to_string(g.offset()) + "\n";
    for (const StateDict& d : {opt.state_dict(), schedule.state_dict(), train.state_dict()})
      for (const auto& [name, value] : d.values) all += name + "=" + value + "\n";
    for (const auto& [name, bytes] : tensors()) all += name + "=" + bytes + "\n";
    return all;
  }
};

}  // namespace

std::string safetensors_file(const uint8_t* data, size_t size) {
  const std::string all(reinterpret_cast<const char*>(data), size);
  const size_t end = all.find('\0');
  if (all.empty() || all[0] != 'c' || end == std::string::npos) return all.substr(size ? 1 : 0);
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>((end - 1) >> (8 * i) & 0xff);
  file += all.substr(1, end - 1) + all.substr(end + 1);
  make_checksum_right(file, 8 + end - 1);
  return file;
}

// A run that cannot be resumed is as it was; one that can be trains on, and what it saves says all
// of it.
void checkpoint(const uint8_t* data, size_t size) {
  const Quiet quiet;
  namespace fs = std::filesystem;
  const std::string place = folder() + "/checkpoints", file = place + "/ckpt-000001.safetensors";
  fs::create_directory(place);
  for (const auto& entry : fs::directory_iterator(place))
    if (entry.path().filename() != ".lock") fs::remove(entry);
  put(file, safetensors_file(data, size));
  static auto run = std::make_unique<Run>();
  const std::string before = run->state();
  int64_t number = 0;
  try {
    number = run->file->resume();
  } catch (const Error&) {
    expect(run->state() == before, "a resume() that failed changed something");
    throw;
  }
  for (const auto& [name, bytes] : run->tensors())
    expect(find_bytes(file, name) == bytes, "what was resumed is not what the file has");
  run->file->save(number);
  Run other;
  expect(other.file->resume() == number, "the number does not come back");
  expect(other.state() == run->state(), "what was resumed does not come back from a file");
  run->epoch();
  run.reset(new Run);
}

// The folder of the index holds two sound parts and, under other names, what a part must not be.
void index_json(const uint8_t* data, size_t size) {
  static const std::string index = [] {
    std::filesystem::create_directory(folder() + "/split");
    const std::string place = folder() + "/split/";
    io::save_safetensors(place + "a.safetensors", {{"x", ones({2})}, {"y", ones({3})}});
    io::save_safetensors(place + "b.safetensors", {{"z", ones({4})}});
    io::save_safetensors(place + "again.safetensors", {{"z", ones({4})}});
    std::filesystem::create_directory(place + "folder");
    put(place + "empty", "");
    return place + "model.safetensors.index.json";
  }();
  put(index, std::string(reinterpret_cast<const char*>(data), size));
  std::set<std::string> names;
  for (const auto& [name, t] : io::load_tensors(index))
    if (!names.insert(name).second || t.sum().item() != static_cast<double>(t.numel()))
      std::abort();
}

}  // namespace ingot::fuzz
