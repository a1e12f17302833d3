// What files survive: two writers, planted links, folders that cannot be listed, resumes that fail
// half-way, other data, and files that somebody cuts while they are used.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>

#include "io/file.h"
#include "support/folder.h"

using namespace ingot;

namespace {

std::string error_of(const std::function<void()>& f, ErrorKind* kind = nullptr) {
  try {
    f();
  } catch (const Error& e) {
    if (kind) *kind = e.kind();
    return e.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<float> weights(const nn::Module& m) {
  std::vector<float> all;
  for (const Tensor& p : m.parameters())
    for (float v : p.to_vector<float>()) all.push_back(v);
  return all;
}

data::DataLoader loader_of(const Tensor& x) {
  return data::DataLoader(data::TensorDataset({x}), {.batch_size = 2, .num_workers = 0, .seed = 1});
}

}  // namespace

TEST_CASE("a resume that fails changes nothing, and names the user's line") {
  Folder f;
  manual_seed(1);
  {
    nn::Linear m(4, 4);
    optim::Adam o(m.parameters(), {.lr = 0.1});
    m(ones({2, 4})).sum().backward();
    o.step();
    Checkpoint(f.path, {.handle_signals = false}, m, o).save(7);
  }
  nn::Linear m(4, 4);
  const std::vector<float> before = weights(m);
  uint64_t offset = 0;
  auto unchanged = [&](const std::string& message) {
    CHECK(has(message, "durability_test.cpp"));
    CHECK_FALSE(has(message, "checkpoint.h"));
    CHECK(weights(m) == before);
    CHECK(default_generator().offset() == offset);
  };
  SUBCASE("another optimiser") {
    optim::SGD o(m.parameters(), {.lr = 0.1, .momentum = 0.9});
    Checkpoint c(f.path, {.handle_signals = false}, m, o);
    offset = default_generator().offset();
    unchanged(error_of([&] { c.resume(); }));
  }
  SUBCASE("an optimiser of other shapes") {
    nn::Linear other(3, 3);
    optim::Adam o(other.parameters(), {.lr = 0.1});
    Checkpoint c(f.path, {.handle_signals = false}, m, o);
    offset = default_generator().offset();
    unchanged(error_of([&] { c.resume(); }));
  }
  SUBCASE("tensors of another type") {
    nn::Linear half(4, 4);
    half.to(bfloat16);
    optim::Adam o(m.parameters(), {.lr = 0.1});
    Checkpoint c(f.path, {.handle_signals = false}, half, o);
    offset = default_generator().offset();
    const std::string message = error_of([&] { c.resume(); });
    CHECK(has(message, "bfloat16"));
    unchanged(message);
  }
  SUBCASE("a part of one's own that throws when it is loaded") {
    struct Stubborn {
      StateDict state_dict() const { return {}; }
      void load_state_dict(const StateDict&) {
        if (calls++ == 0) throw Error(ErrorKind::State, "load_state_dict", "no");
      }
      int calls = 0;
    } own;
    Folder g;
    optim::Adam o(m.parameters(), {.lr = 0.1});
    {
      nn::Linear saved(4, 4);
      optim::Adam so(saved.parameters(), {.lr = 0.2});
      Stubborn s;
      Checkpoint(g.path, {.handle_signals = false}, saved, so, s).save(1);
    }
    const std::vector<float> now = weights(m);
    Checkpoint c(g.path, {.handle_signals = false}, m, o, own);
    CHECK(!error_of([&] { c.resume(); }).empty());
    CHECK(weights(m) == now);
    CHECK(o.lr() == 0.1);
    CHECK(own.calls == 2);  // put back as well
  }
}

TEST_CASE("one program per folder; its temporary files are its own") {
  Folder f;
  nn::Linear m(2, 2);
  Checkpoint c(f.path, {.handle_signals = false}, m);
  c.save(1);
  CHECK(error_of([&] {
          Checkpoint(f.path, {.handle_signals = false}, m).save(2);
        }).empty());  // the same program
  // Another one learns who holds it, as resume.py tries.
  const std::string lock = read_file(f / ".lock");
  CHECK(lock == "process " + std::to_string(getpid()) + " on " + io::host_name() + "\n");
  // Temporary files: those of processes that are gone are cleared away, no others.
  io::AtomicFile mine(f / "ckpt-000009.safetensors", "test", {});
  std::string name;
  for (const std::string& n : f.files())
    if (has(n, ".tmp-")) name = n;
  const std::string end = name.substr(name.find('-', name.find(".tmp-") + 5));
  pid_t gone = fork();
  if (gone == 0) _exit(0);
  waitpid(gone, nullptr, 0);
  const std::string of_dead = "ckpt-000003.safetensors.tmp-" + std::to_string(gone) + end,
                    of_other_host = "ckpt-000003.safetensors.tmp-" + std::to_string(gone) +
                                    "-00000000-00000000",
                    of_living = "ckpt-000003.safetensors.tmp-" + std::to_string(getppid()) + end,
                    of_before = name.substr(0, name.size() - 8) + "00000000";
  for (const std::string& n : {of_dead, of_other_host, of_living, of_before})
    write_file(f / n, "half");
  write_file(f / "notes.txt", "mine");
  CHECK(c.resume() == 2);
  const std::vector<std::string> left = f.files();
  auto there = [&](const std::string& n) { return std::count(left.begin(), left.end(), n) == 1; };
  CHECK_FALSE(there(of_dead));
  CHECK_FALSE(there(of_before));
  CHECK(there(of_other_host));
  CHECK(there(of_living));
  CHECK(there(name));
  CHECK(there("notes.txt"));
}

TEST_CASE("numbers in file names: never over a file that is there, never past the last") {
  Folder f;
  nn::Linear m(2, 2);
  write_file(f / "ckpt-9223372036854775807.safetensors", "huge");
  write_file(f / "ckpt-99999999999999999999.safetensors", "huger");
  write_file(f / "ckpt-0000001.safetensors", "not ours");
  Checkpoint c(f.path, {.keep = 1, .handle_signals = false}, m);
  c.save(1);
  write_file(f / "ckpt-000002.safetensors", "somebody's");
  c.save(2);
  CHECK(c.files() ==
        std::vector<std::string>{f / "ckpt-000002.safetensors", f / "ckpt-000003.safetensors"});
  CHECK(read_file(f / "ckpt-000002.safetensors") == "somebody's");
  CHECK(c.resume() == 2);
  CHECK(read_file(f / "ckpt-9223372036854775807.safetensors") == "huge");
}

TEST_CASE("files of another run are not removed by one that did not resume from them") {
  Folder f;
  nn::Linear m(2, 2);
  {
    Checkpoint c(f.path, {.keep = 2, .handle_signals = false}, m);
    for (int i = 1; i <= 3; ++i) c.save(i);
  }
  {
    Checkpoint c(f.path, {.keep = 2, .handle_signals = false}, m);
    for (int i = 1; i <= 3; ++i) c.save(10 + i);
    CHECK(c.files().size() == 4);
  }
  // One that resumed continues with them.
  Checkpoint c(f.path, {.keep = 2, .handle_signals = false}, m);
  CHECK(c.resume() == 13);
  c.save(14);
  CHECK(c.files().size() == 2);
}

TEST_CASE("a folder that cannot be listed is an error, not an empty one") {
  Folder f;
  nn::Linear m(2, 2);
  Checkpoint c(f.path, {.handle_signals = false}, m);
  c.save(1);
  rlimit old{}, tight{};
  getrlimit(RLIMIT_NOFILE, &old);
  tight = old;
  tight.rlim_cur = 0;  // no file can be opened: as on a disk that fails
  setrlimit(RLIMIT_NOFILE, &tight);
  ErrorKind listing{}, resuming{};
  const std::string files = error_of([&] { c.files(); }, &listing),
                    resume = error_of([&] { c.resume(); }, &resuming);
  setrlimit(RLIMIT_NOFILE, &old);
  CHECK(listing == ErrorKind::Io);
  CHECK(resuming == ErrorKind::Io);
  CHECK(has(files, "cannot be listed"));
  CHECK(has(resume, "cannot be listed"));
  CHECK(c.resume() == 1);
}

TEST_CASE("other data of the same size is refused") {
  Folder f;
  nn::Linear m(2, 2);
  const Tensor a = randn({8, 2}, {}, Generator(1)), b = randn({8, 2}, {}, Generator(2));
  data::DataLoader first = loader_of(a), same = loader_of(a.clone()), other = loader_of(b);
  Checkpoint(f.path, {.handle_signals = false}, m, first).save(1);
  CHECK(Checkpoint(f.path, {.handle_signals = false}, m, same).resume() == 1);
  ErrorKind kind{};
  Checkpoint c(f.path, {.handle_signals = false}, m, other);
  CHECK(has(error_of([&] { c.resume(); }, &kind), "other data"));
  CHECK(kind == ErrorKind::State);
  // Files of tokens, and folders of images, by what is in them.
  std::string text(100000, 'a');
  write_file(f / "a.txt", text);
  data::TokenFile tokens(f / "a.txt", 16);
  text[50000] = 'b';
  write_file(f / "b.txt", text);
  CHECK(tokens.fingerprint() == data::TokenFile(f / "a.txt", 16).fingerprint());
  std::fill(text.begin() + 20000, text.begin() + 40000, 'c');
  write_file(f / "b.txt", text);
  CHECK(tokens.fingerprint() != data::TokenFile(f / "b.txt", 16).fingerprint());
  CHECK(data::Shapes({.seed = 1}).fingerprint() != data::Shapes({.seed = 2}).fingerprint());
}

TEST_CASE("two threads save to one path: both succeed, the file is one of theirs") {
  Folder f;
  const Tensor a = ones({1 << 12}).eval_(), b = zeros({1 << 13}).eval_();
  std::atomic<int> failed{0};
  for (int round = 0; round < 20; ++round) {
    auto save = [&](const Tensor& t) {
      try {
        io::save_safetensors(f / "same.safetensors", {{"w", t}});
      } catch (const Error&) {
        ++failed;
      }
    };
    std::thread x(save, a), y(save, b);
    x.join();
    y.join();
    const int64_t n = io::load_safetensors(f / "same.safetensors")[0].second.numel();
    CHECK((n == 1 << 12 || n == 1 << 13));
  }
  CHECK(failed == 0);
  CHECK(f.files() == std::vector<std::string>{"same.safetensors"});
}

TEST_CASE("a link planted under a temporary name is not followed") {
  Folder f;
  write_file(f / "victim", "precious");
  std::filesystem::create_symlink("victim", f / ("x.safetensors.tmp-" + std::to_string(getpid())));
  io::save_safetensors(f / "x.safetensors", {{"w", ones({3})}});
  CHECK(read_file(f / "victim") == "precious");
  CHECK(io::load_safetensors(f / "x.safetensors").size() == 1);
}

TEST_CASE("a model file's checksum: every changed byte is found, what others wrote loads") {
  Folder f;
  nn::Linear m(4, 4);
  io::save_weights(m, f / "m.safetensors", {{"note", "mine"}});
  const std::string whole = read_file(f / "m.safetensors");
  CHECK(io::SafeTensors(f / "m.safetensors").verify());
  CHECK(io::SafeTensors(f / "m.safetensors").metadata() == io::Metadata{{"note", "mine"}});
  std::string damaged = whole;
  damaged[damaged.size() - 3] = static_cast<char>(damaged[damaged.size() - 3] ^ 1);
  write_file(f / "m.safetensors", damaged);
  ErrorKind kind{};
  CHECK(
      has(error_of([&] { io::load_weights(m, f / "m.safetensors"); }, &kind), "checksum is wrong"));
  CHECK(kind == ErrorKind::Io);
  CHECK(!error_of([&] { io::load_safetensors(f / "m.safetensors"); }).empty());
  CHECK(!error_of([&] { io::load_tensors(f / "m.safetensors"); }).empty());
  // Without one nothing is compared.
  const size_t at = damaged.find("ingot.checksum");
  damaged.replace(at, 14, "other.checksum");
  write_file(f / "m.safetensors", damaged);
  CHECK_FALSE(io::SafeTensors(f / "m.safetensors").verify());
  CHECK(io::load_weights(m, f / "m.safetensors").ok());
}

TEST_CASE("pipes are refused at once, and a file that becomes shorter is an error") {
  Folder f;
  REQUIRE(mkfifo((f / "pipe.safetensors").c_str(), 0600) == 0);
  for (const auto& read :
       std::vector<std::function<void()>>{[&] { io::load_tensors(f / "pipe.safetensors"); },
                                          [&] { io::SafeTensors(f / "pipe.safetensors"); },
                                          [&] { data::load_idx(f / "pipe.safetensors"); },
                                          [&] { data::TokenFile(f / "pipe.safetensors", 4); },
                                          [&] { data::load_image(f / "pipe.safetensors"); }}) {
    ErrorKind kind{};
    CHECK(has(error_of(read, &kind), "pipe"));
    CHECK(kind == ErrorKind::Io);
  }
  write_file(f / "t.txt", std::string(1 << 16, 'x'));
  data::TokenFile tokens(f / "t.txt", 64);
  CHECK(tokens.get(1000)[0].size(0) == 64);
  io::save_safetensors(f / "m.safetensors", {{"w", ones({1 << 14})}});
  io::SafeTensors open(f / "m.safetensors");
  std::filesystem::resize_file(f / "t.txt", 100);
  std::filesystem::resize_file(f / "m.safetensors", 5000);
  CHECK(has(error_of([&] { tokens.get(1000); }), "became shorter"));
  CHECK(has(error_of([&] { open.get("w"); }), "became shorter"));
}

// In a child: a mapping would end it by SIGBUS.
TEST_CASE(
    "large files that are cut and grow again while they are loaded end in values or an error") {
  Folder f;
  constexpr uintmax_t kSize = uintmax_t{80} << 20;
  io::save_npy(f / "a.npy", zeros({(int64_t{80} << 20) / 4}));
  const std::string idx = std::string("\0\0\x08\x01\x05\0\0\0", 8);
  write_file(f / "a-ubyte", idx);
  std::filesystem::resize_file(f / "a-ubyte", 8 + kSize);
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<bool> stop{false};
    std::thread cutter([&] {
      while (!stop)
        for (const char* name : {"a.npy", "a-ubyte"}) {
          std::error_code ignored;
          std::filesystem::resize_file(f / name, 1 << 20, ignored);
          std::filesystem::resize_file(f / name, (name[1] == '-' ? 8 : 128) + kSize, ignored);
        }
    });
    int ended = 0;
    for (int i = 0; i < 12; ++i)
      for (const auto& read : std::vector<std::function<void()>>{
               [&] { io::load_npy(f / "a.npy"); }, [&] { data::load_idx(f / "a-ubyte"); }}) {
        ErrorKind kind = ErrorKind::Io;
        error_of(read, &kind);
        ended += kind == ErrorKind::Io;
      }
    stop = true;
    cutter.join();
    _exit(ended == 24 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("names from files: control characters are shown, not sent") {
  CHECK(io::printable("a\x1b]0;x\x07z") == "a\\x1b]0;x\\x07z");
  CHECK(io::printable("caf\xe9") == "caf\\xe9");
  CHECK(io::printable("caf\xc3\xa9 \xc2\x9b") == "caf\xc3\xa9 \\xc2\\x9b");
  CHECK(io::printable(std::string(500, 'x')).size() == 203);
  Folder f;
  const std::string message = error_of([&] { io::load_tensors(f / "a\x1b[31m"); });
  CHECK(has(message, "a\\x1b[31m"));
}
