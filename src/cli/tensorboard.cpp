#include "tensorboard.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <filesystem>

#include "cli.h"

namespace ingot::cli {
namespace fs = std::filesystem;

// ---- CRC-32C, rotated and offset as the record format requires

static uint32_t masked_crc(const std::string& bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> t{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int k = 0; k < 8; ++k) c = c & 1 ? c >> 1 ^ 0x82f63b78u : c >> 1;
      t[i] = c;
    }
    return t;
  }();
  uint32_t c = ~0u;
  for (const char b : bytes) c = table[(c ^ static_cast<unsigned char>(b)) & 255] ^ c >> 8;
  c = ~c;
  return (c >> 15 | c << 17) + 0xa282ead8u;
}

// ---- Protocol buffers: a field is its number and kind, then its value

template <class T>
static std::string little_endian(T value) {
  std::string s;
  for (size_t i = 0; i < sizeof(T); ++i) s += static_cast<char>(value >> (8 * i) & 255);
  return s;
}

static std::string varint(uint64_t v) {
  std::string s;
  for (; v >= 128; v >>= 7) s += static_cast<char>(v | 128);
  return s + static_cast<char>(v);
}

static std::string number(int field, uint64_t v) {
  return varint(static_cast<uint64_t>(field) << 3) + varint(v);
}
static std::string bytes(int field, const std::string& s) {
  return varint(static_cast<uint64_t>(field) << 3 | 2) + varint(s.size()) + s;
}
static std::string float64_field(int field, double v) {
  return varint(static_cast<uint64_t>(field) << 3 | 1) + little_endian(std::bit_cast<uint64_t>(v));
}
static std::string float32_field(int field, float v) {
  return varint(static_cast<uint64_t>(field) << 3 | 5) + little_endian(std::bit_cast<uint32_t>(v));
}

static double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Event: 1 wall time, 2 step, 3 version of the format, 5 summary, 7 session log.
static std::string event(int64_t step, const std::string& what) {
  return float64_field(1, wall_time()) + number(2, static_cast<uint64_t>(step)) + what;
}

EventFile::EventFile(const std::string& folder, int64_t first_step) {
  char host[64] = "here";
  gethostname(host, sizeof host - 1);
  const std::string stem =
      folder + format("/events.out.tfevents.%010lld.%s.%d", static_cast<long long>(wall_time()),
                      host, static_cast<int>(getpid()));
  std::string name = stem;
  for (int i = 1; kind_of(name) != PathKind::None; ++i) name = stem + "." + std::to_string(i);
  out_.open(name);
  record(event(0, bytes(3, "brain.Event:2")));
  if (first_step > 0) record(event(first_step, bytes(7, number(1, 1))));
}

void EventFile::record(const std::string& e) {
  const std::string length = little_endian(static_cast<uint64_t>(e.size()));
  // On a full disk it waits in memory; metrics.jsonl, which has the same numbers, says so.
  out_.add(length + little_endian(masked_crc(length)) + e + little_endian(masked_crc(e)));
}

void EventFile::scalars(int64_t step, const std::vector<std::pair<std::string, double>>& values) {
  std::string summary;
  // Summary: 1 a value, in which 1 is the tag and 2 the number.
  for (const auto& [tag, v] : values)
    summary += bytes(1, bytes(1, tag) + float32_field(2, static_cast<float>(v)));
  record(event(step, bytes(5, summary)));
}

void EventFile::clear(const std::string& folder) {
  std::error_code e;
  for (fs::directory_iterator f(folder, e), end; !e && f != end; f.increment(e)) {
    std::error_code ignored;
    if (f->path().filename().string().starts_with("events.out.tfevents."))
      fs::remove(f->path(), ignored);
  }
}

}  // namespace ingot::cli
