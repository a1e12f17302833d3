// Checkpoints. See checkpoint.h for what is promised; the order of things in write() keeps it.
#include "ingot/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <thread>

#include "ingot/version.h"
#include "io/hash.h"
#include "io/safetensors.h"
#include "io/signals.h"
#include "runtime/backend.h"

namespace ingot {

namespace fs = std::filesystem;
using io::HostTensor;

namespace {

constexpr const char *kPrefix = "ckpt-", *kSuffix = ".safetensors", *kChecksum = "ingot.checksum";
constexpr size_t kChecksumDigits = 16;

// The number in "ckpt-000012.safetensors", or -1.
int64_t sequence_of(const std::string& name) {
  size_t prefix = std::string_view(kPrefix).size(), suffix = std::string_view(kSuffix).size();
  if (name.size() <= prefix + suffix || name.compare(0, prefix, kPrefix) != 0 ||
      name.compare(name.size() - suffix, suffix, kSuffix) != 0)
    return -1;
  int64_t n = -1;
  const char *from = name.data() + prefix, *to = name.data() + name.size() - suffix;
  auto [end, error] = std::from_chars(from, to, n);
  return error == std::errc() && end == to ? n : -1;
}

std::string hex(uint64_t v) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(v));
  return text;
}

io::Bytes bytes_of(const std::string& s) { return {reinterpret_cast<const uint8_t*>(s.data()), s.size()}; }

// Where the checksum's digits stand in a header, or npos.
size_t checksum_at(const std::string& header) {
  std::string key = std::string("\"") + kChecksum + "\":\"";
  size_t at = header.find(key);
  return at == std::string::npos || at + key.size() + kChecksumDigits > header.size() ? std::string::npos
                                                                                      : at + key.size();
}

// A file's bytes under its name, whole only when its checksum says so: over everything, its own digits taken
// as zeros.
struct WholeFile {
  io::MappedFile file;
  io::SafeTensorsHeader header;
  WholeFile(const std::string& path, const SourceLoc& loc)
      : file(path, "resume", loc), header(io::parse_safetensors(file.bytes(), "resume", path, loc)) {
    io::Bytes b = file.bytes();
    std::string head(reinterpret_cast<const char*>(b.data()), header.data_begin);
    size_t at = checksum_at(head);
    auto want = header.metadata.find(kChecksum);
    if (at == std::string::npos || want == header.metadata.end())
      io::fail_io("resume", path, "has no checksum", loc);
    head.replace(at, kChecksumDigits, kChecksumDigits, '0');
    io::Hash hash;
    hash.add(bytes_of(head));
    hash.add(b.subspan(header.data_begin));
    if (hex(hash.sum()) != want->second)
      io::fail_io("resume", path, "is damaged: its checksum is wrong", loc);
  }
};

// The tuning file that kernels on the model's GPU were chosen by, or "".
std::string tuning_file(const std::vector<std::pair<std::string, Tensor>>& tensors) {
  for (const auto& [name, t] : tensors)
    if (Device d = t.device(); d.is_cuda())
      if (Backend* b = backend_for(d.type())) return b->tuning_file(d.index());
  return {};
}

}  // namespace

struct Checkpoint::State {
  struct Part {
    std::string name;
    std::function<StateDict()> get;
    std::function<void(const StateDict&)> set;
  };
  std::string folder;
  CheckpointOptions o;
  std::vector<Part> parts;
  std::vector<data::DataLoader*> loaders;
  std::vector<std::string> messages;
  int64_t next = 1;      // of the file names
  int64_t number = 0;    // of the last save or resume ...
  int64_t at_epoch = 0;  // ... and the first loader's epoch then
  bool by_steps = false;
  bool watching = false;
  std::thread writer;
  std::exception_ptr failed;

  State() = default;
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::string path_of(int64_t sequence) const {
    char name[64];
    std::snprintf(name, sizeof name, "%s%06lld%s", kPrefix, static_cast<long long>(sequence), kSuffix);
    return folder + "/" + name;
  }
  std::vector<std::pair<int64_t, std::string>> files() const {
    std::vector<std::pair<int64_t, std::string>> all;
    std::error_code error;
    for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error))
      if (int64_t n = sequence_of(i->path().filename().string()); n >= 0)
        all.emplace_back(n, i->path().string());
    std::sort(all.begin(), all.end());
    return all;
  }
  void say(const std::string& text) {
    messages.push_back(text);
    std::cerr << "checkpoint: " << text << std::endl;
  }
  void remember(int64_t n) {
    number = n;
    at_epoch = loaders.empty() ? 0 : loaders[0]->epoch();
  }
  // What a leftover of a killed program is: never read, only in the way.
  void remove_leftovers() const {
    std::error_code error;
    std::vector<fs::path> old;
    for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
      std::string name = i->path().filename().string();
      if (name.rfind(kPrefix, 0) == 0 && name.find(std::string(kSuffix) + ".tmp-") != std::string::npos)
        old.push_back(i->path());
    }
    for (const fs::path& p : old) fs::remove(p, error);
  }
  void prune() const {
    std::vector<std::pair<int64_t, std::string>> all = files();
    std::error_code error;
    for (size_t i = 0; o.keep > 0 && i + static_cast<size_t>(o.keep) < all.size(); ++i)
      fs::remove(all[i].second, error);
  }

  void collect(int64_t n, NamedTensors& tensors, io::Metadata& metadata) const;
  void write(int64_t sequence, std::vector<HostTensor> tensors, const io::Metadata& metadata,
             const SourceLoc& loc) const;
  void restore(const WholeFile& file, const std::string& path, const SourceLoc& loc);
};

