// See zip.h. Only the directory at the end is trusted; of the local header before each member only
// its length is used.
#include "io/zip.h"

#include <algorithm>
#include <array>

#include "io/codecs.h"

namespace ingot::io {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;

std::array<std::array<uint32_t, 256>, 8> make_tables() {
  std::array<std::array<uint32_t, 256>, 8> t{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int k = 0; k < 8; ++k) c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
    t[0][i] = c;
  }
  for (size_t j = 1; j < 8; ++j)
    for (size_t i = 0; i < 256; ++i) t[j][i] = t[0][t[j - 1][i] & 0xff] ^ t[j - 1][i] >> 8;
  return t;
}

}  // namespace

uint32_t crc32(Bytes data, uint32_t start) {
  static const auto t = make_tables();
  uint32_t c = ~start;
  size_t i = 0;
  for (; i + 8 <= data.size(); i += 8) {
    const uint8_t* p = data.data() + i;
    uint32_t low = c ^ (p[0] | static_cast<uint32_t>(p[1]) << 8 |
                        static_cast<uint32_t>(p[2]) << 16 | static_cast<uint32_t>(p[3]) << 24);
    c = t[7][low & 0xff] ^ t[6][low >> 8 & 0xff] ^ t[5][low >> 16 & 0xff] ^ t[4][low >> 24] ^
        t[3][p[4]] ^ t[2][p[5]] ^ t[1][p[6]] ^ t[0][p[7]];
  }
  for (; i < data.size(); ++i) c = t[0][(c ^ data[i]) & 0xff] ^ c >> 8;
  return ~c;
}

// ---- Reading

ZipReader::ZipReader(Bytes file, Budget& budget, const char* op, const std::string& path,
                     const SourceLoc& loc)
    : file_(file), budget_(budget), op_(op), path_(path), loc_(loc) {
  uint64_t count = 0, size = 0, at = 0;
  find_directory(count, size, at);
  if (at > file.size() || size > file.size() - at)
    fail_io(op, path, "is a damaged zip archive: its directory is outside the file", loc);
  if (count > size / 46)
    fail_io(op, path,
            "is a damaged zip archive: its directory is too small for " + std::to_string(count) +
                " members",
            loc);
  read_directory(count, at);
  // Members that share their bytes could unpack to far more than the file holds.
  uint64_t packed = 0;
  for (const Member& m : members_)
    if (__builtin_add_overflow(packed, m.packed, &packed) || packed > file.size())
      fail_io(op, path, "is a damaged zip archive: its members overlap", loc);
  by_name_.reserve(members_.size());
  for (size_t i = 0; i < members_.size(); ++i) by_name_.emplace(members_[i].name, i);
}

void ZipReader::find_directory(uint64_t& count, uint64_t& size, uint64_t& at) {
  constexpr size_t kEndBytes = 22;
  Cursor in(file_, op_, path_, loc_);
  if (file_.size() < kEndBytes) in.fail("is not a zip archive");
  size_t lowest = file_.size() - std::min<size_t>(file_.size(), kEndBytes + 65535),
         end = file_.size() - kEndBytes;
  while (true) {
    in.seek(end);
    if (in.u32() == kEnd) break;
    if (end == lowest) in.fail("is not a zip archive, or is cut short: it has no directory");
    --end;
  }
  in.seek(end + 10);
  count = in.u16();
  size = in.u32();
  at = in.u32();
  bool large = count == 0xffff || size == 0xffffffff || at == 0xffffffff;
  if (!large || end < 20) return;
  in.seek(end - 20);
  if (in.u32() != kLocator64) return;
  in.u32();
  uint64_t place = in.u64();
  in.seek(static_cast<size_t>(place));
  if (in.u32() != kEnd64) in.fail("is a damaged zip archive");
  in.take(28);
  count = in.u64();
  size = in.u64();
  at = in.u64();
}

void ZipReader::read_directory(uint64_t count, uint64_t at) {
  Cursor in(file_, op_, path_, loc_);
  in.seek(static_cast<size_t>(at));
  for (uint64_t i = 0; i < count; ++i) {
    if (in.u32() != kCentral)
      in.fail("is a damaged zip archive: member " + std::to_string(i) +
              " of its directory is not one");
    in.take(4);
    uint16_t flags = in.u16();
    Member m{};
    m.method = in.u16();
    in.u32();  // time and date
    m.crc = in.u32();
    m.packed = in.u32();
    m.size = in.u32();
    uint16_t name = in.u16(), extra = in.u16(), comment = in.u16();
    in.take(8);
    m.header = in.u32();
    Bytes text = in.take(name);
    m.name.assign(text.begin(), text.end());
    Cursor more(in.take(extra), op_, path_, loc_);
    while (more.left() >= 4) {
      uint16_t id = more.u16(), length = more.u16();
      Cursor field(more.take(length), op_, path_, loc_);
      if (id != 1) continue;
      for (uint64_t* v : {&m.size, &m.packed, &m.header})
        if (*v == 0xffffffff) *v = field.u64();
    }
    in.take(comment);
    if (flags & 1) in.fail("is encrypted");
    budget_.take(2 * sizeof(Member) + m.name.size() + 64);
    members_.push_back(std::move(m));
  }
}

