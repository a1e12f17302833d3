// Dataset: samples by index. Anything with size() and get() is one; the classes here combine them.
#pragma once
#include <concepts>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ingot/tensor.h"

namespace ingot::data {

/// The tensors of one sample (an image and its label), or of a batch. On the CPU.
using Sample = std::vector<Tensor>;

/// The random values of the sample being made: the same for the same seed, epoch and index,
/// whatever thread makes it and in whatever order. Transforms and get() draw from random().
class Random {
 public:
  explicit Random(uint64_t seed = 0) : state_(seed) {}
  /// 64 random bits.
  uint64_t next();
  /// Uniform in [0, 1), or in [low, high).
  double uniform();
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// 0 <= n < count; count >= 1.
  int64_t below(int64_t count);

 private:
  uint64_t state_;
};
/// For the sample that this thread is making; outside a loader, a separate sequence per thread.
Random& random();

/// While one lives, random() on this thread begins with this sequence.
class RandomScope {
 public:
  RandomScope(uint64_t seed, uint64_t epoch, uint64_t index);
  ~RandomScope();
  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;

 private:
  Random own_;
  Random* previous_;
};

class Dataset {
 public:
  virtual ~Dataset();
  virtual int64_t size() const = 0;
  /// Sample `index`, 0 <= index < size(). Called from several threads at once.
  virtual Sample get(int64_t index) const = 0;
  /// Several samples, each tensor with one more leading dim. By default get() and collate(); a
  /// dataset that can do it faster overrides it. `seed` and `epoch` go into each sample's random().
  virtual Sample get_batch(std::span<const int64_t> indices, uint64_t seed = 0,
                           uint64_t epoch = 0) const;
  /// A number that differs for other data of the same size; 0: not known. Checkpoints keep it, so
  /// that training is not resumed on other data.
  virtual uint64_t fingerprint() const;
};

/// A dataset as the functions below take it: a shared pointer, or any dataset by value.
class AnyDataset {
 public:
  template <class D>
  requires std::derived_from<std::remove_cvref_t<D>, Dataset> AnyDataset(D&& dataset)
      : p_(std::make_shared<std::remove_cvref_t<D>>(std::forward<D>(dataset))) {}  // NOLINT
  template <class D>
  requires std::derived_from<D, Dataset> AnyDataset(std::shared_ptr<D> dataset)
      : p_(std::move(dataset)) {}  // NOLINT
  const Dataset& operator*() const { return *p_; }
  const Dataset* operator->() const { return p_.get(); }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  std::shared_ptr<const Dataset> p_;
};

/// Stacks the tensors of samples. Throws Error(Shape), saying which sample differs, unless all have
/// the same shapes and types.
Sample collate(const std::vector<Sample>& samples, SourceLoc loc = SourceLoc::current());

/// Tensors with the same first dim: sample i is {a[i], b[i], ...}. Throws Error(Shape) when the
/// first dims differ, Error(Value) for no tensors.
class TensorDataset : public Dataset {
 public:
  explicit TensorDataset(std::vector<Tensor> tensors, SourceLoc loc = SourceLoc::current());
  int64_t size() const override { return size_; }
  Sample get(int64_t index) const override;
  Sample get_batch(std::span<const int64_t> indices, uint64_t seed, uint64_t epoch) const override;
  uint64_t fingerprint() const override;

 private:
  std::vector<Tensor> tensors_;
  int64_t size_ = 0;
};

/// Some samples of a dataset, by their indices. Throws Error(Index) for one out of range.
class Subset : public Dataset {
 public:
  Subset(AnyDataset dataset, std::vector<int64_t> indices, SourceLoc loc = SourceLoc::current());
  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  Sample get(int64_t index) const override;
  Sample get_batch(std::span<const int64_t> indices, uint64_t seed, uint64_t epoch) const override;
  uint64_t fingerprint() const override;
  const std::vector<int64_t>& indices() const { return indices_; }

 private:
  AnyDataset dataset_;
  std::vector<int64_t> indices_;
};

/// One dataset after the other. Throws Error(Value) for none.
class ConcatDataset : public Dataset {
 public:
  explicit ConcatDataset(std::vector<AnyDataset> datasets, SourceLoc loc = SourceLoc::current());
  int64_t size() const override { return ends_.back(); }
  Sample get(int64_t index) const override;
  uint64_t fingerprint() const override;

 private:
  std::vector<AnyDataset> datasets_;
  std::vector<int64_t> ends_;
};

/// Each sample as `fn` changes it. fn is called from several threads at once; its random values
/// come from random().
class MapDataset : public Dataset {
 public:
  MapDataset(AnyDataset dataset, std::function<Sample(Sample)> fn)
      : dataset_(std::move(dataset)), fn_(std::move(fn)) {}
  int64_t size() const override { return dataset_->size(); }
  Sample get(int64_t index) const override { return fn_(dataset_->get(index)); }
  uint64_t fingerprint() const override { return dataset_->fingerprint(); }

 private:
  AnyDataset dataset_;
  std::function<Sample(Sample)> fn_;
};

/// Parts of these lengths, chosen at random by the seed. Lengths that are fractions (all below 1
/// and together 1) are rounded as in PyTorch. Throws Error(Value) unless they add up to the
/// dataset's size.
std::vector<Subset> random_split(AnyDataset dataset, const std::vector<double>& lengths,
                                 uint64_t seed = 0, SourceLoc loc = SourceLoc::current());

}  // namespace ingot::data
