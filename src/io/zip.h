// Zip archives, as npz and .pt files are: stored or deflated members, large archives (zip64) too.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "io/budget.h"
#include "io/file.h"

namespace ingot::io {

uint32_t crc32(Bytes data, uint32_t start = 0);

class ZipReader {
 public:
  struct Member {
    std::string name;
    uint16_t method;
    uint32_t crc;
    uint64_t packed, size, header;
  };
  /// The directory and what is unpacked are charged to the budget.
  ZipReader(Bytes file, Budget& budget, const char* op, const std::string& path,
            const SourceLoc& loc);
  const std::vector<Member>& members() const { return members_; }
  const Member* find(std::string_view name) const;
  /// The member's bytes, checked against its sum: a part of the file, or `own` when they had to be
  /// unpacked (then own.size() of the budget may be given back with it).
  Bytes read(const Member& m, std::vector<uint8_t>& own) const;

 private:
  void find_directory(uint64_t& count, uint64_t& size, uint64_t& at);
  void read_directory(uint64_t count, uint64_t at);
  Bytes file_;
  Budget& budget_;
  const char* op_;
  std::string path_;
  SourceLoc loc_;
  std::vector<Member> members_;
  std::unordered_map<std::string_view, size_t> by_name_;  // of several of one name the first
};

/// Writes stored members whose data begins at multiples of 64.
class ZipWriter {
 public:
  explicit ZipWriter(AtomicFile& out) : out_(out) {}
  void add(const std::string& name, Bytes head, Bytes body);
  void finish();

 private:
  struct Member {
    std::string name;
    uint32_t crc;
    uint64_t size, header;
  };
  AtomicFile& out_;
  uint64_t at_ = 0;
  std::vector<Member> members_;
};

}  // namespace ingot::io
