// The host's memory: the machine's, and what the control groups (containers) leave of it.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "ingot/devices.h"

namespace ingot {
namespace {

constexpr size_t kNone = std::numeric_limits<size_t>::max();

/// The number after a key, as in /proc/meminfo and memory.stat; 0 when it is missing.
size_t value_of(const std::string& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key)) return std::strtoull(line.c_str() + key.size(), nullptr, 10);
  return 0;
}

/// A file of one number; kNone for "max", version 1's largest numbers, and a file that is not
/// there.
size_t limit_in(const std::string& file) {
  std::ifstream in(file);
  std::string word;
  if (!(in >> word) || word.find_first_not_of("0123456789") != std::string::npos) return kNone;
  const unsigned long long n = std::strtoull(word.c_str(), nullptr, 10);
  return n >= (1ULL << 60) ? kNone : static_cast<size_t>(n);
}

struct Version {
  const char *limit, *usage, *file_keys[2];
};
constexpr Version kVersion1{"/memory.limit_in_bytes",
                            "/memory.usage_in_bytes",
                            {"total_inactive_file ", "total_active_file "}};
constexpr Version kVersion2{"/memory.max", "/memory.current", {"inactive_file ", "active_file "}};

/// A group and those it is in, up to the mount: each limits it. What they hold of files is given up
/// when memory is short, and counts as available, as in MemAvailable.
void limit_by(HostMemory& m, const std::string& mount, std::string group, const Version& v) {
  for (;;) {
    const std::string folder = mount + (group == "/" ? "" : group);
    if (const size_t limit = limit_in(folder + v.limit); limit != kNone) {
      const size_t usage = limit_in(folder + v.usage);
      size_t held = usage == kNone ? 0 : usage;
      for (const char* key : v.file_keys)
        held -= std::min(held, value_of(folder + "/memory.stat", key));
      m.limit = m.limit ? std::min(m.limit, limit) : limit;
      m.available = std::min(m.available, limit - std::min(limit, held));
    }
    if (group.empty() || group == "/") return;
    group.resize(group.rfind('/'));
  }
}

}  // namespace

HostMemory host_memory(const std::string& root) {
  HostMemory m;
  m.total = value_of(root + "/proc/meminfo", "MemTotal:") * 1024;
  m.available = value_of(root + "/proc/meminfo", "MemAvailable:") * 1024;
  const std::string groups = root + "/sys/fs/cgroup";
  bool any = false;
  std::ifstream in(root + "/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {  // number:controllers:group
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",",
                      group = line.substr(second + 1);
    if (!group.starts_with('/')) continue;
    if (names.find(",memory,") != std::string::npos) {
      limit_by(m, groups + "/memory", group, kVersion1);
      any = true;
    } else if (names == ",,") {
      limit_by(m, groups, group, kVersion2);
      any = true;
    }
  }
  if (!any) limit_by(m, groups, "/", kVersion2);
  if (m.limit && m.limit < m.total) m.total = m.limit;
  return m;
}

}  // namespace ingot
