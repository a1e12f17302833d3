// Checkpoints. checkpoint.h states the guarantees; the order of steps in write() keeps them.
#include "ingot/checkpoint.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <set>
#include <system_error>
#include <thread>
#include <unordered_map>

#include "graph/handle.h"
#include "ingot/version.h"
#include "io/lock.h"
#include "io/safetensors.h"
#include "io/signals.h"
#include "ops/common.h"
#include "runtime/backend.h"

namespace ingot {

namespace fs = std::filesystem;
using io::HostTensor;

namespace {

constexpr const char *kPrefix = "ckpt-", *kSuffix = ".safetensors";
constexpr int64_t kMaxSequence =
    999'999'999'999;  // of the files' names: counting on never overflows

std::string name_of(int64_t sequence) {
  char name[64];
  std::snprintf(name, sizeof name, "%s%06lld%s", kPrefix, static_cast<long long>(sequence),
                kSuffix);
  return name;
}

// The number in "ckpt-000012.safetensors", or -1 for any other name.
int64_t sequence_of(const std::string& name) {
  const size_t prefix = std::string_view(kPrefix).size(), suffix = std::string_view(kSuffix).size();
  if (name.size() <= prefix + suffix) return -1;
  int64_t n = -1;
  std::from_chars(name.data() + prefix, name.data() + name.size() - suffix, n);
  return n >= 0 && n <= kMaxSequence && name == name_of(n) ? n : -1;
}

// Checks that a file is intact, by its checksum.
struct WholeFile {
  io::File file;
  io::SafeTensorsHeader header;
  WholeFile(const std::string& path, const SourceLoc& loc)
      : file(path, "resume", loc),
        header(io::parse_safetensors(io::source_of(file, loc), "resume", path, loc)) {
    if (!io::check_sum(io::source_of(file, loc), header, "resume", path, loc))
      io::fail_io("resume", path, "has no checksum", loc);
  }
};

// The number that the file was saved under.
int64_t number_in(const io::Metadata& metadata, const std::string& path, const SourceLoc& loc) {
  const auto at = metadata.find("ingot.number");
  const std::string text = at == metadata.end() ? std::string() : at->second;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw Error(ErrorKind::State, "resume", "\"" + io::printable(path) + "\" is not a checkpoint",
                loc);
  return number;
}

// The tuning file by which the kernels on the model's GPU were chosen, or "".
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
    bool fixed;  // one of Ingot's: the tensors of its state never change in number, shape or type
    std::function<StateDict()> get;
    Load set;
  };
  using Files = std::vector<std::pair<int64_t, std::string>>;  // by their numbers
  std::string folder;
  CheckpointOptions o;
  std::shared_ptr<io::FolderLock> lock;
  std::vector<Part> parts;
  std::vector<data::DataLoader*> loaders;
  std::vector<std::string> messages;
  std::set<int64_t> whole;  // files of this run that were written or read by this program ...
  std::set<int64_t> older;  // ... and those before the one it resumed from, not checked yet
  int64_t next = 1;         // of the file names
  int64_t number = 0;       // of the last save or resume ...
  int64_t at_epoch = 0;     // ... and the first loader's epoch then
  bool by_steps = false;
  bool watching = false;
  std::thread writer;
  std::exception_ptr failed;

