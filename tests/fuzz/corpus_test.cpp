// The kept corpus, every file through its target: what a fuzzer once found stays found.
#include <doctest/doctest.h>

#include <filesystem>

#include "support/folder.h"
#include "targets.h"

TEST_CASE("the kept corpus") {
  for (int i = 0; i < ingot::fuzz::kTargetCount; ++i) {
    const ingot::fuzz::Target& target = ingot::fuzz::kTargets[i];
    int files = 0, taken = 0;
    for (const auto& e :
         std::filesystem::directory_iterator(std::string(INGOT_FUZZ_CORPUS) + "/" + target.name)) {
      INFO(e.path().string());
      std::string s = read_file(e.path().string());
      taken += ingot::fuzz::run(target, reinterpret_cast<const uint8_t*>(s.data()), s.size());
      // Cut short, too: half of it, and all but one byte.
      for (size_t n : {s.size() / 2, s.size() - 1})
        if (n < s.size()) ingot::fuzz::run(target, reinterpret_cast<const uint8_t*>(s.data()), n);
      ++files;
    }
    CAPTURE(std::string(target.name));
    CHECK(files > 0);
    CHECK(taken > 0);  // files that are all refused reach nothing past the first check
  }
}
