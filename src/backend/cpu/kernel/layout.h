// First half of building a Plan: the order of the axes, the sizes of the tiles, the span of each
// value and the rounds it is needed in.
#pragma once
#include "backend/cpu/kernel/plan.h"

namespace ingot::cpu {

struct Analysis {
  const KernelSpec& spec;
  Plan& plan;
  std::vector<int> order;          // layout position -> axis of the spec
  std::vector<Span> span;          // per instruction
  std::vector<int> round;          // earliest round of an instruction
  std::vector<uint64_t> computed;  // rounds (bits) an instruction is computed in
  std::vector<uint64_t> needed;    // rounds it is used in
  std::vector<int> uses;
  std::vector<int> store_round;  // per store
  int n_rounds = 1;

  Analysis(const KernelSpec& s, Plan& p) : spec(s), plan(p) {}
  void run();

  Access access(const Affine& m) const;
  /// Layout positions a span covers.
  void positions(Span s, int& lo, int& hi) const;
  /// Are the points of a span contiguous in memory, in every tile?
  bool dense(const Access& at, Span s) const;
  /// Do tiles follow one another in memory, in the order they are visited?
  bool sequential(const Access& at) const;
  bool is_scalar(Span s) const;  // one element in every tile
  /// A load that is only an address, so cheaper to repeat than to keep.
  bool rebind(int instr) const;
  /// A cast that leaves the tile as it is.
  bool alias_cast(int instr) const;
  /// By columns: rows of the tile can be reduced in place, without a copy; their distance, or 0.
  int64_t pitch(int instr) const;
  /// Rounds in which inner tiles are visited.
  int elem_rounds() const;

 private:
  bool plain_load(int instr) const;
  bool only_sums_of_memory() const;
  void choose_order();
  void choose_tiles();
  void choose_split();
  void classify();
  void find_rounds();
  void place_rounds();
};

}  // namespace ingot::cpu
