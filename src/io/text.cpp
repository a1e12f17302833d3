// Small files of text, written as all files here are.
#include "ingot/io.h"
#include "io/file.h"

namespace ingot::io {

void write_text(const std::string& path, std::string_view text, SourceLoc where) {
  AtomicFile out(path, "write_text", user_loc(where));
  out.write(text.data(), text.size());
  out.commit();
}

}  // namespace ingot::io
