#include "graph/attributes.h"

#include <bit>

#include "base/hash.h"
#include "graph/composite.h"

namespace ingot {
namespace {

template <class T>
const T& unboxed(const T& t) {
  return t;
}
template <class T>
const T& unboxed(const Boxed<T>& t) {
  return *t;
}

void put(std::vector<uint64_t>& to, const Dims& d) {
  to.push_back(static_cast<uint64_t>(d.size()));
  to.insert(to.end(), d.begin(), d.end());
}
void put(std::vector<uint64_t>& to, double v) { to.push_back(std::bit_cast<uint64_t>(v)); }
template <class T>
void put(std::vector<uint64_t>& to, T v) {
  to.push_back(static_cast<uint64_t>(v));
}

void put(std::vector<uint64_t>& to, const Composite* c) {
  to.push_back(static_cast<uint64_t>(c->id));
}

std::vector<uint64_t> words_of(const Attributes& a) {
  std::vector<uint64_t> w;
  a.append_words(w);
  return w;
}

std::string text_of(double v) { return std::to_string(v); }
std::string text_of(int64_t v) { return std::to_string(v); }
std::string text_of(uint64_t v) { return std::to_string(v); }
std::string text_of(int v) { return std::to_string(v); }
std::string text_of(const Composite* c) { return c->name; }
std::string text_of(bool v) { return v ? "true" : "false"; }
std::string text_of(const Dims& d) { return to_string(d); }
/// Axes of a mask.
std::string text_of(uint32_t axes) {
  Dims d;
  for (int i = 0; i < kMaxDims; ++i)
    if (axes >> i & 1) d.push_back(i);
  return to_string(d);
}
template <class E>
requires std::is_enum_v<E> std::string text_of(E e) { return name_of(e); }

}  // namespace

void Attributes::copy(const Attributes& o) { v_ = o.v_; }
void Attributes::clear() { v_.~Variant(); }

void Attributes::append(std::vector<uint64_t>& to) const {
  std::visit(
      [&](const auto& stored) {
        unboxed(stored).each([&](const char*, const auto& field) { put(to, field); });
      },
      v_);
}

bool operator==(const Attributes& a, const Attributes& b) {
  if (a.v_.index() != b.v_.index()) return false;
  return a.empty() || words_of(a) == words_of(b);
}

uint64_t Attributes::hash() const {
  if (empty()) return 0;
  Hasher h;
  for (uint64_t w : words_of(*this)) h.add(w);
  return h.value();
}

std::string Attributes::text() const {
  std::string s;
  auto field = [&](const char* name, const auto& value) {
    s += (s.empty() ? "" : " ") + std::string(name) + "=" + text_of(value);
  };
  std::visit([&](const auto& stored) { unboxed(stored).each(field); }, v_);
  return s;
}

const char* name_of(ScatterMode mode) {
  static constexpr const char* names[] = {"set", "prod", "max", "min"};
  return names[static_cast<size_t>(mode)];
}
const char* name_of(ScanKind kind) {
  static constexpr const char* names[] = {"sum", "prod", "logsum", "argmax", "argmin"};
  return names[static_cast<size_t>(kind)];
}
const char* name_of(LinalgKind kind) {
  static constexpr const char* names[] = {"solve", "triangular", "inverse", "cholesky", "slogdet"};
  return names[static_cast<size_t>(kind)];
}
const char* name_of(AttentionMask mask) {
  static constexpr const char* names[] = {"none", "causal", "newest"};
  return names[static_cast<size_t>(mask)];
}

}  // namespace ingot
