// The loader: every sample once, the same batches whatever the workers, positions saved and
// restored, shares, errors.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>
#include <numeric>
#include <set>

using namespace ingot;

namespace {

// Sample i is {i, a random number of the sample's own}.
struct Numbers : data::Dataset {
  int64_t n;
  explicit Numbers(int64_t count) : n(count) {}
  int64_t size() const override { return n; }
  data::Sample get(int64_t i) const override {
    return {tensor(i), tensor(data::random().uniform(), float64)};
  }
};

using Rows = std::vector<std::vector<double>>;

Rows pass(data::DataLoader& loader, int64_t most = 1 << 30) {
  Rows rows;
  for (const data::Batch& b : loader) {
    std::vector<double> row = b[0].to_vector<double>(), more = b[1].to_vector<double>();
    row.insert(row.end(), more.begin(), more.end());
    rows.push_back(row);
    if (--most == 0) break;
  }
  return rows;
}

std::vector<double> firsts(const Rows& rows) {
  std::vector<double> all;
  for (const auto& r : rows)
    all.insert(all.end(), r.begin(), r.begin() + static_cast<std::ptrdiff_t>(r.size() / 2));
  return all;
}

ErrorKind kind_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind();
  }
  return ErrorKind::Internal;
}

}  // namespace

TEST_CASE("every sample once; the same batches for any number of workers") {
  for (bool shuffle : {false, true}) {
    CAPTURE(shuffle);
    Rows first[3];
    for (int workers : {0, 1, 4}) {
      CAPTURE(workers);
      data::DataLoader loader(
          Numbers(23), {.batch_size = 5, .shuffle = shuffle, .num_workers = workers, .seed = 3});
      CHECK(loader.size() == 5);
      for (Rows& want : first) {
        Rows rows = pass(loader);
        CHECK(rows.size() == 5);
        std::vector<double> all = firsts(rows);
        std::sort(all.begin(), all.end());
        std::vector<double> expected(23);
        std::iota(expected.begin(), expected.end(), 0);
        CHECK(all == expected);
        if (workers == 0)
          want = rows;
        else
          CHECK(rows == want);
      }
      CHECK(loader.epoch() == 3);
    }
    // Another order (if shuffled) and other random numbers each epoch.
    CHECK((firsts(first[0]) != firsts(first[1])) == shuffle);
    CHECK(first[0] != first[1]);
    data::DataLoader other(Numbers(23), {.batch_size = 5, .shuffle = shuffle, .seed = 4});
    CHECK(pass(other) != first[0]);
  }
}

TEST_CASE("two tensors come apart; other numbers are taken by as<N>") {
  Tensor x = arange(12).reshape({6, 2}).to(float32), y = arange(6);
  data::DataLoader loader(data::TensorDataset({x, y}), {.batch_size = 4});
  int64_t seen = 0;
  for (auto [a, b] : loader) {
    CHECK(a.shape() == Dims{seen ? 2 : 4, 2});
    CHECK(b.to_vector<int64_t>()[0] == seen);
    seen += b.size(0);
  }
  CHECK(seen == 6);
  data::DataLoader three(data::TensorDataset({x, y, y + 1}), {.batch_size = 6});
  for (const auto& batch : three) {
    auto [a, b, c] = batch.as<3>();
    CHECK(c.to_vector<int64_t>()[5] == 6);
    CHECK(kind_of([&] { (void)batch.as<2>(); }) == ErrorKind::Value);
    CHECK(kind_of([&] { auto [p, q] = batch; }) == ErrorKind::Value);
  }
}

