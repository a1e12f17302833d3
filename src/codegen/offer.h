// Kernel offers: what a backend answers when the compiler asks about a library call. A backend
// keeps its kernels for library calls in a table, in order of preference; the first row that takes
// a call runs it.
#pragma once
#include <array>
#include <initializer_list>
#include <span>
#include <vector>

#include "codegen/kernel_spec.h"

namespace ingot {

/// Why a kernel does not take a call.
struct Refusal {
  const char* kernel;
  const char* why;
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

  /// nullptr when it takes the call.
  const char* refusal(const LibrarySpec& spec) const {
    if (!spec.epilogues.within(epilogues)) return "it has no such epilogue";
    return refuses ? refuses(spec) : nullptr;
  }
  Offer offer() const { return {kernel, channels_last, in_place}; }
};

/// Calls f(row, why) for the rows that take the call, in order, until it returns true; where it
/// returns false, it says why in `why`. Rows that do not take the call are noted in `refused`.
template <class Row, class F>
bool first_offer(std::span<const Row> table, const LibrarySpec& spec, std::vector<Refusal>* refused,
                 F f) {
  for (const Row& row : table) {
    if (!row.ops.has(spec.op)) continue;
    const char* why = row.refusal(spec);
    if (!why && f(row, why)) return true;
    if (refused) refused->push_back({row.kernel, why ? why : "it refused the operands"});
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

}  // namespace ingot