// ---- Making one

void Checkpoint::open(const CheckpointFolder& where, const CheckpointOptions& options) {
  const std::string& folder = where.path;
  SourceLoc loc = user_loc(where.loc);
  if (options.keep < 0) throw Error(ErrorKind::Value, "Checkpoint", "keep is negative", loc);
  s_ = std::make_shared<State>();
  s_->folder = folder;
  s_->o = options;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) io::fail_io("Checkpoint", folder, "cannot be made: " + error.message(), loc);
  for (const auto& [n, path] : s_->files()) s_->next = n + 1;
  if (options.handle_signals) io::watch_signals();
  s_->watching = options.handle_signals;
}

Checkpoint::~Checkpoint() = default;

Checkpoint::State::~State() {
  if (writer.joinable()) writer.join();
  for (data::DataLoader* l : loaders) l->set_between({});
  if (watching) io::unwatch_signals();
  if (!failed) return;
  try {
    std::rethrow_exception(failed);
  } catch (const std::exception& e) {
    std::cerr << "checkpoint: the last save failed: " << e.what() << std::endl;
  }
}

void Checkpoint::add_part(const char* kind, std::function<StateDict()> get,
                          std::function<void(const StateDict&)> set) {
  std::string name = kind;
  auto taken = [&] {
    return std::any_of(s_->parts.begin(), s_->parts.end(),
                       [&](const State::Part& p) { return p.name == name; });
  };
  for (int i = 2; taken(); ++i) name = kind + std::to_string(i);
  s_->parts.push_back({name, std::move(get), std::move(set)});
}

void Checkpoint::add_loader(data::DataLoader& loader) {
  s_->loaders.push_back(&loader);
  if (!s_->o.handle_signals) return;
  loader.set_between([this] {
    if (!io::pending_signal() || s_->by_steps) return;
    save(s_->number + (s_->loaders[0]->epoch() - s_->at_epoch));
  });
}

StateDict Checkpoint::generator_state(const Generator& g) {
  StateDict d;
  d.set("seed", g.seed());
  d.set("offset", g.offset());
  return d;
}

void Checkpoint::load_generator(const Generator& g, const StateDict& d) {
  g.manual_seed(d.unsigned_integer("seed"));
  g.set_offset(d.unsigned_integer("offset"));
}

// ---- Saving

void Checkpoint::State::collect(int64_t n, NamedTensors& tensors, io::Metadata& metadata) const {
  metadata = {{kChecksum, std::string(kChecksumDigits, '0')},
              {"ingot.version", INGOT_VERSION_STRING},
              {"ingot.number", std::to_string(n)}};
  auto add = [&](const std::string& name, const StateDict& d) {
    metadata["ingot.part/" + name] = std::to_string(d.tensors.size());
    for (const auto& [key, value] : d.values) metadata[name + "/" + key] = value;
    for (const auto& [key, t] : d.tensors) tensors.emplace_back(name + "." + key, t);
  };
  for (const Part& p : parts) add(p.name, p.get());
  add("default_generator", generator_state(default_generator()));
  metadata["ingot.tuning_file"] = tuning_file(tensors);
}

void Checkpoint::State::write(int64_t sequence, std::vector<HostTensor> tensors, const io::Metadata& metadata,
                              const SourceLoc& loc) const {
  std::stable_sort(tensors.begin(), tensors.end(), [](const HostTensor& a, const HostTensor& b) {
    return size_of(a.dtype) > size_of(b.dtype);
  });
  std::string header = io::safetensors_header(tensors, metadata);
  io::Hash hash;
  hash.add(bytes_of(header));
  io::AtomicFile out(path_of(sequence), "save", loc);
  out.write(header.data(), header.size());
  for (const HostTensor& t : tensors) {
    out.write(t.bytes.data(), t.bytes.size());
    hash.add({reinterpret_cast<const uint8_t*>(t.bytes.data()), t.bytes.size()});
  }
  std::string digits = hex(hash.sum());
  out.write_at(checksum_at(header), digits.data(), digits.size());
  out.commit();
  // Only now, with the new file in place, does an old one go.
  prune();
}

