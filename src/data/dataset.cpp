// Datasets that combine others, collation, and the random numbers of a sample.
#include "ingot/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>

#include "data/host.h"
#include "graph/thread_state.h"
#include "ingot/random.h"
#include "ops/common.h"

namespace ingot::data {

// ---- Random numbers: SplitMix64, seeded by a mix of seed, epoch and index.

namespace {

uint64_t mix(uint64_t z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}
constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;

}  // namespace

uint64_t Random::next() { return mix(state_ += kStep); }
double Random::uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
int64_t Random::below(int64_t count) {
  return static_cast<int64_t>(
      static_cast<unsigned __int128>(next()) * static_cast<uint64_t>(count) >> 64);
}

Random& random() {
  if (this_thread.sample_random) return *this_thread.sample_random;
  std::shared_ptr<Random>& own = thread_lists().sample_random;
  if (!own) own = std::make_shared<Random>(default_generator().seed());
  return *own;
}

RandomScope::RandomScope(uint64_t seed, uint64_t epoch, uint64_t index)
    : own_(mix(mix(mix(seed + kStep) + epoch * kStep) + index * kStep)),
      previous_(this_thread.sample_random) {
  this_thread.sample_random = &own_;
}
RandomScope::~RandomScope() { this_thread.sample_random = previous_; }

// ---- Batches

Dataset::~Dataset() = default;

Sample Dataset::get_batch(std::span<const int64_t> indices, uint64_t seed, uint64_t epoch) const {
  std::vector<Sample> samples;
  samples.reserve(indices.size());
  for (int64_t i : indices) {
    RandomScope scope(seed, epoch, static_cast<uint64_t>(i));
    samples.push_back(get(i));
  }
  return collate(samples);
}

Sample collate(const std::vector<Sample>& samples, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  if (samples.empty()) fail(ErrorKind::Value, "collate", "there are no samples", loc);
  Sample batch;
  for (size_t k = 0; k < samples[0].size(); ++k) {
    const Tensor& first = samples[0][k];
    for (size_t i = 0; i < samples.size(); ++i) {
      const Sample& s = samples[i];
      if (s.size() == samples[0].size() && s[k].shape() == first.shape() &&
          s[k].dtype() == first.dtype())
        continue;
      fail(ErrorKind::Shape, "collate",
           s.size() != samples[0].size()
               ? "sample " + std::to_string(i) + " of the batch has " + std::to_string(s.size()) +
                     " tensors, the first " + std::to_string(samples[0].size())
               : "sample " + std::to_string(i) + " of the batch has " + describe(s[k]) +
                     " where the first has " + describe(first),
           loc, "give the samples equal shapes (Resize, CenterCrop), or give collate_fn");
    }
    Dims shape = first.shape();
    shape.insert(0, static_cast<int64_t>(samples.size()));
    size_t bytes = static_cast<size_t>(first.numel()) * size_of(first.dtype());
    batch.push_back(make_tensor(first.dtype(), shape, [&](void* out) {
      for (size_t i = 0; i < samples.size(); ++i)
        samples[i][k].copy_to(static_cast<char*>(out) + i * bytes);
    }));
  }
  return batch;
}

// ---- TensorDataset

TensorDataset::TensorDataset(std::vector<Tensor> tensors, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  if (tensors.empty()) fail(ErrorKind::Value, "TensorDataset", "there are no tensors", loc);
  for (const Tensor& t : tensors) {
    if (t.dim(loc) == 0 || t.size(0) != tensors[0].size(0))
      fail(ErrorKind::Shape, "TensorDataset",
           describe(t) + " does not have as many rows as " + describe(tensors[0]), loc,
           "all tensors need the same first dim");
    tensors_.push_back(on_host(t));
  }
  size_ = tensors[0].size(0);
}

namespace {

Tensor rows(const Tensor& t, std::span<const int64_t> indices) {
  Dims shape = t.shape();
  size_t bytes = size_of(t.dtype());
  for (int d = 1; d < shape.size(); ++d) bytes *= static_cast<size_t>(shape[d]);
  shape[0] = static_cast<int64_t>(indices.size());
  const char* from = static_cast<const char*>(host_data(t));
  return make_tensor(t.dtype(), shape, [&](void* out) {
    for (size_t i = 0; i < indices.size(); ++i)
      std::memcpy(static_cast<char*>(out) + i * bytes,
                  from + static_cast<size_t>(indices[i]) * bytes, bytes);
  });
}

void check_index(int64_t index, int64_t size, const char* op, const SourceLoc& loc) {
  if (index < 0 || index >= size)
    fail(ErrorKind::Index, op,
         "there is no sample " + std::to_string(index) + ", only " + std::to_string(size),
         user_loc(loc));
}

}  // namespace

Sample TensorDataset::get(int64_t index) const {
  check_index(index, size_, "TensorDataset", SourceLoc::current());
  Sample s;
  for (const Tensor& t : tensors_) {
    Dims shape = t.shape();
    shape.erase(0);
    size_t bytes = static_cast<size_t>(shape.numel()) * size_of(t.dtype());
    const char* from = static_cast<const char*>(host_data(t)) + static_cast<size_t>(index) * bytes;
    s.push_back(make_tensor(t.dtype(), shape, [&](void* out) { std::memcpy(out, from, bytes); }));
  }
  return s;
}

Sample TensorDataset::get_batch(std::span<const int64_t> indices, uint64_t, uint64_t) const {
  for (int64_t i : indices) check_index(i, size_, "TensorDataset", SourceLoc::current());
  Sample s;
  for (const Tensor& t : tensors_) s.push_back(rows(t, indices));
  return s;
}

// ---- Subset, ConcatDataset, random_split

Subset::Subset(AnyDataset dataset, std::vector<int64_t> indices, SourceLoc loc)
    : dataset_(std::move(dataset)), indices_(std::move(indices)) {
  for (int64_t i : indices_) check_index(i, dataset_->size(), "Subset", loc);
}

Sample Subset::get(int64_t index) const {
  check_index(index, size(), "Subset", SourceLoc::current());
  return dataset_->get(indices_[static_cast<size_t>(index)]);
}

Sample Subset::get_batch(std::span<const int64_t> indices, uint64_t seed, uint64_t epoch) const {
  std::vector<int64_t> theirs;
  for (int64_t i : indices) {
    check_index(i, size(), "Subset", SourceLoc::current());
    theirs.push_back(indices_[static_cast<size_t>(i)]);
  }
  return dataset_->get_batch(theirs, seed, epoch);
}

ConcatDataset::ConcatDataset(std::vector<AnyDataset> datasets, SourceLoc loc)
    : datasets_(std::move(datasets)) {
  if (datasets_.empty())
    fail(ErrorKind::Value, "ConcatDataset", "there are no datasets", user_loc(loc));
  int64_t n = 0;
  for (const AnyDataset& d : datasets_) ends_.push_back(n += d->size());
}

Sample ConcatDataset::get(int64_t index) const {
  check_index(index, size(), "ConcatDataset", SourceLoc::current());
  size_t k =
      static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
  return datasets_[k]->get(index - (k ? ends_[k - 1] : 0));
}

std::vector<Subset> random_split(AnyDataset dataset, const std::vector<double>& lengths,
                                 uint64_t seed, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  int64_t n = dataset->size(), total = 0;
  double sum = std::accumulate(lengths.begin(), lengths.end(), 0.0);
  bool fractions =
      std::abs(sum - 1) < 1e-6 &&
      std::all_of(lengths.begin(), lengths.end(), [](double v) { return v >= 0 && v <= 1; });
  std::vector<int64_t> counts;
  for (double v : lengths) {
    counts.push_back(static_cast<int64_t>(fractions ? std::floor(v * static_cast<double>(n)) : v));
    if (v < 0 || (!fractions && v != std::floor(v))) total = n + 1;
    total += counts.back();
  }
  // The rounding remainder is distributed round-robin, as in PyTorch.
  for (size_t i = 0; fractions && total < n; i = (i + 1) % counts.size(), ++total) ++counts[i];
  if (total != n)
    fail(ErrorKind::Value, "random_split",
         "the lengths do not add up to the " + std::to_string(n) + " samples of the dataset", loc,
         "give integers that do, or fractions that add up to 1");
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  Random r(mix(seed + kStep));
  for (int64_t i = n - 1; i > 0; --i)
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(r.below(i + 1))]);
  std::vector<Subset> parts;
  auto at = order.begin();
  for (int64_t c : counts) {
    parts.emplace_back(dataset, std::vector<int64_t>(at, at + c), loc);
    at += c;
  }
  return parts;
}

}  // namespace ingot::data
