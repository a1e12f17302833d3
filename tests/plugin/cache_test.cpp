// The cache of kernels: files are believed only when nobody else can have written them and they say
// in full what they were made from; tuning choices of several processes are all kept.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "backend/cuda/runtime/private_cache.h"
#include "backend/cuda/runtime/tuning.h"
#include "base/sha256.h"

using namespace ingot;
namespace fs = std::filesystem;

namespace {

// A cache folder of this test's own.
struct Cache {
  fs::path root;
  Cache() {
    std::string name = (fs::temp_directory_path() / "ingot-cache-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    root = name;
    setenv("INGOT_CACHE_DIR", (root / "cache").c_str(), 1);
  }
  ~Cache() { fs::remove_all(root); }
  std::string folder() const { return (root / "cache").string(); }
};

mode_t mode_of(const std::string& path) {
  struct stat info {};
  REQUIRE(stat(path.c_str(), &info) == 0);
  return info.st_mode & 0777;
}

}  // namespace

TEST_CASE("sha256 agrees with the standard's examples") {
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256(std::string(1000000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("the cache is its owner's alone") {
  const Cache c;
  const mode_t before = umask(0);  // whatever the user's is
  CHECK(cuda::cache_folder() == c.folder());
  CHECK(mode_of(c.folder()) == 0700);
  CHECK(mode_of(c.folder() + "/cubin") == 0700);
  const std::string file = c.folder() + "/cubin/kernel";
  CHECK(cuda::write_private(file, "code"));
  CHECK(mode_of(file) == 0600);
  CHECK(cuda::read_private(file) == "code");
  umask(before);
  size_t files = 0;
  for ([[maybe_unused]] const auto& f : fs::directory_iterator(c.folder() + "/cubin")) ++files;
  CHECK(files == 1);

  // Files, links and folders that others could have made or changed.
  chmod(file.c_str(), 0666);
  CHECK(cuda::read_private(file).empty());
  chmod(file.c_str(), 0600);
  fs::create_symlink(file, c.folder() + "/cubin/link");
  CHECK(cuda::read_private(c.folder() + "/cubin/link").empty());
  if (geteuid() == 0) {
    REQUIRE(chown(file.c_str(), 1, 1) == 0);
    CHECK(cuda::read_private(file).empty());
    REQUIRE(chown(c.folder().c_str(), 1, 1) == 0);
    CHECK(cuda::cache_folder().empty());
    REQUIRE(chown(c.folder().c_str(), 0, 0) == 0);
  }
  for (const std::string& folder : {c.folder(), c.folder() + "/cubin"}) {
    chmod(folder.c_str(), 0770);
    CHECK(cuda::cache_folder().empty());
    chmod(folder.c_str(), 0700);
  }
  CHECK(cuda::cache_folder() == c.folder());
  mkfifo((c.folder() + "/cubin/pipe").c_str(), 0600);
  CHECK(cuda::read_private(c.folder() + "/cubin/pipe").empty());
}

TEST_CASE("a kernel is taken only for exactly what it was made from") {
  const std::string file = cuda::sealed("sm_90\n13.0\nsource", "machine code");
  CHECK(cuda::unsealed(file, "sm_90\n13.0\nsource") == "machine code");
  CHECK(cuda::unsealed(file, "sm_90\n13.0\nsource ").empty());
  CHECK(cuda::unsealed(file, "sm_80\n13.0\nsource").empty());
  for (size_t i = 0; i < file.size(); ++i) {
    std::string other = file;
    other[i] = static_cast<char>(other[i] ^ 1);
    CHECK(cuda::unsealed(other, "sm_90\n13.0\nsource").empty());
    CHECK(cuda::unsealed(file.substr(0, i), "sm_90\n13.0\nsource").empty());
  }
}

TEST_CASE("a choice is what it says, or none") {
  const uint64_t words[2] = {0x0123456789abcdef, ~uint64_t{0}};
  uint64_t back[2] = {};
  CHECK(cuda::unhex(cuda::hex(words), back));
  CHECK((back[0] == words[0] && back[1] == words[1]));
  for (const std::string& s : {std::string(), std::string(31, '0'), std::string(33, '0'),
                               std::string(31, '0') + "g", std::string(31, '0') + "F"})
    CHECK_FALSE(cuda::unhex(s, back));
  CHECK(cuda::place_in("0", 3) == 0);
  CHECK(cuda::place_in("2", 3) == 2);
  for (const char* s : {"", "3", "-1", "1x", " 1", "4294967296", "99999999999999999999"})
    CHECK_FALSE(cuda::place_in(s, 3).has_value());
}

TEST_CASE("tuning choices of several processes are all kept") {
  const Cache c;
  constexpr int kProcesses = 4, kChoices = 20;
  for (int p = 0; p < kProcesses; ++p)
    if (fork() == 0) {
      cuda::Tuning t;
      t.open("test");
      for (int i = 0; i < kChoices; ++i)
        t.keep("key" + std::to_string(p) + "_" + std::to_string(i), "1f");
      _exit(0);
    }
  for (int p = 0; p < kProcesses; ++p) wait(nullptr);
  cuda::Tuning all;
  all.open("test");
  for (int p = 0; p < kProcesses; ++p)
    for (int i = 0; i < kChoices; ++i)
      CHECK(all.find("key" + std::to_string(p) + "_" + std::to_string(i)) == "1f");
}