void Checkpoint::save(int64_t number, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  wait(loc);
  State& s = *s_;
  NamedTensors tensors;
  io::Metadata metadata;
  s.collect(number, tensors, metadata);
  std::vector<HostTensor> host = io::to_host(tensors, "save", loc);
  int64_t sequence = s.next;
  int signal = s.o.handle_signals ? io::pending_signal() : 0;
  if (s.o.asynchronous && !signal) {
    s.writer =
        std::thread([&s, sequence, host = std::move(host), metadata = std::move(metadata), loc]() mutable {
          try {
            s.write(sequence, std::move(host), metadata, loc);
          } catch (...) {
            s.failed = std::current_exception();
          }
        });
  } else {
    s.write(sequence, std::move(host), metadata, loc);
  }
  ++s.next;
  s.remember(number);
  if (!signal) return;
  std::cerr << "checkpoint: " << (signal == SIGTERM ? "SIGTERM" : "SIGINT") << ": saved "
            << s.path_of(sequence) << ", leaving" << std::endl;
  for (data::DataLoader* l : s.loaders) l->set_epoch(0);  // ends its threads
  std::exit(128 + signal);
}

bool Checkpoint::save_every(int64_t step, int64_t every, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  if (every < 1) throw Error(ErrorKind::Value, "save_every", "every is below 1", loc);
  s_->by_steps = true;
  if (step % every != 0 && !(s_->o.handle_signals && io::pending_signal())) return false;
  save(step, loc);
  return true;
}

void Checkpoint::wait(SourceLoc) {
  if (s_->writer.joinable()) s_->writer.join();
  if (std::exception_ptr e = std::exchange(s_->failed, nullptr)) std::rethrow_exception(e);
}

// ---- Resuming

void Checkpoint::State::restore(const WholeFile& file, const std::string& path, const SourceLoc& loc) {
  const io::Metadata& metadata = file.header.metadata;
  auto dict_of = [&](const std::string& name) {
    if (!metadata.count("ingot.part/" + name))
      throw Error(ErrorKind::State, "resume", "\"" + path + "\" has no " + name, loc,
                  "give Checkpoint the parts it was given when the file was saved, or another folder");
    StateDict d;
    for (auto i = metadata.lower_bound(name + "/");
         i != metadata.end() && i->first.compare(0, name.size() + 1, name + "/") == 0; ++i)
      d.values[i->first.substr(name.size() + 1)] = i->second;
    for (const io::SafeTensors::Entry& e : file.header.entries)
      if (e.name.compare(0, name.size() + 1, name + ".") == 0)
        d.tensors.emplace_back(e.name.substr(name.size() + 1),
                               io::read_entry(file.file.bytes(), file.header, e, {}, "resume", path, loc));
    return d;
  };
  std::vector<StateDict> states;
  for (const Part& p : parts) states.push_back(dict_of(p.name));
  StateDict generator = dict_of("default_generator");
  for (size_t i = 0; i < parts.size(); ++i) parts[i].set(states[i]);
  load_generator(default_generator(), generator);
}

int64_t Checkpoint::resume(SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  wait(loc);
  State& s = *s_;
  s.messages.clear();
  s.remove_leftovers();
  std::vector<std::pair<int64_t, std::string>> all = s.files();
  for (size_t i = all.size(); i-- > 0;) {
    const std::string& path = all[i].second;
    std::unique_ptr<WholeFile> file;
    try {
      file = std::make_unique<WholeFile>(path, loc);
    } catch (const Error& e) {
      std::string what = e.what();
      s.say("passed over: " + what.substr(0, what.find('\n')) +
            (i ? "; trying the one before" : "; there is no other"));
      continue;
    }
    const io::Metadata& metadata = file->header.metadata;
    auto at = metadata.find("ingot.number");
    int64_t number = 0;
    if (at == metadata.end() ||
        std::from_chars(at->second.data(), at->second.data() + at->second.size(), number).ec != std::errc())
      throw Error(ErrorKind::State, "resume", "\"" + path + "\" is not a checkpoint", loc);
    s.restore(*file, path, loc);
    NamedTensors tensors;
    for (const State::Part& p : s.parts) {
      StateDict d = p.get();
      tensors.insert(tensors.end(), d.tensors.begin(), d.tensors.end());
    }
    auto tuned = metadata.find("ingot.tuning_file");
    if (std::string now = tuning_file(tensors);
        tuned != metadata.end() && tuned->second != now && !now.empty() && !tuned->second.empty())
      s.say("\"" + path + "\" was made with the tuning file " + tuned->second + ", this run uses " + now +
            ": the last bits may differ");
    s.remember(number);
    return number;
  }
  s.remember(0);
  return 0;
}

std::vector<std::string> Checkpoint::files() const {
  std::vector<std::string> paths;
  for (auto& [n, path] : s_->files()) paths.push_back(path);
  return paths;
}

const std::vector<std::string>& Checkpoint::messages() const { return s_->messages; }

}  // namespace ingot
