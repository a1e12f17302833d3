// DataLoader: batches of a dataset, made ahead by worker threads and put onto the device.
#pragma once
#include <array>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ingot/data/dataset.h"
#include "ingot/state.h"

namespace ingot::data {

/// The tensors of one batch. Two of them unpack directly (auto [images, labels]); for other counts
/// use batch[i], or `auto [a, b, c] = batch.as<3>()`.
class Batch {
 public:
  Batch() = default;
  explicit Batch(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {}
  size_t size() const { return tensors_.size(); }
  const Tensor& operator[](size_t i) const { return tensors_[i]; }
  auto begin() const { return tensors_.begin(); }
  auto end() const { return tensors_.end(); }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  /// Throws Error(Value) unless there are N.
  template <size_t N>
  std::array<Tensor, N> as(SourceLoc loc = SourceLoc::current()) const {
    check(N, loc);
    std::array<Tensor, N> a;
    for (size_t i = 0; i < N; ++i) a[i] = tensors_[i];
    return a;
  }
  template <size_t I>
  Tensor get() const {
    check(2, {});
    return tensors_[I];
  }

 private:
  void check(size_t n, const SourceLoc& loc) const;
  std::vector<Tensor> tensors_;
};

struct DataLoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;  ///< in an order that depends on seed and epoch alone
  int num_workers = -1;  ///< threads that make batches; -1: some for this machine; 0: the calling
                         ///< thread, when it asks
  std::function<Sample(const std::vector<Sample>&)> collate_fn{};  ///< instead of collate()
  bool drop_last = false;          ///< leaves out a last batch that is not full
  int prefetch_factor = 2;         ///< batches made ahead, per worker
  std::optional<Device> device{};  ///< where batches go, ahead of time; the CPU when not given
  std::optional<uint64_t>
      seed{};            ///< when not given: the seed of default_generator() as the loader is made
  int num_replicas = 1;  ///< splits the samples evenly over this many programs; the first ones are
                         ///< repeated if the number of samples is not a multiple of it
  int rank = 0;          ///< which of the programs this one is
};

/// One pass of a for loop is an epoch; the next pass has the next order. What a worker throws is
/// thrown in the loop. If threads cannot be started, fewer are used. Throws Error(Value) for a
/// batch_size, num_replicas or prefetch_factor below 1, more than 256 workers, or a rank
/// outside.
///
/// state_dict() is the exact position: batches handed out so far count as used. After
/// load_state_dict() the next pass continues from there. The same seed gives the same batches
/// whatever the number of workers.
class DataLoader {
 public:
  explicit DataLoader(AnyDataset dataset, const DataLoaderOptions& options = {},
                      SourceLoc loc = SourceLoc::current());
  ~DataLoader();
  DataLoader(DataLoader&&) noexcept;
  DataLoader& operator=(DataLoader&&) noexcept;

  /// Batches of one epoch.
  int64_t size() const;
  const Dataset& dataset() const;
  const DataLoaderOptions& options() const;

  /// Epochs started and finished so far; the batches of this epoch that were handed out.
  int64_t epoch() const;
  int64_t position() const;
  /// The next pass will be this epoch, from its first batch.
  void set_epoch(int64_t epoch);
  StateDict state_dict() const;
  /// Throws Error(State) when the state is of a dataset of another size or other content (see
  /// Dataset::fingerprint), another batch size or another share.
  void load_state_dict(const StateDict& state, SourceLoc loc = SourceLoc::current());

  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = const Batch*;
    using reference = const Batch&;
    const Batch& operator*() const { return batch_; }
    const Batch* operator->() const { return &batch_; }
    iterator& operator++();
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& i, std::default_sentinel_t) { return !i.loader_; }

   private:
    friend class DataLoader;
    explicit iterator(DataLoader* loader);
    void take();
    DataLoader* loader_;
    Batch batch_;
  };
  iterator begin();
  std::default_sentinel_t end() const { return {}; }

  /// For the library: called between two batches of an epoch, when the first one has been worked
  /// on.
  void set_between(std::function<void()> fn);

 private:
  struct State;
  std::shared_ptr<State> s_;
};

}  // namespace ingot::data

template <>
struct std::tuple_size<ingot::data::Batch> : std::integral_constant<size_t, 2> {};
template <size_t I>
struct std::tuple_element<I, ingot::data::Batch> {
  using type = ingot::Tensor;
};
