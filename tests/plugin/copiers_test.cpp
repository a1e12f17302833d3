// Copies by several threads: every byte arrives, whoever else copies.
#include <doctest/doctest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "backend/cuda/runtime/copiers.h"

using ingot::cuda::Copiers;

namespace {

bool arrives(Copiers& c, size_t bytes, size_t seed) {
  std::vector<unsigned char> from(bytes), to(bytes + 2, 0xee);
  for (size_t i = 0; i < bytes; ++i)
    from[i] = static_cast<unsigned char>((i * 2654435761u + seed) >> 5);
  c.copy(to.data() + 1, from.data(), bytes);
  return to.front() == 0xee && to.back() == 0xee &&
         std::equal(from.begin(), from.end(), to.begin() + 1);
}

}  // namespace

TEST_CASE("all of it arrives and nothing beside it, with any number of workers") {
  for (int workers : {0, 1, 3}) {
    Copiers c(workers);
    for (size_t bytes : {size_t{0}, size_t{1}, size_t{4096}, 4 * Copiers::kPart - 1,
                         4 * Copiers::kPart, 9 * Copiers::kPart + 17, size_t{8} << 20})
      for (size_t again = 0; again < 4; ++again) CHECK(arrives(c, bytes, again));
  }
}

TEST_CASE("several threads copy at once") {
  Copiers c(2);
  bool fine[4] = {true, true, true, true};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 20; ++i)
        fine[t] = arrives(c, (size_t{2} << 20) + 1000 * i + t, t + i) && fine[t];
    });
  for (std::thread& t : threads) t.join();
  for (bool f : fine) CHECK(f);
}
