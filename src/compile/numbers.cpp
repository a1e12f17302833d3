// See numbers.h. A structure is known by a hash of the key without its constants. Two structures
// that share one would at most make arguments of each other's constants, which is allowed of any.
#include "compile/numbers.h"

#include <mutex>
#include <unordered_map>

#include "base/fork.h"
#include "base/hash.h"

namespace ingot {
namespace {

struct Known {
  std::vector<uint64_t> last;  // the constants of the last recording
  std::vector<bool> varies;
};

// Forgotten all at once when they take more: what changes is found again within two recordings.
constexpr size_t kMostWords = 1 << 20;
constexpr uint64_t kArgument = uint64_t{1} << 48;  // in the first word of a node's part of the key

struct Structures {
  ForkMutex<ForkOrder::Small> mutex;
  std::unordered_map<uint64_t, Known> known;
  size_t words = 0;
};
Structures& structures() {
  static Structures* s = new Structures;
  return *s;
}

uint64_t structure_of(const Trace& t) {
  Hasher h;
  size_t next = 0;
  for (size_t w = 0; w < t.key.size(); ++w) {
    const bool number = next < t.numbers.size() && t.numbers[next].word == w;
    next += number;
    h.add(number ? uint64_t{0} : t.key[w]);
  }
  return h.value();
}

// Which constants are known to vary, this recording's included.
std::vector<bool> varying(const Trace& t) {
  const uint64_t structure = structure_of(t);
  Structures& s = structures();
  std::lock_guard lock(s.mutex);
  if (s.words > kMostWords) {
    s.known.clear();
    s.words = 0;
  }
  Known& k = s.known[structure];
  const bool first = k.last.size() != t.numbers.size();
  if (first) {
    s.words += t.numbers.size() + 8;
    k.last.resize(t.numbers.size());
    k.varies.assign(t.numbers.size(), false);
  }
  for (size_t i = 0; i < t.numbers.size(); ++i) {
    const uint64_t now = t.key[t.numbers[i].word];
    if (!first && now != k.last[i]) k.varies[i] = true;
    k.last[i] = now;
  }
  return k.varies;
}

}  // namespace

bool make_arguments(Trace& t) {
  if (t.numbers.empty()) return false;
  const std::vector<bool> varies = varying(t);
  bool any = false;
  for (size_t i = 0; i < t.numbers.size(); ++i) {
    if (!varies[i]) continue;
    const auto [word, node] = t.numbers[i];
    t.argument_of.emplace_back(node, static_cast<int>(t.args.size()));
    t.args.push_back(t.nodes[node]->attrs.as<ConstAttrs>().f);
    t.key[word] = 0;
    t.key[word - 1] |= kArgument;
    any = true;
  }
  return any;
}

}  // namespace ingot
