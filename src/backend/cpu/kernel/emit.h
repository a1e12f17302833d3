// Second half of building a Plan: steps for each instruction, direct access to memory where it is
// dense, pairs of arithmetic ops in one loop, and buffers reused as soon as their values are dead.
#pragma once
#include <map>
#include <memory>
#include <tuple>

#include "backend/cpu/kernel/layout.h"

namespace ingot::cpu {

class Emitter {
 public:
  Emitter(Analysis& a, Plan& p) : an_(a), spec_(a.spec), plan_(p) {}
  void run();
  /// Machine code that visits the tiles of the one round they are visited in.
  std::shared_ptr<ColumnCode> columns;

 private:
  struct Value {
    Span span = Span::Full;
    int esize = 0;
    bool permanent = false;  // not reused within the frame
    bool bound = false;      // an address in memory
    bool aliased = false;    // ... that this kernel also writes
    bool placed = false;
  };
  int new_value(Span s, int esize);
  int resolve(int v) const { return alias_[v] >= 0 ? resolve(alias_[v]) : v; }
  int64_t count(Span s) const;

  void uniform(int k);
  void outer_round(int r);
  void elem_round(int r);
  void instr(std::vector<Step>& out, int k);
  void load(std::vector<Step>& out, int k);
  void compute(std::vector<Step>& out, int k);
  bool pair(std::vector<Step>& out, int k);
  void mark_pairs();
  void call(std::vector<Step>& out, TileFn fn, Span s, int dst, int a, int b = -1, int c = -1);
  void round_half(std::vector<Step>& out, int k);
  int operand(std::vector<Step>& out, int v, Span want, bool scalar_ok);
  int constant(int k, int64_t n);
  Step start_reduce(int k);
  void reduce(std::vector<Step>& out, int k);
  bool reduced_in_place(int k) const;
  void store(std::vector<Step>& out, size_t s);
  int ref(const Affine* m, Span s);
  bool can_be_direct(const std::vector<Step>& out, int v, const Store& st) const;
  bool moved_in_place(int k) const;
  void keep_rows(int r);

  void plan_ahead();
  void place_values();
  int64_t frame_slot(int64_t bytes);

  Analysis& an_;
  const KernelSpec& spec_;
  Plan& plan_;
  std::vector<Value> values_;
  std::vector<int> alias_;
  std::vector<char> absorbed_;                         // instructions computed inside a pair
  std::map<std::tuple<int, int, int>, int> expanded_;  // value, span, round -> value
  std::map<int, int> splats_;
  int round_now_ = 0;
};

}  // namespace ingot::cpu
