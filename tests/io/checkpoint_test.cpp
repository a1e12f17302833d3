// Checkpoints inside one program: what is saved and restored, what is kept, what is said. resume.py
// kills whole programs.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <sys/mount.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <functional>

#include "io/hash.h"
#include "support/folder.h"

using namespace ingot;

namespace {

ErrorKind kind_of(const std::function<void()>& f, std::string* message = nullptr) {
  try {
    f();
  } catch (const Error& e) {
    if (message) *message = e.what();
    return e.kind();
  }
  return ErrorKind::Internal;
}

// Everything a run has, small.
struct Run {
  nn::Sequential model{nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 3)};
  optim::AdamW opt{model.parameters(), {.lr = 0.01}};
  optim::StepLR schedule{opt, 1, 0.5};
  amp::GradScaler scaler{{.init_scale = 256, .growth_interval = 3}};
  data::DataLoader train{data::TensorDataset({randn({20, 4}, {}, Generator(1)),
                                              randint(0, 3, {20}, {}, Generator(2))}),
                         {.batch_size = 4, .shuffle = true, .seed = 5}};
  Generator noise{9};

  double epoch() {
    Tensor loss;
    for (auto [x, y] : train) {
      loss =
          cross_entropy(model(x + randn(x.shape(), {}, noise) * 0.1 + randn(x.shape()) * 0.1), y);
      scaler.scale(loss).backward();
      scaler.step(opt);
      scaler.update();
    }
    schedule.step();
    return loss.item();
  }
  std::vector<float> weights() const {
    std::vector<float> all;
    for (const Tensor& p : model.parameters())
      for (float v : p.to_vector<float>()) all.push_back(v);
    return all;
  }
};

}  // namespace

TEST_CASE("the checksum is XXH64") {
  auto sum = [](const std::string& s, size_t piece) {
    io::Hash h;
    for (size_t i = 0; i < s.size(); i += piece)
      h.add({reinterpret_cast<const uint8_t*>(s.data()) + i, std::min(piece, s.size() - i)});
    return h.sum();
  };
  CHECK(sum("", 1) == 0xef46db3751d8e999u);
  CHECK(sum("a", 1) == 0xd24ec4f1a98c6e5bu);
  CHECK(sum("abc", 2) == 0x44bc2cf5ad770999u);
  std::string longer = "Nobody inspects the spammish repetition";
  CHECK(sum(longer, 100) == 0xfbcea83c8a378bf1u);
  for (size_t piece : {1, 3, 7, 32, 33}) CHECK(sum(longer, piece) == 0xfbcea83c8a378bf1u);
}

TEST_CASE("a run resumes to the same bit, with everything that belongs to it") {
  for (bool asynchronous : {false, true}) {
    CAPTURE(asynchronous);
    Folder f;
    manual_seed(1);
    Run whole;
    std::vector<double> losses;
    for (int e = 0; e < 4; ++e) losses.push_back(whole.epoch());

    manual_seed(1);
    {
      Run first;
      Checkpoint ckpt(f.path, {.asynchronous = asynchronous}, first.model, first.opt,
                      first.schedule, first.scaler, first.train, first.noise);
      CHECK(ckpt.resume() == 0);
      for (int e = 0; e < 2; ++e) {
        CHECK(first.epoch() == losses[static_cast<size_t>(e)]);
        ckpt.save(e + 1);
      }
    }
    manual_seed(77);
    Run second;
    Checkpoint ckpt(f.path, second.model, second.opt, second.schedule, second.scaler, second.train,
                    second.noise);
    CHECK(ckpt.resume() == 2);
    CHECK(ckpt.messages().empty());
    CHECK(second.opt.lr() == 0.0025);
    for (int e = 2; e < 4; ++e) CHECK(second.epoch() == losses[static_cast<size_t>(e)]);
    CHECK(second.weights() == whole.weights());
    CHECK(second.scaler.get_scale().item() == whole.scaler.get_scale().item());
    CHECK(second.noise.offset() == whole.noise.offset());
  }
}

