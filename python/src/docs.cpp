// The docstrings: the comments of the public headers, as tools/op_reference.py --python wrote them
// at build time.
#include <algorithm>
#include <iterator>

#include "bind.h"

namespace ingot_python {
namespace {

struct Doc {
  std::string_view name;
  const char* text;
};

// Sorted by name.
constexpr Doc docs[] = {
#include "docs.inc"
};

}  // namespace

const char* doc_of(std::string_view name) {
  const Doc* found = std::lower_bound(std::begin(docs), std::end(docs), name,
                                      [](const Doc& d, std::string_view n) { return d.name < n; });
  return found != std::end(docs) && found->name == name ? found->text : "";
}

}  // namespace ingot_python
