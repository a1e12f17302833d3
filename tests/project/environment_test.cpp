// The typed accessors of environment variables, and the public ones.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <set>

#include "base/env.h"
#include "ingot/environment.h"
#include "ingot/error.h"

using namespace ingot;

namespace {

/// A variable set, or unset by nullptr, while this lives.
class With {
 public:
  With(const char* name, const char* value) : name_(name), before_(environment(name)) {
    set(value);
  }
  ~With() { set(before_ ? before_->c_str() : nullptr); }

 private:
  void set(const char* value) { value ? setenv(name_, value, 1) : unsetenv(name_); }
  const char* name_;
  std::optional<std::string> before_;
};

/// What work() prints to standard error.
template <class F>
std::string printed(F work) {
  std::FILE* file = std::tmpfile();
  std::fflush(stderr);
  const int before = dup(2);
  dup2(fileno(file), 2);
  work();
  std::fflush(stderr);
  dup2(before, 2);
  close(before);
  std::rewind(file);
  std::string text(4096, 0);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

bool fuse(const char* value) {
  With w("INGOT_FUSE", value);
  return env::flag("INGOT_FUSE");
}
bool eager(const char* value) {
  With w("INGOT_EAGER", value);
  return env::flag("INGOT_EAGER");
}
int64_t plan_cache(const char* value) {
  With w("INGOT_PLAN_CACHE_MIB", value);
  return env::number("INGOT_PLAN_CACHE_MIB");
}
size_t read_limit(const char* value) {
  With w("INGOT_READ_LIMIT", value);
  return env::bytes("INGOT_READ_LIMIT");
}

}  // namespace

TEST_CASE("flags: 0 is off, empty and unset are the default") {
  CHECK(fuse(nullptr));
  CHECK(fuse(""));
  CHECK(fuse("1"));
  CHECK(fuse("off"));
  CHECK(!fuse("0"));
  CHECK(!eager(nullptr));
  CHECK(!eager(""));
  CHECK(!eager("0"));
  CHECK(eager("1"));
}

TEST_CASE("numbers: the default, and one report, where they are none or out of range") {
  CHECK(plan_cache(nullptr) == 256);
  CHECK(plan_cache("") == 256);
  CHECK(plan_cache("0") == 0);
  CHECK(plan_cache(" 64") == 64);
  CHECK(plan_cache("1073741824") == 1073741824);
  const std::string report = printed([] {
    for (const char* nonsense : {"12x", "x", " ", "-1", "1073741825", "99999999999999999999"})
      CHECK(plan_cache(nonsense) == 256);
  });
  CHECK(report ==
        "[ingot] INGOT_PLAN_CACHE_MIB=12x is not a number from 0 to 1073741824: 256 is used\n");
  With w("INGOT_NUM_THREADS", nullptr);
  CHECK(env::number("INGOT_NUM_THREADS") == 0);
}

TEST_CASE("bytes, with units") {
  CHECK(read_limit(nullptr) == 0);
  CHECK(read_limit("1000") == 1000);
  CHECK(read_limit("3MiB") == size_t{3} << 20);
  CHECK(read_limit("8GiB") == size_t{8} << 30);
  CHECK(read_limit("1TiB") == size_t{1} << 40);
  CHECK(read_limit("99999999999TiB") > size_t{1} << 62);
  const std::string report = printed([] {
    for (const char* nonsense : {"8GB", "GiB", "-1", "99999999999999999999"})
      CHECK(read_limit(nonsense) == 0);
  });
  CHECK(report ==
        "[ingot] INGOT_READ_LIMIT=8GB is not a number of bytes, MiB, GiB or TiB: 0 is used\n");
}

TEST_CASE("words and paths are read each time, INGOT_DEBUG once") {
  {
    With w("INGOT_SIMD", "avx2");
    CHECK(env::is("INGOT_SIMD", "avx2"));
    CHECK(!env::is("INGOT_SIMD", "avx"));
  }
  {
    With w("INGOT_CACHE_DIR", "/a b");
    CHECK(env::path("INGOT_CACHE_DIR") == "/a b");
  }
  With unset("INGOT_CACHE_DIR", nullptr);
  CHECK(env::path("INGOT_CACHE_DIR") == std::nullopt);
  {
    With w("INGOT_DEBUG", "plan,kernels");
    CHECK(env::debug("plan"));
    CHECK(env::debug("kernels"));
    CHECK(!env::debug("kernel"));
    CHECK(!env::debug("plan,kernels"));
    CHECK(!env::debug("time"));
  }
  With later("INGOT_DEBUG", "time");
  CHECK(env::debug("plan"));
  CHECK(!env::debug("time"));
}

TEST_CASE("the public list and values") {
  With w("INGOT_VENV", "/v");
  std::set<std::string> names;
  for (const EnvironmentVariable& v : environment_variables()) {
    CHECK(names.insert(v.name).second);
    CHECK(!v.purpose.empty());
    CHECK(!v.reader.empty());
    CHECK((v.kind != "flag" || v.standard == "0" || v.standard == "1"));
    CHECK(v.value == environment(v.name));
  }
  CHECK(environment("INGOT_VENV") == "/v");
  CHECK(names.contains("HOME"));
  try {
    environment("INGOT_FUSED");
    FAIL("an unknown name is taken");
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::Value);
    CHECK(e.fix() == "the nearest is INGOT_FUSE");
  }
}
