// Launches side by side: whatever the memory they touch, each waits for all it depends on and no
// cycle of waiting arises.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "backend/cuda/runtime/overlap.h"

using namespace ingot;
using namespace ingot::cuda;
using Access = Overlap::Access;

TEST_CASE("independent launches go to separate lanes, dependent ones follow") {
  Overlap o(3);
  Access a{0x1000, 64, true}, b{0x2000, 64, true}, read_a{0x1020, 8, false},
      read_b{0x2000, 64, false};
  CHECK(o.add(std::vector{a}, false, false).lane == 0);
  auto second = o.add(std::vector{b}, false, false);
  CHECK(second.lane == 1);
  CHECK(second.after.empty());
  auto third =
      o.add(std::vector{read_a}, false, false);  // after the writer of a, without waiting for b
  CHECK(third.lane == 0);
  CHECK(third.after.empty());
  auto both = o.add(std::vector{read_a, read_b}, false, false);
  CHECK(both.after.size() == 1);
  auto again = o.add(std::vector{a}, false, false);  // may not overwrite what is still read
  CHECK((again.lane == both.lane || again.after == std::vector{3}));
}

TEST_CASE("stores that look at the status wait for whatever may set it") {
  Overlap o(2);
  o.add(std::vector{Access{0x1000, 8, true}}, true, false);
  o.add(std::vector{Access{0x2000, 8, true}}, false, false);
  auto p = o.add(std::vector{Access{0x2000, 8, true}}, false, true);
  CHECK((p.lane == 0 || p.after == std::vector{0}));
}

TEST_CASE("random runs: every dependence is kept") {
  std::mt19937 gen(3);
  for (int round = 0; round < 200; ++round) {
    int lanes = 1 + static_cast<int>(gen() % 4), n = 1 + static_cast<int>(gen() % 60);
    Overlap o(lanes);
    std::vector<std::vector<Access>> all;
    std::vector<int> lane;
    std::vector<std::vector<bool>> before;  // before[j][i]: i is over when j begins
    std::vector<int> tail(static_cast<size_t>(lanes), -1);
    for (int j = 0; j < n; ++j) {
      std::vector<Access> mine;
      for (size_t k = 0, m = 1 + gen() % 4; k < m; ++k)
        mine.push_back({gen() % 100, gen() % 30, gen() % 3 == 0});
      auto p = o.add(mine, false, false);
      std::vector<bool> over(static_cast<size_t>(n));
      auto follow = [&](int i) {
        if (i < 0) return;
        over[static_cast<size_t>(i)] = true;
        for (size_t k = 0; k < over.size(); ++k)
          over[k] = over[k] || before[static_cast<size_t>(i)][k];
      };
      follow(tail[static_cast<size_t>(p.lane)]);
      for (int i : p.after) follow(i);
      tail[static_cast<size_t>(p.lane)] = j;
      before.push_back(over);
      for (int i = 0; i < j; ++i)
        for (const Access& x : all[static_cast<size_t>(i)])
          for (const Access& y : mine) {
            bool meet =
                x.begin < y.begin + y.bytes && y.begin < x.begin + x.bytes && x.bytes && y.bytes;
            if (meet && (x.written || y.written)) CHECK(over[static_cast<size_t>(i)]);
          }
      all.push_back(mine);
    }
  }
}