TEST_CASE("the position is exact: any place of any epoch is gone on from") {
  for (int workers : {0, 3}) {
    data::DataLoaderOptions o{.batch_size = 4, .shuffle = true, .num_workers = workers, .seed = 9};
    std::vector<Rows> whole;
    data::DataLoader straight(Numbers(18), o);
    for (int e = 0; e < 3; ++e) whole.push_back(pass(straight));
    for (int64_t epoch = 0; epoch < 2; ++epoch)
      for (int64_t at = 0; at <= 5; ++at) {
        CAPTURE(epoch);
        CAPTURE(at);
        data::DataLoader first(Numbers(18), o), second(Numbers(18), o);
        for (int64_t e = 0; e < epoch; ++e) pass(first);
        StateDict state = first.state_dict();
        if (at > 0) {
          int64_t left = at;
          for (const data::Batch& b : first) {
            (void)b;
            state = first.state_dict();
            if (--left == 0) break;
          }
        }
        second.load_state_dict(state);
        Rows rest = pass(second);
        CHECK(rest == Rows(whole[static_cast<size_t>(epoch)].begin() + at,
                           whole[static_cast<size_t>(epoch)].end()));
        CHECK(pass(second) == whole[static_cast<size_t>(epoch) + 1]);
      }
  }
  data::DataLoader a(Numbers(18), {.batch_size = 4}), b(Numbers(19), {.batch_size = 4}),
      c(Numbers(18), {.batch_size = 5});
  CHECK(kind_of([&] { b.load_state_dict(a.state_dict()); }) == ErrorKind::State);
  CHECK(kind_of([&] { c.load_state_dict(a.state_dict()); }) == ErrorKind::State);
  CHECK(kind_of([&] { c.load_state_dict({}); }) == ErrorKind::State);
}

TEST_CASE("a loop left early is over; set_epoch chooses the order") {
  data::DataLoaderOptions o{.batch_size = 4, .shuffle = true, .num_workers = 2, .seed = 1};
  data::DataLoader a(Numbers(20), o), b(Numbers(20), o);
  pass(a, 2);
  pass(b);
  CHECK(pass(a) == pass(b));
  a.set_epoch(0);
  b.set_epoch(0);
  CHECK(pass(a) == pass(b));
}

TEST_CASE("shares of several programs") {
  for (bool drop : {false, true})
    for (int replicas : {2, 3, 5}) {
      std::multiset<double> seen;
      int64_t batches = -1;
      for (int rank = 0; rank < replicas; ++rank) {
        data::DataLoader loader(Numbers(13), {.batch_size = 2,
                                              .shuffle = true,
                                              .drop_last = drop,
                                              .seed = 2,
                                              .num_replicas = replicas,
                                              .rank = rank});
        if (batches < 0) batches = loader.size();
        CHECK(loader.size() == batches);
        Rows rows = pass(loader);
        CHECK(static_cast<int64_t>(rows.size()) == batches);
        for (double v : firsts(rows)) seen.insert(v);
      }
      std::set<double> different(seen.begin(), seen.end());
      if (!drop)
        CHECK(different.size() == 13);
      else
        CHECK(different.size() == seen.size());
    }
}

TEST_CASE("drop_last, collate_fn, the device") {
  data::DataLoader dropped(Numbers(23), {.batch_size = 5, .drop_last = true});
  CHECK(dropped.size() == 4);
  CHECK(pass(dropped).size() == 4);
  data::DataLoader own(Numbers(6),
                       {.batch_size = 3, .collate_fn = [](const std::vector<data::Sample>& s) {
                          return data::Sample{tensor(static_cast<int64_t>(s.size())), s[0][0]};
                        }});
  for (auto [n, first] : own) CHECK(n.item<int64_t>() == 3);
  data::DataLoader moved(Numbers(6), {.batch_size = 3, .device = Device("cpu:1")});
  for (auto [a, b] : moved) {
    CHECK(a.device() == Device("cpu:1"));
    CHECK(a.size(0) == 3);
  }
}

TEST_CASE("what a worker throws is thrown in the loop; bad options") {
  struct Broken : Numbers {
    using Numbers::Numbers;
    data::Sample get(int64_t i) const override {
      if (i == 7) throw std::runtime_error("sample 7");
      return Numbers::get(i);
    }
  };
  for (int workers : {0, 2}) {
    data::DataLoader loader(Broken(12), {.batch_size = 2, .num_workers = workers});
    CHECK_THROWS_WITH(pass(loader), "sample 7");
  }
  struct Ragged : Numbers {
    using Numbers::Numbers;
    data::Sample get(int64_t i) const override { return {zeros({i + 1}).eval_()}; }
  };
  int line = __LINE__ + 1;
  data::DataLoader ragged(Ragged(4), {.batch_size = 2});
  try {
    for (const auto& b : ragged) (void)b;
  } catch (const Error& e) {
    CHECK(static_cast<int>(e.where().line) == line);
    CHECK(std::string(e.where().file).find("loader_test.cpp") != std::string::npos);
  }
  CHECK(kind_of([&] {
          for (const auto& b : ragged) (void)b;
        }) == ErrorKind::Shape);
  for (const data::DataLoaderOptions& o :
       {data::DataLoaderOptions{.batch_size = 0}, data::DataLoaderOptions{.num_workers = -2},
        data::DataLoaderOptions{.prefetch_factor = 0},
        data::DataLoaderOptions{.num_replicas = 2, .rank = 2}})
    CHECK(kind_of([&] { data::DataLoader(Numbers(3), o); }) == ErrorKind::Value);
  CHECK(kind_of([&] { data::TensorDataset({}); }) == ErrorKind::Value);
  CHECK(kind_of([&] { data::TensorDataset({zeros({2}), zeros({3})}); }) == ErrorKind::Shape);
  CHECK(kind_of([&] { data::Subset(Numbers(3), {3}); }) == ErrorKind::Index);
  CHECK(kind_of([&] { data::ConcatDataset({}); }) == ErrorKind::Value);
  CHECK(kind_of([&] { data::random_split(Numbers(3), {1, 1}); }) == ErrorKind::Value);
}