const ZipReader::Member* ZipReader::find(std::string_view name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : &members_[at->second];
}

Bytes ZipReader::read(const Member& m, std::vector<uint8_t>& own) const {
  Cursor in(file_, op_, path_, loc_);
  in.seek(static_cast<size_t>(std::min<uint64_t>(m.header, file_.size())));
  if (in.u32() != kLocal)
    in.fail("is a damaged zip archive: \"" + m.name + "\" is not where its directory says");
  in.take(22);
  uint16_t name = in.u16(), extra = in.u16();
  in.take(name);
  in.take(extra);
  if (m.packed > in.left()) in.fail("is cut short: \"" + m.name + "\" does not fit");
  Bytes data = in.take(static_cast<size_t>(m.packed));
  if (m.method == 8) {
    // Deflate never unpacks one byte to more than 1032.
    if (m.size / 1032 > m.packed + 1)
      in.fail("\"" + m.name + "\" has a stated size that is impossible");
    budget_.take(static_cast<size_t>(m.size));
    own.resize(static_cast<size_t>(m.size));
    try {
      codecs(op_, loc_).inflate(data, own.data(), own.size());
    } catch (const CodecError& e) {
      in.fail("\"" + m.name + "\" cannot be unpacked: " + e.what());
    }
    data = own;
  } else if (m.method != 0 || m.packed != m.size) {
    in.fail("\"" + m.name + "\" has an unknown compression method (" + std::to_string(m.method) +
            ")");
  }
  if (crc32(data) != m.crc) in.fail("\"" + m.name + "\" is damaged: its checksum is wrong");
  return data;
}

// ---- Writing

namespace {

struct Little {
  std::string bytes;
  Little& put(uint64_t v, int n) {
    for (int i = 0; i < n; ++i) bytes += static_cast<char>(v >> (8 * i) & 0xff);
    return *this;
  }
};

constexpr uint64_t kLarge = 0xffffffff;

}  // namespace

void ZipWriter::add(const std::string& name, Bytes head, Bytes body) {
  uint64_t size = head.size() + body.size();
  uint32_t crc = crc32(body, crc32(head));
  members_.push_back({name, crc, size, at_});
  // An extra field of zeros moves the data to a multiple of 64; sizes that need more than 32 bits
  // are in another one.
  Little large;
  if (size >= kLarge) large.put(1, 2).put(16, 2).put(size, 8).put(size, 8);
  uint64_t begin = at_ + 30 + name.size() + large.bytes.size() + 4,
           padding = (64 - begin % 64) % 64;
  Little h;
  uint64_t short_size = std::min(size, kLarge);
  h.put(kLocal, 4)
      .put(45, 2)
      .put(0x800, 2)
      .put(0, 2)
      .put(0x00210000, 4)
      .put(crc, 4)
      .put(short_size, 4)
      .put(short_size, 4);
  h.put(name.size(), 2).put(large.bytes.size() + 4 + padding, 2);
  h.bytes += name + large.bytes;
  h.put(0x4749, 2).put(padding, 2);  // "IG"
  h.bytes.append(padding, '\0');
  out_.write(h.bytes.data(), h.bytes.size());
  out_.write(head.data(), head.size());
  out_.write(body.data(), body.size());
  at_ += h.bytes.size() + size;
}

void ZipWriter::finish() {
  Little d;
  for (const Member& m : members_) {
    bool large = m.size >= kLarge || m.header >= kLarge;
    Little extra;
    if (large) extra.put(1, 2).put(24, 2).put(m.size, 8).put(m.size, 8).put(m.header, 8);
    uint64_t size = large ? kLarge : m.size, header = large ? kLarge : m.header;
    d.put(kCentral, 4)
        .put(45, 2)
        .put(45, 2)
        .put(0x800, 2)
        .put(0, 2)
        .put(0x00210000, 4)
        .put(m.crc, 4)
        .put(size, 4)
        .put(size, 4);
    d.put(m.name.size(), 2)
        .put(extra.bytes.size(), 2)
        .put(0, 2)
        .put(0, 2)
        .put(0, 2)
        .put(0, 4)
        .put(header, 4);
    d.bytes += m.name + extra.bytes;
  }
  uint64_t size = d.bytes.size(), count = members_.size(), end64 = at_ + size;
  bool large = at_ >= kLarge || size >= kLarge || count >= 0xffff;
  if (large) {
    d.put(kEnd64, 4)
        .put(44, 8)
        .put(45, 2)
        .put(45, 2)
        .put(0, 4)
        .put(0, 4)
        .put(count, 8)
        .put(count, 8)
        .put(size, 8)
        .put(at_, 8);
    d.put(kLocator64, 4).put(0, 4).put(end64, 8).put(1, 4);
  }
  uint64_t short_count = std::min<uint64_t>(count, 0xffff);
  d.put(kEnd, 4)
      .put(0, 2)
      .put(0, 2)
      .put(short_count, 2)
      .put(short_count, 2)
      .put(std::min(size, kLarge), 4)
      .put(large ? kLarge : at_, 4)
      .put(0, 2);
  out_.write(d.bytes.data(), d.bytes.size());
}

}  // namespace ingot::io
