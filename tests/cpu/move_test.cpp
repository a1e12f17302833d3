// Turning boxes of memory and rows of a blocked weight, in every size around the squares that
// registers hold, against naive loops. Buffers are exact, so that a sanitizer sees what is touched
// beyond them.
#include "backend/cpu/support/move.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <numeric>
#include <vector>

using namespace ingot::cpu;

namespace {

std::vector<float> counted(int64_t n) {
  std::vector<float> v(static_cast<size_t>(n));
  std::iota(v.begin(), v.end(), 1.0f);
  return v;
}
float at(const std::vector<float>& v, int64_t i) { return v[static_cast<size_t>(i)]; }

const int64_t kSizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 20, 24, 25, 31, 33, 49};

}  // namespace

TEST_CASE("a transposed box, from far away and to far away") {
  for (int64_t p : kSizes)
    for (int64_t q : kSizes)
      for (int64_t more : {0, 3}) {
        CAPTURE(p);
        CAPTURE(q);
        CAPTURE(more);
        const int64_t wide = p + more, e[2] = {p, q}, far[2] = {1, wide}, e_back[2] = {q, p};
        const std::vector<float> plain = counted((q - 1) * wide + p);
        std::vector<float> packed(static_cast<size_t>(p * q)), back(plain.size());
        gather_box(packed.data(), plain.data(), far, e, 2, 4);
        bool right = true;
        for (int64_t i = 0; i < p; ++i)
          for (int64_t j = 0; j < q; ++j)
            right = right && at(packed, i * q + j) == at(plain, j * wide + i);
        CHECK(right);
        scatter_box(back.data(), far, packed.data(), e, 2, 4);
        for (int64_t j = 0; j < q; ++j)
          for (int64_t i = 0; i < wide && j * wide + i < std::ssize(back); ++i)
            right = right && at(back, j * wide + i) == (i < p ? at(plain, j * wide + i) : 0);
        CHECK(right);
        const int64_t turned[2] = {1, q}, dense[2] = {wide, 1};
        std::vector<float> copied(packed.size());
        copy_box(copied.data(), turned, plain.data(), dense, e_back, 2, 4);
        CHECK(copied == packed);
      }
}

TEST_CASE("a transposed box past the caches, aligned and not") {
  for (int64_t p : kSizes)
    for (int64_t q : kSizes)
      for (int64_t wide :
           {int64_t{64}, int64_t{50}})  // rows that are whole cache lines, and others
        for (int64_t from : {0, 1}) {
          CAPTURE(p);
          CAPTURE(q);
          CAPTURE(wide);
          const int64_t e[2] = {p, q}, far[2] = {1, wide};
          const std::vector<float> packed = counted(p * q);
          std::vector<float> room(static_cast<size_t>(q * wide + 17));
          float* to = room.data() + from;
          while (reinterpret_cast<uintptr_t>(to - from) % 64) ++to;
          scatter_box(to, far, packed.data(), e, 2, 4, Far::Memory);
          finish_stream();
          bool right = true;
          for (int64_t j = 0; j < q; ++j)
            for (int64_t i = 0; i < wide; ++i)
              right = right && to[j * wide + i] == (i < p ? at(packed, i * q + j) : 0);
          CHECK(right);
        }
}

TEST_CASE("windows that overlap are transposed as well") {
  const std::vector<float> plain = counted(60);
  for (int64_t step : {1, 2, 3}) {
    const int64_t e[2] = {5, 17}, far[2] = {1, step};
    std::vector<float> exact(plain.begin(), plain.begin() + 16 * step + 5), packed(5 * 17);
    gather_box(packed.data(), exact.data(), far, e, 2, 4);
    for (int64_t i = 0; i < 5; ++i)
      for (int64_t j = 0; j < 17; ++j) CHECK(at(packed, i * 17 + j) == at(plain, j * step + i));
  }
}

TEST_CASE("rows of a blocked weight, there and back, with sums") {
  for (int64_t width : {4, 8, 16, 24, 64})
    for (int64_t n : kSizes)
      for (int64_t stride : {n, n + 5}) {
        CAPTURE(width);
        CAPTURE(n);
        CAPTURE(stride);
        std::vector<int64_t> row(static_cast<size_t>(n));  // in no order
        for (int64_t i = 0; i < n; ++i) row[static_cast<size_t>(i)] = (n - 1 - i) * width;
        const std::vector<float> plain = counted((width - 1) * stride + n);
        std::vector<float> blocked(static_cast<size_t>(n * width));
        transpose_to_rows(blocked.data(), row.data(), plain.data(), stride, n, width);
        bool right = true;
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < width; ++j)
            right = right && at(blocked, (n - 1 - i) * width + j) == at(plain, j * stride + i);
        CHECK(right);
        std::vector<float> three = blocked, back(plain.size());
        for (int k = 1; k < 3; ++k) three.insert(three.end(), blocked.begin(), blocked.end());
        transpose_from_rows(back.data(), stride, three.data(), row.data(), n, width, 3, n * width);
        for (int64_t j = 0; j < width; ++j)
          for (int64_t i = 0; i < stride && j * stride + i < std::ssize(back); ++i)
            right =
                right && at(back, j * stride + i) == (i < n ? 3 * at(plain, j * stride + i) : 0);
        CHECK(right);
      }
}
