#include "targets.h"

#include <ingot/ingot.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "data/pixels.h"
#include "data/readers.h"
#include "data/tokenizers.h"
#include "io/codecs.h"
#include "io/json.h"
#include "io/npy.h"
#include "io/pt.h"
#include "io/safetensors.h"

namespace ingot::fuzz {
namespace {

using io::Bytes;

void safetensors(const uint8_t* data, size_t size) {
  const io::Source file = io::source_of(Bytes(data, size));
  io::SafeTensorsHeader h = io::parse_safetensors(file, "fuzz", "file", {});
  io::check_sum(file, h, "fuzz", "file", {});
  for (const auto& e : h.entries) io::read_entry(file, h, e, {}, "fuzz", "file", {});
}

void npy(const uint8_t* data, size_t size) { io::parse_npy({data, size}, {}, "fuzz", "file", {}); }
void npz(const uint8_t* data, size_t size) { io::parse_npz({data, size}, {}, "fuzz", "file", {}); }
void pt(const uint8_t* data, size_t size) { io::parse_pt({data, size}, {}, "fuzz", "file", {}); }

void idx(const uint8_t* data, size_t size) { data::parse_idx({data, size}, "file", {}); }

void cifar(const uint8_t* data, size_t size) {
  if (!size) return;
  std::vector<uint8_t> pixels;
  std::vector<int64_t> labels;
  data::parse_cifar({data + 1, size - 1}, 1 + (data[0] & 1), pixels, labels, "file", {});
}

void csv(const uint8_t* data, size_t size) {
  data::parse_csv({reinterpret_cast<const char*>(data), size}, {}, "file", {});
}
void json(const uint8_t* data, size_t size) {
  const std::string path = "file";
  const SourceLoc loc;
  io::JsonReader in({reinterpret_cast<const char*>(data), size}, "fuzz", path, loc);
  in.skip();
  in.end();
}

// The vocabulary, the merges and a text, with a zero byte between.
void tokenizer(const uint8_t* data, size_t size) {
  std::string_view all(reinterpret_cast<const char*>(data), size);
  size_t first = all.find('\0'), second = first == all.npos ? all.npos : all.find('\0', first + 1);
  if (second == all.npos) return;
  auto state = data::parse_gpt2(all.substr(0, first), all.substr(first + 1, second - first - 1),
                                "vocab", "merges", {});
  std::string_view text = all.substr(second + 1);
  if (data::decode_gpt2(*state, data::encode_gpt2(*state, text), {}) != text) std::abort();
}

// The last bytes choose the part that is decoded.
void image(const uint8_t* data, size_t size) {
  if (size < 4) return;
  const uint8_t* tail = data + size - 4;
  io::Bytes file(data, size - 4);
  io::Window window;
  io::ChooseWindow choose = [&](int w, int h) {
    auto part = [](int n, uint8_t from, uint8_t length) {
      int begin = n * from / 256, count = std::max(1, (n - begin) * length / 255);
      return std::pair<double, double>(begin, count);
    };
    auto [x, width] = part(w, tail[0], tail[1]);
    auto [y, height] = part(h, tail[2], tail[3]);
    return io::Window{x, y, width, height, 16, 16};
  };
  io::Image i = io::decode_image(file, tail[0] & 1 ? 3 : 0, tail[1] ? choose : io::ChooseWindow{},
                                 &window, "fuzz", "file", {});
  if (!tail[1]) window = {0, 0, static_cast<double>(i.width), static_cast<double>(i.height), 0, 0};
  std::vector<uint8_t> out(16 * 16 * 3);
  data::resize(i.pixels.get(), i.width, i.height, i.channels, window, out.data(), 16, 16);
}

}  // namespace

const Target kTargets[] = {
    {"safetensors", safetensors},
    {"npy", npy},
    {"npz", npz},
    {"pt", pt},
    {"idx", idx},
    {"cifar", cifar},
    {"csv", csv},
    {"json", json},
    {"tokenizer", tokenizer},
    {"image", image},
    {"checkpoint", checkpoint, {ErrorKind::State}},
#ifdef INGOT_FUZZ_PROGRAM
    {"recipe", recipe, {ErrorKind::Value, ErrorKind::Shape, ErrorKind::OutOfMemory}},
    {"card", card},
#endif
    {"index_json", index_json},
    {"tuning", tuning},
    {"cubin", cubin},
    {"buffers",
     buffers,
     {ErrorKind::Value, ErrorKind::Shape, ErrorKind::DType, ErrorKind::Device,
      ErrorKind::OutOfMemory}}};
const int kTargetCount = sizeof kTargets / sizeof *kTargets;

bool run(const Target& target, const uint8_t* data, size_t size) {
  try {
    target.run(data, size);
    return true;
  } catch (const Error& e) {
    const auto& also = target.also;
    if (e.kind() == ErrorKind::Io || e.kind() == ErrorKind::Unsupported ||
        std::find(also.begin(), also.end(), e.kind()) != also.end())
      return false;
    std::fprintf(stderr, "%s: an error that no file may cause: %s\n", target.name, e.what());
    std::abort();
  }
}

}  // namespace ingot::fuzz