TEST_CASE("the last ones are kept; the weights in a file load by name") {
  Folder f;
  Run r;
  Checkpoint ckpt(f / "deep/er", {.keep = 2}, r.model, r.opt);
  for (int i = 1; i <= 5; ++i) ckpt.save(i);
  CHECK(ckpt.files().size() == 2);
  CHECK(ckpt.files()[1] == f / "deep/er/ckpt-000005.safetensors");
  Run other;
  CHECK(other.weights() != r.weights());
  io::LoadReport report = io::load_weights(
      other.model, ckpt.files()[1], {.mapping = {{"model.*", "*"}}, .ignore = {"optimizer.*"}});
  CHECK(report.ok());
  CHECK(other.weights() == r.weights());
  CHECK(io::SafeTensors(ckpt.files()[1]).metadata().at("ingot.number") == "5");
  Checkpoint all(f / "all", {.keep = 0}, r.model);
  for (int i = 1; i <= 5; ++i) all.save(i);
  CHECK(all.files().size() == 5);
  CHECK(kind_of([&] { Checkpoint(f / "x", {.keep = -1}, r.model); }) == ErrorKind::Value);
  write_file(f / "file", "");
  CHECK(kind_of([&] { Checkpoint(f / "file/x", r.model); }) == ErrorKind::Io);
}

TEST_CASE("damaged files are reported and skipped, at every byte") {
  Folder f;
  Run r;
  Checkpoint ckpt(f.path, r.model, r.opt);
  ckpt.save(1);
  r.epoch();
  ckpt.save(2);
  std::string newest = ckpt.files()[1], whole = read_file(newest);
  size_t step = whole.size() / 60 + 1;
  for (size_t at = 0; at < whole.size(); at += step) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    write_file(newest, damaged);
    CHECK(ckpt.resume() == 1);
    CHECK(ckpt.messages().size() == 1);
  }
  for (size_t n = 0; n < whole.size(); n += 10 * step) {
    write_file(newest, whole.substr(0, n));
    CHECK(ckpt.resume() == 1);
  }
  write_file(newest, whole);
  CHECK(ckpt.resume() == 2);
  CHECK(ckpt.messages().empty());
  // With none left that is whole, training does not begin anew by itself.
  write_file(ckpt.files()[0], "x");
  write_file(ckpt.files()[1], "y");
  std::string message;
  std::vector<float> before = r.weights();
  CHECK(kind_of([&] { ckpt.resume(); }, &message) == ErrorKind::Io);
  CHECK(message.find("none of the 2 checkpoints") != std::string::npos);
  CHECK(ckpt.messages().size() == 2);
  CHECK(r.weights() == before);
  Checkpoint fresh(f.path, {.keep = 1, .fresh = true}, r.model, r.opt);
  CHECK(fresh.resume() == 0);
  for (int i = 1; i <= 3; ++i) fresh.save(i);
  // What could not be read stays, whatever `keep` is.
  CHECK(f.files() == std::vector<std::string>{".lock", "ckpt-000001.safetensors",
                                              "ckpt-000002.safetensors",
                                              "ckpt-000005.safetensors"});
  CHECK(read_file(f / "ckpt-000001.safetensors") == "x");
}

TEST_CASE("other parts than were saved") {
  Folder f;
  Run r;
  {
    Checkpoint ckpt(f.path, r.model);
    ckpt.save(1);
  }
  std::string message;
  Checkpoint more(f.path, r.model, r.opt);
  CHECK(kind_of([&] { more.resume(); }, &message) == ErrorKind::State);
  CHECK(message.find("optimizer") != std::string::npos);
  nn::Sequential wider(nn::Linear(5, 8), nn::ReLU(), nn::Linear(8, 3));
  Checkpoint other(f.path, wider);
  CHECK_THROWS_AS(other.resume(), Error);
}

TEST_CASE("a number that is none") {
  Folder f;
  Run r;
  Checkpoint ckpt(f.path, r.model);
  ckpt.save(1);
  const std::string path = ckpt.files().back();
  io::Metadata metadata = io::SafeTensors(path).metadata();
  for (const char* number : {"1x", "", " 1", "9223372036854775808"}) {
    metadata["ingot.number"] = number;
    io::save_safetensors(path, io::load_safetensors(path), metadata);
    CHECK(kind_of([&] { ckpt.resume(); }) == ErrorKind::State);
  }
}