  State() = default;
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::string path_of(int64_t sequence) const { return folder + "/" + name_of(sequence); }
  // All names in the folder. Only a missing folder has none: one that cannot be listed may be full
  // of files.
  std::vector<std::string> names(const SourceLoc& loc) const {
    std::vector<std::string> all;
    // Not std::filesystem: its iterator ends the process when memory is out.
    const std::unique_ptr<DIR, int (*)(DIR*)> opened(opendir(folder.c_str()), closedir);
    if (!opened && errno == ENOENT) return all;
    errno = opened ? 0 : errno;
    while (const dirent* entry = opened ? readdir(opened.get()) : nullptr) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") all.push_back(name);
      errno = 0;
    }
    if (errno)
      io::fail_io("Checkpoint", folder, std::string("cannot be listed: ") + std::strerror(errno),
                  loc);
    return all;
  }
  Files files(const SourceLoc& loc) const {
    Files all;
    for (const std::string& name : names(loc))
      if (const int64_t n = sequence_of(name); n >= 0) all.emplace_back(n, folder + "/" + name);
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
  // Half-written files of killed programs: never read, only taking space.
  void remove_leftovers(const SourceLoc& loc) const {
    std::error_code error;
    for (const std::string& name : names(loc))
      if (name.rfind(kPrefix, 0) == 0 && io::is_abandoned(name))
        fs::remove(folder + "/" + name, error);
  }

  void prune(const SourceLoc& loc);
  void collect(int64_t n, NamedTensors& tensors, io::Metadata& metadata) const;
  std::string write(std::vector<HostTensor> tensors, const io::Metadata& metadata,
                    const SourceLoc& loc);
  void write_beside(std::vector<HostTensor> tensors, const io::Metadata& metadata,
                    const SourceLoc& loc);
  StateDict state_in(const WholeFile& file, const std::string& part, const std::string& path,
                     const SourceLoc& loc) const;
  void check(const Part& part, const StateDict& saved, const std::string& path,
             const SourceLoc& loc) const;
  void restore(const WholeFile& file, const std::string& path, const SourceLoc& loc);
  void compare_tuning(const io::Metadata& metadata, const std::string& path);
};

// ---- Construction

