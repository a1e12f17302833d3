// The loader. An epoch is an order of samples and a ring of batches: workers fill its slots
// in batch order, as far ahead as the ring is long; the loop takes them out in the same
// order. Nothing depends on which worker was faster. Where batches go to another device,
// one more thread copies them there, in order too, and never more than two ahead: batches
// in the ring wait in host memory.
#include "ingot/data/loader.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <system_error>
#include <thread>

#include "data/host.h"
#include "ingot/ops.h"
#include "ingot/random.h"
#include "ops/common.h"

namespace ingot::data {

void Batch::check(size_t n, const SourceLoc& loc) const {
  if (tensors_.size() == n) return;
  fail(ErrorKind::Value, "DataLoader",
       "a batch of this dataset has " + std::to_string(tensors_.size()) + " tensors, not " +
           std::to_string(n),
       user_loc(loc),
       "write for (const auto& batch : loader) and take batch[i], or auto [...] = batch.as<" +
           std::to_string(tensors_.size()) + ">()");
}

namespace {

// Work that all workers of an epoch share.
class Epoch {
 public:
  Epoch(const Dataset& dataset, const DataLoaderOptions& o, uint64_t seed, int64_t number,
        std::vector<int64_t> order, int64_t first, int64_t batches, const SourceLoc& loc)
      : dataset_(dataset),
        o_(o),
        seed_(seed),
        number_(number),
        order_(std::move(order)),
        next_(first),
        taken_(first),
        emptied_(first),
        batches_(batches),
        loc_(loc) {
    int workers = o.num_workers;
    if (workers < 0)
      workers = std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / 2, 1, 4);
    workers = static_cast<int>(std::min<int64_t>(workers, batches - first));
    ring_.resize(static_cast<size_t>(std::max(1, workers * o.prefetch_factor)));
    const bool elsewhere = o.device && *o.device != Device(DeviceType::CPU, 0);
    // Where the system provides fewer threads, the available ones do the work; without
    // any, the calling thread does.
    threads_.reserve(static_cast<size_t>(workers) + 1);
    try {
      for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
      brings_ = elsewhere && workers > 0;
      if (brings_) threads_.emplace_back([this] { bring(); });
    } catch (const std::exception&) {  // std::system_error, std::bad_alloc
      brings_ = false;
    }
  }
  ~Epoch() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    room_.notify_all();
    ready_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

  // The next batch; false after the last one.
  bool take(Batch& out) {
    if (taken_ == batches_) return false;
    out = Batch();  // its memory is free before more is asked for
    if (threads_.empty()) {
      out = on_device(make(taken_++));
      return true;
    }
    std::unique_lock lock(mutex_);
    if (!brings_) pull(lock, taken_);
    ready_.wait(lock, [&] { return !brought_.empty(); });
    Place p = std::move(brought_.front());
    brought_.pop_front();
    out = std::move(p.batch);
    std::exception_ptr error = p.error;
    ++taken_;
    lock.unlock();
    room_.notify_all();
    if (error) std::rethrow_exception(error);
    if (!brings_ && o_.device) out = on_device(out);
    return true;
  }
  bool done() const { return taken_ == batches_; }

 private:
  struct Place {
    Batch batch;
    std::exception_ptr error;
    bool full = false;
  };

  Batch make(int64_t number) const {
    LocScope place(loc_);  // errors in here name the line that made the loader
    size_t begin = static_cast<size_t>(number * o_.batch_size),
           end = std::min(order_.size(), begin + static_cast<size_t>(o_.batch_size));
    std::span<const int64_t> indices(order_.data() + begin, end - begin);
    uint64_t epoch = static_cast<uint64_t>(number_);
    Sample s;
    if (o_.collate_fn) {
      std::vector<Sample> samples;
      for (int64_t i : indices) {
        RandomScope scope(seed_, epoch, static_cast<uint64_t>(i));
        samples.push_back(dataset_.get(i));
      }
      s = o_.collate_fn(samples);
    } else {
      s = dataset_.get_batch(indices, seed_, epoch);
    }
    for (Tensor& t : s) t.eval_();
    return Batch(std::move(s));
  }

  // Straight from host memory: on a GPU this goes through pinned buffers while the main thread
  // works on the batch before.
  Batch on_device(const Batch& made) const {
    LocScope place(loc_);
    std::vector<Tensor> s;
    for (size_t i = 0; i < made.size(); ++i) {
      Tensor t = made[i];
      if (o_.device && t.device() != *o_.device) {
        Tensor host = on_host(t);
        t = from_data(host_data(host), host.dtype(), host.shape(),
                      Options(host.dtype(), *o_.device));
      }
      s.push_back(t);
    }
    return Batch(std::move(s));
  }

