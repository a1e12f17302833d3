// Memory limits of containers: what is left is read from the control groups, and taking more is
// OutOfMemory.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <ingot/ingot.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "backend/cpu/support/memory.h"
#include "ingot/devices.h"

using namespace ingot;
namespace fs = std::filesystem;

namespace {

constexpr size_t kMiB = 1 << 20, kGiB = 1 << 30;

// A folder that looks like a machine of 32 GiB, 20 of them available.
class Machine {
 public:
  Machine() {
    std::string name = (fs::temp_directory_path() / "ingot_memory_XXXXXX").string();
    REQUIRE(mkdtemp(name.data()));
    root = name;
    put("/proc/meminfo",
        "MemTotal:       33554432 kB\nMemFree:  1 kB\nMemAvailable:   20971520 kB\n");
  }
  ~Machine() { fs::remove_all(root); }
  Machine& put(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root + path).parent_path());
    std::ofstream(root + path) << text;
    return *this;
  }
  Machine& put(const std::string& path, size_t number) {
    return put(path, std::to_string(number) + "\n");
  }
  HostMemory memory() const { return host_memory(root); }

  std::string root;
};

}  // namespace

TEST_CASE("a machine without limits, and one without anything to read") {
  Machine m;
  CHECK(m.memory().total == 32 * kGiB);
  CHECK(m.memory().available == 20 * kGiB);
  CHECK(m.memory().limit == 0);
  CHECK(host_memory("/nowhere/at/all").total == 0);
  // This one.
  CHECK(host_memory().total > 0);
  CHECK(host_memory().available <= host_memory().total);
}

TEST_CASE("control groups, version 2: the least of the group and those above it") {
  Machine m;
  const std::string top = "/sys/fs/cgroup";
  m.put("/proc/self/cgroup", "0::/pod/job\n");
  m.put(top + "/pod/job/memory.max", "max\n").put(top + "/pod/job/memory.current", 100 * kMiB);
  CHECK(m.memory().available == 20 * kGiB);
  m.put(top + "/pod/memory.max", 300 * kMiB).put(top + "/pod/memory.current", 120 * kMiB);
  CHECK(m.memory().limit == 300 * kMiB);
  CHECK(m.memory().total == 300 * kMiB);
  CHECK(m.memory().available == 180 * kMiB);
  m.put(top + "/pod/job/memory.max", 150 * kMiB);
  CHECK(m.memory().limit == 150 * kMiB);
  CHECK(m.memory().available == 50 * kMiB);
  // Files it has read are given up when memory is short.
  m.put(top + "/pod/job/memory.stat",
        "anon 1\nfile 2\ninactive_file 20971520\nactive_file 10485760\n");
  CHECK(m.memory().available == 80 * kMiB);
  // More in use than allowed (the limit was lowered): nothing is left.
  m.put(top + "/pod/memory.current", 400 * kMiB);
  CHECK(m.memory().available == 0);
}

TEST_CASE("inside a container the group is the mount itself") {
  Machine m;
  m.put("/proc/self/cgroup", "0::/\n");
  m.put("/sys/fs/cgroup/memory.max", 512 * kMiB).put("/sys/fs/cgroup/memory.current", 12 * kMiB);
  CHECK(m.memory().available == 500 * kMiB);
  // The host's name of the group, which is not to be found in here.
  m.put("/proc/self/cgroup", "0::/docker/0123456789abcdef\n");
  CHECK(m.memory().available == 500 * kMiB);
  m.put("/proc/self/cgroup", "");
  CHECK(m.memory().available == 500 * kMiB);
}

TEST_CASE("control groups, version 1") {
  Machine m;
  const std::string top = "/sys/fs/cgroup/memory";
  m.put("/proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/docker/job\n0::/\n");
  m.put(top + "/memory.limit_in_bytes", "9223372036854771712\n")
      .put(top + "/memory.usage_in_bytes", 5 * kGiB);
  CHECK(m.memory().limit == 0);
  m.put(top + "/docker/job/memory.limit_in_bytes", kGiB)
      .put(top + "/docker/job/memory.usage_in_bytes", 400 * kMiB);
  m.put(top + "/docker/job/memory.stat",
        "inactive_file 1\ntotal_inactive_file 104857600\ntotal_active_file 0\n");
  CHECK(m.memory().limit == kGiB);
  CHECK(m.memory().available == 724 * kMiB);
}

TEST_CASE("damaged files limit nothing") {
  Machine m;
  for (const char* text : {"", "\n", "abc", "-1\n", "0x10\n", "99999999999999999999999999\n"}) {
    m.put("/proc/self/cgroup", "0::/\n").put("/sys/fs/cgroup/memory.max", text);
    CHECK(m.memory().available == 20 * kGiB);
  }
  for (const char* text : {"::::\n", "0::\n", "0::pod\n", "memory\n"}) {
    m.put("/proc/self/cgroup", text);
    CHECK(m.memory().available == 20 * kGiB);
  }
}

TEST_CASE("a container's limit is OutOfMemory, for large tensors and for many small ones") {
  Machine m;
  m.put("/proc/self/cgroup", "0::/\n");
  m.put("/sys/fs/cgroup/memory.max", 300 * kMiB).put("/sys/fs/cgroup/memory.current", 100 * kMiB);
  cpu::set_memory_root(m.root);
  const Device device("cpu:5");
  CHECK_THROWS_AS(eval(ones({int64_t{1} << 26}, device)), OutOfMemory);
  std::vector<Tensor> kept;
  auto fill = [&] {
    for (int i = 0; i < 1000; ++i) {
      kept.push_back(ones({kMiB}, device));  // 4 MiB
      eval(kept.back());
      m.put("/sys/fs/cgroup/memory.current", (100 + 4 * kept.size()) * kMiB);
    }
  };
  CHECK_THROWS_AS(fill(), OutOfMemory);
  CHECK(kept.size() > 30);
  CHECK(kept.size() <= 50);
  // It is usable afterwards.
  CHECK(kept[0].sum().item<float>() == kMiB);
  kept.clear();
  cpu::set_memory_root("");
  CHECK(ones({int64_t{1} << 24}, device).sum().item<float>() == 1 << 24);
}