void Checkpoint::open(const CheckpointFolder& where, const CheckpointOptions& options) {
  const std::string& folder = where.path;
  SourceLoc loc = user_loc(where.loc);
  if (options.keep < 0) throw Error(ErrorKind::Value, "Checkpoint", "keep is negative", loc);
  s_ = std::make_shared<State>();
  s_->folder = folder;
  s_->o = options;
  io::make_folders(folder, "Checkpoint", loc);
  s_->lock = io::FolderLock::take(folder, "Checkpoint", loc);
  for (const auto& [n, path] : s_->files(loc)) s_->next = n + 1;
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

void Checkpoint::add_part(const char* kind, std::function<StateDict()> get, Load set) {
  std::string name = kind;
  auto taken = [&] {
    return std::any_of(s_->parts.begin(), s_->parts.end(),
                       [&](const State::Part& p) { return p.name == name; });
  };
  for (int i = 2; taken(); ++i) name = kind + std::to_string(i);
  s_->parts.push_back({name, std::string_view(kind) != "part", std::move(get), std::move(set)});
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

void Checkpoint::load_generator(const Generator& g, const StateDict& d, const SourceLoc& loc) {
  const uint64_t seed = d.unsigned_integer("seed", loc), offset = d.unsigned_integer("offset", loc);
  g.manual_seed(seed);
  g.set_offset(offset);
}

// ---- Saving

void Checkpoint::State::collect(int64_t n, NamedTensors& tensors, io::Metadata& metadata) const {
  metadata = {{"ingot.version", INGOT_VERSION_STRING}, {"ingot.number", std::to_string(n)}};
  auto add = [&](const std::string& name, const StateDict& d) {
    metadata["ingot.part/" + name] = std::to_string(d.tensors.size());
    for (const auto& [key, value] : d.values) metadata[name + "/" + key] = value;
    for (const auto& [key, t] : d.tensors) tensors.emplace_back(name + "." + key, t);
  };
  for (const Part& p : parts) add(p.name, p.get());
  add("default_generator", generator_state(default_generator()));
  metadata["ingot.tuning_file"] = tuning_file(tensors);
}

// Removes the oldest files of this run beyond `keep`. One that was not written or read here is read
// first: a damaged file may be all that is left of something, and stays.
void Checkpoint::State::prune(const SourceLoc& loc) {
  if (o.keep <= 0) return;
  std::vector<int64_t> run(older.begin(), older.end());
  run.insert(run.end(), whole.begin(), whole.end());
  std::sort(run.begin(), run.end());
  size_t count = run.size();
  for (size_t i = 0; i < run.size() && count > static_cast<size_t>(o.keep); ++i, --count) {
    try {
      if (older.erase(run[i])) WholeFile(path_of(run[i]), loc);
    } catch (const Error&) {
      continue;
    }
    std::error_code error;
    fs::remove(path_of(run[i]), error);
    whole.erase(run[i]);
  }
}

std::string Checkpoint::State::write(std::vector<HostTensor> tensors, const io::Metadata& metadata,
                                     const SourceLoc& loc) {
  io::AtomicFile out(path_of(next), "save", loc);
  io::host_file(std::move(tensors), metadata, "save", loc)
      .write([&](const void* data, size_t bytes) { out.write(data, bytes); });
  // Under the first free number: existing files stay, whoever wrote them.
  while (!out.commit_new(path_of(next))) ++next;
  whole.insert(next);
  // Only now, with the new file in place, is an old one removed.
  prune(loc);
  return path_of(next++);
}

// On a thread, or right here when none can be started. Errors are thrown by wait().
void Checkpoint::State::write_beside(std::vector<HostTensor> tensors, const io::Metadata& metadata,
                                     const SourceLoc& loc) {
  auto job = [this, host = std::make_shared<std::vector<HostTensor>>(std::move(tensors)), metadata,
              loc] {
    try {
      write(std::move(*host), metadata, loc);
    } catch (...) {
      failed = std::current_exception();
    }
  };
  try {
    writer = std::thread(job);
  } catch (const std::system_error&) {
    job();
  }
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
  int signal = s.o.handle_signals ? io::pending_signal() : 0;
  if (s.o.asynchronous && !signal) {
    s.write_beside(std::move(host), metadata, loc);
    s.remember(number);
    return;
  }
  const std::string path = s.write(std::move(host), metadata, loc);
  s.remember(number);
  if (!signal) return;
  std::cerr << "checkpoint: " << (signal == SIGTERM ? "SIGTERM" : "SIGINT") << ": saved " << path
            << ", exiting" << std::endl;
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

StateDict Checkpoint::State::state_in(const WholeFile& file, const std::string& part,
                                      const std::string& path, const SourceLoc& loc) const {
  const io::Metadata& metadata = file.header.metadata;
  if (!metadata.count("ingot.part/" + part))
    throw Error(
        ErrorKind::State, "resume", "\"" + path + "\" has no " + part, loc,
        "give Checkpoint the parts it was given when the file was saved, or another folder");
  StateDict d;
  for (auto i = metadata.lower_bound(part + "/");
       i != metadata.end() && i->first.compare(0, part.size() + 1, part + "/") == 0; ++i)
    d.values[i->first.substr(part.size() + 1)] = i->second;
  const io::Source source = io::source_of(file.file, loc);
  for (const io::SafeTensors::Entry& e : file.header.entries)
    if (e.name.compare(0, part.size() + 1, part + ".") == 0)
      d.tensors.emplace_back(e.name.substr(part.size() + 1),
                             io::read_entry(source, file.header, e, {}, "resume", path, loc));
  return d;
}

// The same names, shapes and types as the part has now: load_state_dict() would convert, or fail
// half-way.
void Checkpoint::State::check(const Part& part, const StateDict& saved, const std::string& path,
                              const SourceLoc& loc) const {
  auto differ = [&](const std::string& what) {
    throw Error(ErrorKind::State, "resume",
                "\"" + io::printable(path) + "\" is of another " + part.name + ": " + what, loc,
                "make the parts as they were when the file was saved, or use another folder");
  };
  std::unordered_map<std::string_view, const Tensor*> theirs;
  for (const auto& [name, t] : saved) theirs.emplace(name, &t);
  const StateDict own = part.get();
  for (const auto& [name, t] : own) {
    const auto found = theirs.find(name);
    if (found == theirs.end()) differ("it has no \"" + name + "\"");
    if (found->second->dtype() != t.dtype() || !(found->second->shape() == t.shape()))
      differ("\"" + name + "\" is " + describe(*found->second) + " in the file and " + describe(t) +
             " here");
    theirs.erase(found);
  }
  if (!theirs.empty())
    differ("it has \"" + io::printable(theirs.begin()->first) + "\", which this run does not have");
}

// In two steps: everything is read and compared, then applied. If a part still refuses its state,
// the others are restored.
void Checkpoint::State::restore(const WholeFile& file, const std::string& path,
                                const SourceLoc& loc) {
  std::vector<StateDict> states, before;
  for (const Part& p : parts) states.push_back(state_in(file, p.name, path, loc));
  const StateDict generator = state_in(file, "default_generator", path, loc);
  const StateDict generator_before = generator_state(default_generator());
  for (size_t i = 0; i < parts.size(); ++i)
    if (parts[i].fixed) check(parts[i], states[i], path, loc);
  for (const Part& p : parts) {
    StateDict now = p.get();
    // The values as they are now, even if the tensors are overwritten.
    for (auto& [name, t] : now.tensors) t = tensor_of(NodeRef(t.cell()->current()));
    before.push_back(std::move(now));
  }
  size_t taken = 0;
  try {
    load_generator(default_generator(), generator, loc);
    for (; taken < parts.size(); ++taken) parts[taken].set(states[taken], loc);
  } catch (...) {
    load_generator(default_generator(), generator_before, loc);
    for (size_t i = 0; i <= taken && i < parts.size(); ++i) parts[i].set(before[i], loc);
    throw;
  }
}

void Checkpoint::State::compare_tuning(const io::Metadata& metadata, const std::string& path) {
  NamedTensors tensors;
  for (const Part& p : parts) {
    StateDict d = p.get();
    tensors.insert(tensors.end(), d.tensors.begin(), d.tensors.end());
  }
  const auto tuned = metadata.find("ingot.tuning_file");
  const std::string now = tuning_file(tensors);
  if (tuned != metadata.end() && tuned->second != now && !now.empty() && !tuned->second.empty())
    say("\"" + path + "\" was saved with the tuning file " + io::printable(tuned->second) +
        ", this run uses " + now + ": the last bits may differ");
}

int64_t Checkpoint::resume(SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  wait(loc);
  State& s = *s_;
  s.messages.clear();
  s.remove_leftovers(loc);
  const State::Files all = s.o.fresh ? State::Files() : s.files(loc);
  std::string newest;  // what is wrong with it
  for (size_t i = all.size(); i-- > 0;) {
    const std::string& path = all[i].second;
    std::unique_ptr<WholeFile> file;
    try {
      file = std::make_unique<WholeFile>(path, loc);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::Io) throw;
      if (newest.empty()) newest = e.reason();
      s.whole.erase(all[i].first);
      s.older.erase(all[i].first);
      s.say("skipped: " + e.reason() + (i ? "; trying the previous one" : "; there is no other"));
      continue;
    }
    const io::Metadata& metadata = file->header.metadata;
    const int64_t number = number_in(metadata, path, loc);
    s.restore(*file, path, loc);
    s.compare_tuning(metadata, path);
    s.whole.insert(all[i].first);
    for (size_t k = 0; k < i; ++k)
      if (!s.whole.count(all[k].first)) s.older.insert(all[k].first);
    s.remember(number);
    return number;
  }
  if (!all.empty())
    throw Error(ErrorKind::Io, "resume",
                "none of the " + std::to_string(all.size()) + " checkpoints in \"" +
                    io::printable(s.folder) + "\" is intact; the newest: " + newest,
                loc,
                "restore a copy of one, or start over: CheckpointOptions{.fresh = true}, or move "
                "them away");
  s.remember(0);
  return 0;
}

std::vector<std::string> Checkpoint::files() const {
  std::vector<std::string> paths;
  for (auto& [n, path] : s_->files(SourceLoc::current())) paths.push_back(path);
  return paths;
}

const std::vector<std::string>& Checkpoint::messages() const { return s_->messages; }

}  // namespace ingot