TEST_CASE("threads that cannot be started are done without") {
  data::DataLoader plain(Numbers(300),
                         {.batch_size = 2, .shuffle = true, .num_workers = 0, .seed = 3});
  const Rows want = pass(plain);
  for (size_t room : {size_t{4} << 20, size_t{60} << 20}) {
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit old{}, tight{};
    getrlimit(RLIMIT_AS, &old);
    tight = old;
    tight.rlim_cur = pages * 4096 + room;  // a thread's stack takes 8 MiB of it
    data::DataLoader many(Numbers(300),
                          {.batch_size = 2, .shuffle = true, .num_workers = 200, .seed = 3});
    setrlimit(RLIMIT_AS, &tight);
    Rows got;
    try {
      got = pass(many);
    } catch (...) {
    }
    setrlimit(RLIMIT_AS, &old);
    CHECK(got == want);
  }
  CHECK_THROWS_AS(data::DataLoader(Numbers(3), {.num_workers = 3000}), Error);
}

TEST_CASE("combinations") {
  Tensor x = arange(10);
  data::TensorDataset base({x, x * 2});
  data::Subset some(base, {7, 2, 7});
  CHECK(some.size() == 3);
  CHECK(some.get(1)[1].item<int64_t>() == 4);
  std::vector<int64_t> two{0, 2};
  CHECK(some.get_batch(two, 0, 0)[0].to_vector<int64_t>() == std::vector<int64_t>{7, 7});
  data::ConcatDataset joined({base, some, Numbers(2)});
  CHECK(joined.size() == 15);
  CHECK(joined.get(9)[0].item<int64_t>() == 9);
  CHECK(joined.get(11)[0].item<int64_t>() == 2);
  CHECK(joined.get(14)[0].item<int64_t>() == 1);
  std::vector<data::Subset> parts = data::random_split(base, {0.5, 0.33, 0.17}, 4);
  CHECK(parts[0].size() + parts[1].size() + parts[2].size() == 10);
  std::set<int64_t> all;
  for (const auto& p : parts) all.insert(p.indices().begin(), p.indices().end());
  CHECK(all.size() == 10);
  CHECK(data::random_split(base, {6, 4}, 4)[0].indices() ==
        data::random_split(base, {6, 4}, 4)[0].indices());
  CHECK(data::random_split(base, {6, 4}, 4)[0].indices() !=
        data::random_split(base, {6, 4}, 5)[0].indices());
  data::MapDataset mapped(base, [](data::Sample s) { return data::Sample{s[0] + 1}; });
  CHECK(mapped.get(3)[0].item<int64_t>() == 4);
  data::DataLoader loader(mapped, {.batch_size = 4});
  for (const auto& b : loader) CHECK(b.size() == 1);
}

TEST_CASE("drawn shapes are the same every time and can be distinguished") {
  data::Shapes a({.size = 100}), b({.size = 100}), c({.size = 100, .seed = 1});
  std::set<int64_t> labels;
  for (int64_t i = 0; i < 100; ++i) {
    data::Sample s = a.get(i);
    CHECK(s[0].shape() == Dims{1, 28, 28});
    CHECK(s[0].to_vector<float>() == b.get(i)[0].to_vector<float>());
    labels.insert(s[1].item<int64_t>());
  }
  CHECK(labels.size() == data::Shapes::kClasses);
  CHECK(a.get(0)[0].to_vector<float>() != c.get(0)[0].to_vector<float>());
  CHECK(kind_of([] { data::Shapes({.size = 0}); }) == ErrorKind::Value);
}