TEST_CASE("two of a kind, and parts of one's own") {
  struct Counter {
    int64_t n = 0;
    StateDict state_dict() const {
      StateDict d;
      d.set("n", n);
      return d;
    }
    void load_state_dict(const StateDict& d) { n = d.integer("n"); }
  };
  Folder f;
  nn::Linear a(2, 2), b(2, 2);
  Counter c{5}, d{6};
  std::vector<float> wa = a.weight().to_vector<float>(), wb = b.weight().to_vector<float>();
  Checkpoint ckpt(f.path, a, b, c, d);
  ckpt.save(1);
  {
    NoGrad guard;
    Tensor w = a.weight();
    w.zero_();
    w = b.weight();
    w.zero_();
  }
  c.n = d.n = 0;
  CHECK(ckpt.resume() == 1);
  CHECK(a.weight().to_vector<float>() == wa);
  CHECK(b.weight().to_vector<float>() == wb);
  CHECK(c.n == 5);
  CHECK(d.n == 6);
}

TEST_CASE("save_every") {
  Folder f;
  Run r;
  Checkpoint ckpt(f.path, r.model);
  int saved = 0;
  for (int step = 1; step <= 10; ++step) saved += ckpt.save_every(step, 4);
  CHECK(saved == 2);
  CHECK(ckpt.resume() == 8);
  CHECK(kind_of([&] { ckpt.save_every(1, 0); }) == ErrorKind::Value);
}

TEST_CASE("a full disk: the save fails, the files stay, training continues") {
  for (bool asynchronous : {false, true}) {
    CAPTURE(asynchronous);
    Folder f;
    Run r;
    Checkpoint ckpt(f.path, {.asynchronous = asynchronous}, r.model, r.opt);
    ckpt.save(1);
    ckpt.wait();
    std::string before = read_file(ckpt.files()[0]);
    rlimit old{}, tight{};
    getrlimit(RLIMIT_FSIZE, &old);
    tight = old;
    tight.rlim_cur = 1000;
    setrlimit(RLIMIT_FSIZE, &tight);  // whose signal would end the program
    std::string message;
    try {
      ckpt.save(2);
      ckpt.wait();
    } catch (const io::DiskFull& e) {
      message = e.what();
      CHECK(e.kind() == ErrorKind::Io);
    }
    setrlimit(RLIMIT_FSIZE, &old);
    CHECK(message.find("ulimit -f") != std::string::npos);
    CHECK(f.files() == std::vector<std::string>{".lock", "ckpt-000001.safetensors"});
    CHECK(read_file(ckpt.files()[0]) == before);
    r.epoch();
    ckpt.save(3);
    ckpt.wait();
    CHECK(ckpt.resume() == 3);
  }
}

TEST_CASE("a disk that is really full") {
  Folder f;
  std::filesystem::create_directory(f / "disk");
  if (mount("none", (f / "disk").c_str(), "tmpfs", 0, "size=16k") != 0) {
    MESSAGE("a small disk could not be made here: left out");
    return;
  }
  {
    Run r;
    Checkpoint ckpt(f / "disk", r.model);
    ckpt.save(1);
    std::string before = read_file(ckpt.files()[0]);
    std::string filler(11 << 10, 'x');
    write_file(f / "disk/filler", filler);
    Run large;
    nn::Linear big(100, 100);
    Checkpoint more(f / "disk", {.keep = 1}, big);
    CHECK(kind_of([&] { more.save(2); }) == ErrorKind::Io);
    CHECK(ckpt.files().size() == 1);
    CHECK(read_file(ckpt.files()[0]) == before);
    CHECK(ckpt.resume() == 1);
  }
  umount((f / "disk").c_str());
}

TEST_CASE("a signal that the program handles itself is left alone") {
  Folder f;
  Run r;
  auto handler = std::signal(SIGTERM, SIG_IGN);
  {
    Checkpoint ckpt(f.path, r.model);
    std::raise(SIGTERM);
    ckpt.save(1);
  }
  CHECK((std::signal(SIGTERM, SIG_DFL) == SIG_IGN));  // (the test's own runner has a handler, too)
  {
    Checkpoint ckpt(f.path, r.model);
    struct sigaction now {};
    sigaction(SIGTERM, nullptr, &now);
    CHECK((now.sa_handler != SIG_DFL));
  }
  struct sigaction now {};
  sigaction(SIGTERM, nullptr, &now);
  CHECK((now.sa_handler == SIG_DFL));
  std::signal(SIGTERM, handler);
}
