// Deflate and gzip by zlib.
#include <zlib.h>

#include <algorithm>
#include <memory>

#include "io/codecs/codecs_impl.h"

namespace ingot::io {
namespace {

constexpr size_t kMost = 1u << 30;  // zlib counts in 32 bits

struct Inflater {
  z_stream z{};
  explicit Inflater(int window_bits) {
    if (inflateInit2(&z, window_bits) != Z_OK) throw CodecError("zlib could not start");
  }
  ~Inflater() { inflateEnd(&z); }

  // Continues until the stream ends or the output is full; returns whether it ended.
  bool run(Bytes& in, uint8_t* out, size_t size, size_t& written) {
    while (true) {
      size_t give = std::min(in.size(), kMost), room = std::min(size - written, kMost);
      z.next_in = const_cast<Bytef*>(in.data());
      z.avail_in = static_cast<uInt>(give);
      z.next_out = out + written;
      z.avail_out = static_cast<uInt>(room);
      int code = ::inflate(&z, Z_NO_FLUSH);
      in = in.subspan(give - z.avail_in);
      size_t made = room - z.avail_out;
      written += made;
      if (code == Z_STREAM_END) return true;
      if (code != Z_OK && code != Z_BUF_ERROR) throw CodecError("the compressed data is damaged");
      if (written == size && made == 0) return false;
      if (in.empty() && made == 0) throw CodecError("the compressed data ends early");
      if (written == size && z.avail_out == 0 && code == Z_BUF_ERROR) return false;
    }
  }
};

// The bytes of a gzip file's members, one after the other.
class Unpacked {
 public:
  explicit Unpacked(Bytes data) : data_(data) {}
  // As many bytes as there are, up to `size`.
  size_t read(uint8_t* out, size_t size) {
    size_t written = 0;
    while (written < size && (z_ || !data_.empty())) {
      if (!z_) z_ = std::make_unique<Inflater>(16 + MAX_WBITS);
      if (!z_->run(data_, out, size, written)) break;
      z_.reset();
    }
    return written;
  }

 private:
  Bytes data_;
  std::unique_ptr<Inflater> z_;
};

}  // namespace

void inflate_exactly(Bytes data, uint8_t* out, size_t size) {
  Inflater z(-MAX_WBITS);
  size_t written = 0;
  uint8_t none;
  if (!z.run(data, size ? out : &none, size, written) || written != size)
    throw CodecError("the compressed data does not have the stated length");
}

std::vector<uint8_t> gunzip_all(Bytes data, size_t limit) {
  std::vector<uint8_t> out(std::min(limit, std::max<size_t>(data.size() * 4, 4096)));
  Unpacked in(data);
  size_t written = in.read(out.data(), out.size());
  for (uint8_t more = 0; written == out.size() && in.read(&more, 1) == 1;) {
    if (out.size() >= limit)
      throw CodecError("it unpacks to more than " + std::to_string(limit) + " bytes");
    out.resize(std::min(limit, out.size() * 2));
    out[written++] = more;
    written += in.read(out.data() + written, out.size() - written);
  }
  out.resize(written);
  return out;
}

size_t gunzip_first(Bytes data, uint8_t* out, size_t size) {
  return Unpacked(data).read(out, size);
}

void gunzip_after(Bytes data, size_t skip, uint8_t* out, size_t size) {
  Unpacked in(data);
  std::vector<uint8_t> head(skip);
  uint8_t more = 0;
  if (in.read(head.data(), skip) != skip || in.read(out, size) != size || in.read(&more, 1) != 0)
    throw CodecError("the compressed data does not have the stated length");
}

std::vector<uint8_t> gzip_all(Bytes data) {
  z_stream z{};
  if (deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw CodecError("zlib could not start");
  std::vector<uint8_t> out(deflateBound(&z, static_cast<uLong>(data.size())));
  z.next_in = const_cast<Bytef*>(data.data());
  z.avail_in = static_cast<uInt>(data.size());
  z.next_out = out.data();
  z.avail_out = static_cast<uInt>(out.size());
  int code = deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  if (code != Z_STREAM_END) throw CodecError("zlib could not pack it");
  return out;
}

}  // namespace ingot::io