  // From the ring to the ready batches.
  void pull(std::unique_lock<std::mutex>& lock, int64_t number) {
    Place& p = ring_[static_cast<size_t>(number) % ring_.size()];
    ready_.wait(lock, [&] { return stop_ || p.full; });
    if (stop_) return;
    brought_.push_back(std::exchange(p, Place()));
    ++emptied_;
    room_.notify_all();
  }

  void bring() {
    std::unique_lock lock(mutex_);
    for (int64_t number = emptied_; number < batches_; ++number) {
      Place& p = ring_[static_cast<size_t>(number) % ring_.size()];
      ready_.wait(lock, [&] { return stop_ || p.full; });
      room_.wait(lock, [&] { return stop_ || brought_.size() < 2; });
      if (stop_) return;
      Place mine = std::exchange(p, Place());
      ++emptied_;
      lock.unlock();
      room_.notify_all();
      try {
        if (!mine.error) mine.batch = on_device(mine.batch);
      } catch (...) {
        mine.error = std::current_exception();
      }
      lock.lock();
      brought_.push_back(std::move(mine));
      ready_.notify_all();
    }
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (!stop_ && next_ < batches_) {
      int64_t number = next_++;
      room_.wait(lock,
                 [&] { return stop_ || number < emptied_ + static_cast<int64_t>(ring_.size()); });
      if (stop_) return;
      lock.unlock();
      Batch batch;
      std::exception_ptr error;
      try {
        batch = make(number);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      Place& p = ring_[static_cast<size_t>(number) % ring_.size()];
      p.batch = std::move(batch);
      p.error = error;
      p.full = true;
      ready_.notify_all();
    }
  }

  const Dataset& dataset_;
  const DataLoaderOptions& o_;
  const uint64_t seed_;
  const int64_t number_;
  const std::vector<int64_t> order_;
  std::mutex mutex_;
  std::condition_variable ready_, room_;
  std::vector<Place> ring_;
  std::deque<Place> brought_;  // ready for the loop
  bool brings_ = false;        // to another device, by a separate thread
  int64_t next_, taken_, emptied_;
  const int64_t batches_;
  const SourceLoc loc_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

struct DataLoader::State {
  AnyDataset dataset;
  DataLoaderOptions o;
  uint64_t seed = 0;
  int64_t epoch = 0, position = 0;
  bool begun = false;  // the epoch's first batch was handed out by a loop, not by a restored state
  std::function<void()> between{};
  SourceLoc loc{};  // of the line that made the loader
  std::unique_ptr<Epoch> running{};
  mutable std::optional<uint64_t> known{};  // the dataset's fingerprint

  uint64_t fingerprint() const {
    if (!known) {
      try {
        known = dataset->fingerprint();
      } catch (const Error&) {
        known = 0;  // a file that cannot be read is for the loop to report
      }
    }
    return *known;
  }
  int64_t share() const {  // samples of this rank in one epoch
    int64_t n = dataset->size(), r = o.num_replicas;
    return o.drop_last ? n / r : (n + r - 1) / r;
  }
  int64_t batches() const {
    return o.drop_last ? share() / o.batch_size : (share() + o.batch_size - 1) / o.batch_size;
  }

  std::vector<int64_t> order() const {
    int64_t n = dataset->size();
    std::vector<int64_t> all(static_cast<size_t>(n));
    std::iota(all.begin(), all.end(), 0);
    if (o.shuffle) {
      RandomScope scope(seed, static_cast<uint64_t>(epoch), ~uint64_t{0});
      for (int64_t i = n - 1; i > 0; --i)
        std::swap(all[static_cast<size_t>(i)], all[static_cast<size_t>(random().below(i + 1))]);
    }
    if (o.num_replicas == 1) return all;
    std::vector<int64_t> mine;
    for (int64_t k = 0, m = share(); k < m; ++k)
      mine.push_back(all[static_cast<size_t>((k * o.num_replicas + o.rank) % n)]);
    return mine;
  }
};

DataLoader::DataLoader(AnyDataset dataset, const DataLoaderOptions& o, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  auto bad = [&](const char* what) { fail(ErrorKind::Value, "DataLoader", what, loc); };
  if (!dataset) bad("there is no dataset");
  if (o.batch_size < 1) bad("batch_size is below 1");
  if (o.prefetch_factor < 1) bad("prefetch_factor is below 1");
  if (o.num_workers < -1) bad("num_workers is negative");
  if (o.num_workers > 256) bad("num_workers is above 256");
  if (o.prefetch_factor > 1024) bad("prefetch_factor is above 1024");
  if (o.num_replicas < 1 || o.rank < 0 || o.rank >= o.num_replicas)
    bad("rank is not one of num_replicas");
  s_.reset(new State{std::move(dataset), o});
  s_->loc = loc;
  s_->seed = o.seed ? *o.seed : default_generator().seed();
}
DataLoader::~DataLoader() = default;
DataLoader::DataLoader(DataLoader&&) noexcept = default;
DataLoader& DataLoader::operator=(DataLoader&&) noexcept = default;

int64_t DataLoader::size() const { return s_->batches(); }
const Dataset& DataLoader::dataset() const { return *s_->dataset; }
const DataLoaderOptions& DataLoader::options() const { return s_->o; }
int64_t DataLoader::epoch() const { return s_->epoch; }
int64_t DataLoader::position() const { return s_->position; }
void DataLoader::set_between(std::function<void()> fn) { s_->between = std::move(fn); }

void DataLoader::set_epoch(int64_t epoch) {
  s_->running.reset();
  s_->epoch = epoch;
  s_->position = 0;
  s_->begun = false;
}

DataLoader::iterator DataLoader::begin() {
  State& s = *s_;
  s.running.reset();
  // A loop that was left early is over; one that restored state started continues.
  if (s.begun && s.position > 0) ++s.epoch, s.position = 0;
  s.begun = true;
  s.running = std::make_unique<Epoch>(*s.dataset, s.o, s.seed, s.epoch, s.order(), s.position,
                                      s.batches(), s.loc);
  return iterator(this);
}

DataLoader::iterator::iterator(DataLoader* loader) : loader_(loader) { take(); }

void DataLoader::iterator::take() {
  State& s = *loader_->s_;
  batch_ = Batch();  // released before waiting for the next one
  if (s.running && s.running->take(batch_)) {
    ++s.position;
    return;
  }
  s.running.reset();
  ++s.epoch;
  s.position = 0;
  s.begun = false;
  loader_ = nullptr;
}

DataLoader::iterator& DataLoader::iterator::operator++() {
  State& s = *loader_->s_;
  if (s.between && s.running && !s.running->done()) s.between();
  take();
  return *this;
}

StateDict DataLoader::state_dict() const {
  const State& s = *s_;
  StateDict d;
  d.set("epoch", s.epoch);
  d.set("position", s.position);
  d.set("seed", s.seed);
  d.set("size", s.dataset->size());
  d.set("batch_size", s.o.batch_size);
  d.set("num_replicas", s.o.num_replicas);
  d.set("shuffle", static_cast<int>(s.o.shuffle));
  d.set("data", s.fingerprint());
  return d;
}

void DataLoader::load_state_dict(const StateDict& d, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  State& s = *s_;
  auto same = [&](const char* name, int64_t own) {
    int64_t theirs = d.integer(name, loc);
    if (theirs != own)
      fail(ErrorKind::State, "load_state_dict",
           "the loader's state has another " + std::string(name) + ": " + std::to_string(theirs) +
               ", not " + std::to_string(own),
           loc, "create the loader as it was when the state was saved, or start a new run");
  };
  same("size", s.dataset->size());
  same("batch_size", s.o.batch_size);
  same("num_replicas", s.o.num_replicas);
  same("shuffle", s.o.shuffle);
  if (const uint64_t theirs = d.has("data") ? d.unsigned_integer("data", loc) : 0,
      own = s.fingerprint();
      theirs && own && theirs != own)
    fail(ErrorKind::State, "load_state_dict",
         "the loader's state is from other data of the same size", loc,
         "use the data that the state was saved with, or start a new run");
  int64_t epoch = d.integer("epoch", loc), position = d.integer("position", loc);
  uint64_t seed = d.unsigned_integer("seed", loc);
  constexpr int64_t kMostEpochs = int64_t{1} << 53;  // further counting never overflows
  if (epoch < 0 || epoch > kMostEpochs || position < 0 || position > s.batches())
    fail(ErrorKind::State, "load_state_dict", "the loader's position is outside its data", loc);
  s.running.reset();
  s.epoch = epoch;
  s.position = position;
  s.seed = seed;
  s.begun = false;
}

}  // namespace ingot::data
