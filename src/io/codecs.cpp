// Finding the library of codecs. See codecs.h.
#include "io/codecs.h"

#include <dlfcn.h>

#include <cstring>

#include "ingot/error.h"
#include "ingot/version.h"
#include "io/file.h"

namespace ingot::io {

#ifdef INGOT_CODECS_INSIDE

Codecs& codecs(const char*, const SourceLoc&) { return *ingot_codecs(); }

#else

namespace {

std::string own_folder() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<void*>(&own_folder), &info) || !info.dli_fname) return {};
  std::string path = info.dli_fname;
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

Codecs* load(std::string& reason) {
  void* library = nullptr;
  for (const std::string& place :
       {own_folder() + "libingot_codecs.so", std::string("libingot_codecs.so")}) {
    if ((library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL))) break;
    const char* e = dlerror();
    reason += (reason.empty() ? "" : "; ") + std::string(e ? e : place);
  }
  if (!library) return nullptr;
  auto version = reinterpret_cast<const char* (*)()>(dlsym(library, "ingot_codecs_version"));
  auto make = reinterpret_cast<Codecs* (*)()>(dlsym(library, "ingot_codecs"));
  if (!version || !make || std::strcmp(version(), INGOT_VERSION_STRING) != 0) {
    reason = std::string("its version differs from that of ") + INGOT_VERSION_STRING;
    return nullptr;
  }
  return make();
}

}  // namespace

Codecs& codecs(const char* op, const SourceLoc& loc) {
  static std::string reason;
  static Codecs* found = load(reason);
  if (!found)
    throw Error(
        ErrorKind::Unsupported, op,
        "compressed data and images need libingot_codecs.so, which could not be loaded (" + reason +
            ")",
        loc,
        "build Ingot where zlib, libpng and libjpeg-turbo are installed (tools/setup.sh), or "
        "install those "
        "libraries here");
  return *found;
}

#endif

Image decode_image(Bytes data, int channels, const ChooseWindow& choose, Window* window,
                   const char* op, const std::string& path, const SourceLoc& loc) {
  constexpr uint8_t kPng[] = {0x89, 'P', 'N', 'G'}, kJpeg[] = {0xff, 0xd8, 0xff};
  bool png = data.size() > 4 && std::memcmp(data.data(), kPng, 4) == 0;
  if (!png && (data.size() < 4 || std::memcmp(data.data(), kJpeg, 3) != 0))
    fail_io(op, path, "is neither PNG nor JPEG", loc);
  try {
    const int64_t most = max_pixels(data.size());
    if (!png) return codecs(op, loc).decode_jpeg(data, channels, most, choose, window);
    Image image = codecs(op, loc).decode_png(data, channels, most);
    if (choose) *window = choose(image.width, image.height);
    return image;
  } catch (const CodecError& e) {
    fail_io(op, path, std::string("cannot be decoded: ") + e.what(), loc);
  }
}

bool is_gzip(Bytes data) { return data.size() >= 2 && data[0] == 0x1f && data[1] == 0x8b; }

Bytes unpacked(Bytes data, Budget& budget, std::vector<uint8_t>& own, const char* op,
               const std::string& path, const SourceLoc& loc) {
  if (!is_gzip(data)) return data;
  try {
    // Half: the buffer doubles as it fills, and old and new coexist while it moves.
    own = codecs(op, loc).gunzip(data, budget.left() / 2);
  } catch (const CodecError& e) {
    fail_io(op, path, std::string("cannot be unpacked: ") + e.what(), loc);
  }
  budget.take(own.size());
  return own;
}

}  // namespace ingot::io
