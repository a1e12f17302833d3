// Kernel offers: what a backend answers when the compiler asks about a library call. A backend
// keeps its kernels for library calls in a table, in order of preference; the first row that takes
// a call runs it.
#pragma once
#include <array>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "codegen/kernel_spec.h"

namespace ingot {

/// Why a kernel does not take a call.
struct Refusal {
  const char* kernel;
  std::string why;
};

/// The kernel that would run a call, and what it asks of its operands.
struct Offer {
  const char* kernel = nullptr;  // nullptr: there is none
  /// Convolutions: activations and weights are best stored with the channels innermost.
  bool channels_last = false;
  /// May a result be stored where an operand is stored whose value nobody needs afterwards? Numbers
  /// of spec.operands; no other operand is that value. nullptr: never.
  bool (*in_place)(const LibrarySpec&, size_t operand, size_t result) = nullptr;

  explicit operator bool() const { return kernel != nullptr; }
};

class OpSet {
 public:
  constexpr OpSet(std::initializer_list<Op> ops) {
    for (Op op : ops) words_[static_cast<size_t>(op) / 64] |= bit(op);
  }
  /// All ops of a kind.
  constexpr explicit OpSet(bool (*is)(Op)) {
    for (int op = 0; op < static_cast<int>(Op::Count_); ++op)
      if (is(static_cast<Op>(op))) words_[static_cast<size_t>(op) / 64] |= bit(static_cast<Op>(op));
  }
  constexpr bool has(Op op) const { return words_[static_cast<size_t>(op) / 64] & bit(op); }

 private:
  static constexpr uint64_t bit(Op op) { return uint64_t{1} << static_cast<int>(op) % 64; }
  std::array<uint64_t, 4> words_{};
};

/// What all rows of a backend's table have; the backend adds how the kernel is made.
struct OfferRow {
  const char* kernel;
  OpSet ops;
  Epilogues epilogues;  // those it takes
  /// Why it does not take a call of such an op with such epilogues; nullptr: it takes it. Without a
  /// function it takes all, or finds out when it is made.
  const char* (*refuses)(const LibrarySpec&) = nullptr;
  bool channels_last = false;
  bool (*in_place)(const LibrarySpec&, size_t operand, size_t result) = nullptr;

  /// Does it take the call? If not, `why` may say the reason.
  bool takes(const LibrarySpec& spec, const char*& why) const {
    if (!spec.epilogues.within(epilogues)) return false;
    why = refuses ? refuses(spec) : nullptr;
    return !why;
  }
  Offer offer() const { return {kernel, channels_last, in_place}; }
};

/// A refusal in words: why the row says, or the epilogues that it does not have.
std::string refusal_text(const OfferRow& row, const LibrarySpec& spec, const char* why);

/// Calls f(row, why) for the rows that take the call, in order, until it returns true; where it
/// returns false, it says why in `why`. Rows that do not take the call are noted in `refused`.
template <class Row, class F>
bool first_offer(std::span<const Row> table, const LibrarySpec& spec, std::vector<Refusal>* refused,
                 F f) {
  for (const Row& row : table) {
    if (!row.ops.has(spec.op)) continue;
    const char* why = nullptr;
    if (row.takes(spec, why) && f(row, why)) return true;
    if (refused) refused->push_back({row.kernel, refusal_text(row, spec, why)});
  }
  return false;
}

/// The first row that takes the call, before it is made.
template <class Row>
Offer best_offer(std::span<const Row> table, const LibrarySpec& spec) {
  Offer best;
  first_offer(table, spec, nullptr, [&](const Row& row, const char*&) {
    best = row.offer();
    return true;
  });
  return best;
}

/// Why the rows before that one, or all if there is none, do not take the call.
template <class Row>
std::vector<Refusal> refusals(std::span<const Row> table, const LibrarySpec& spec) {
  std::vector<Refusal> refused;
  first_offer(table, spec, &refused, [](const Row&, const char*&) { return true; });
  return refused;
}

}  // namespace ingot
