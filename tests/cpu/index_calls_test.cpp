// Scatters, scans and sorts of the CPU backend: random calls against naive loops, lines long enough
// for every way, the same bits for any number of threads.
#include <doctest/doctest.h>

#include <cstring>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/support/threads.h"
#include "plugin/library_cases.h"
#include "runtime/backend.h"

using namespace ingot;
using namespace ingot::test;

namespace {

RunStatus launch(Backend& b, const LibrarySpec& s, CallMemory& m) {
  auto exe = b.prepare(0, s);
  std::vector<uint64_t> scratch(exe->scratch_bytes / 8 + 1, 0x7ff7ff7f7ff7ff7full);
  std::vector<void*> buffers;
  for (size_t i = 0; i < s.operands.size(); ++i) buffers.push_back(m.at(i));
  RunArgs args;
  RunStatus status;
  args.status = &status;
  b.launch(0, *exe, buffers.data(), scratch.data(), args);
  return status;
}

LibrarySpec call(std::mt19937& gen, int n) {
  switch (n % 3) {
    case 0:
      return random_write(gen, n % 2 == 0, n % 5 == 0);
    case 1:
      return random_scan(gen, n % 7 == 1 ? 300000 : n % 2 ? 40 : 3000);
    default:
      return random_sort(gen, n % 7 == 2 ? 60000 : n % 2 ? 30 : 1500);
  }
}

}  // namespace

TEST_CASE("scatters, scans and sorts against naive loops, whatever the number of threads") {
  auto b = make_cpu_backend();
  std::mt19937 gen(4);
  for (int n = 0; n < 400; ++n) {
    LibrarySpec s = call(gen, n);
    CAPTURE(n);
    CAPTURE(to_string(s));
    CallMemory got(s, 3, index_extent(s)), want = got, again = got;
    set_num_threads(1);
    CHECK(launch(*b, s, got).code == 0);
    set_num_threads(3);
    launch(*b, s, again);
    CHECK(got.blocks[0] == again.blocks[0]);
    reference(s, want);
    CHECK(difference(s, got, want) == "");
  }
}

TEST_CASE("an index out of range is reported") {
  auto b = make_cpu_backend();
  std::mt19937 gen(5);
  for (int n = 0; n < 6; ++n) {
    LibrarySpec s = random_write(gen, n % 2 == 0, n % 3 == 0);
    int64_t extent = index_extent(s);
    CallMemory m(s, 3, extent);
    const OperandSpec& index = s.operands[2];
    if (index.dtype == DType::Int64)
      static_cast<int64_t*>(m.at(2))[index.offset] = -1;
    else
      static_cast<int32_t*>(m.at(2))[index.offset] = -1;
    RunStatus status = launch(*b, s, m);
    CHECK(status.code == RunStatus::IndexError);
    CHECK(status.site == 7);
    CHECK(status.value == -1);
    CHECK(status.extent == extent);
  }
}
