// Runs the steps of a Plan over its tiles, on one thread.
#pragma once
#include "backend/cpu/kernel/plan.h"
#include "runtime/backend.h"

namespace ingot::cpu {

class Exec {
 public:
  /// Sets up this thread's frame and computes the Uniform values. box, acc: where the box's Outer
  /// values and accumulators live; nullptr: in the frame.
  Exec(const Plan& plan, void* const* buffers, const RunArgs& run);

  /// Whole boxes, all rounds.
  void boxes(int64_t begin, int64_t end);
  /// Split plans: the inner tiles of one piece of a box in one round, into the accumulators `acc`.
  void piece(int64_t box, int64_t split, size_t round, char* box_area, char* acc);
  /// Split plans: joins the accumulators of the pieces of a box, which follow `acc` in memory, into
  /// it, in order.
  void merge(int64_t box, size_t round, char* acc, int64_t splits);
  /// Split plans: the steps before the inner tiles of a round, given the accumulators of the
  /// previous round.
  void between(int64_t box, size_t round, char* box_area, char* acc);

 private:
  void set_box(int64_t box);
  void set_inner(int64_t tile);
  void use_areas(char* box_area, char* acc);
  void steps(const std::vector<Step>& list);
  void elem_tiles(const Round& r, int64_t begin, int64_t end);
  void columns(const Round& r);
  void count_points();

  int64_t position(const Access& a) const;
  void range(Span s, int& lo, int& hi) const;
  template <class F>
  void rows(Span s, F f);

  void memory_step(const Step& s);
  void bounded(const Step& s, const MemoryRef& m);
  void indirect(const Step& s, const MemoryRef& m);
  template <class T>
  void indirect_typed(const Step& s, const MemoryRef& m);
  void in_bounds(const Step& s, const MemoryRef& m);
  void generate(const Step& s, const MemoryRef& m);
  void argument(const Step& s, const MemoryRef& m);
  void expand(const Step& s);
  void store(const Step& s, const MemoryRef& m);
  void valid_range(const MemoryRef& m, const int64_t* i, int last, int64_t& lo, int64_t& hi) const;
  void index_error(const MemoryRef& m, int64_t value) const;
  bool failed() const;

  const Plan& p_;
  void* const* buffers_;
  const RunArgs& run_;
  char* frame_;
  char* acc_;
  char** vals_;
  int64_t start_[kMaxAxes] = {}, e_[kMaxAxes] = {};
  int64_t n_[4] = {1, 1, 1, 1};  // elements by Span
  /// Memory of the next tile, prefetched gradually while this one is computed.
  struct Ahead {
    const char *next, *end;
  };
  void prefetch();
  Ahead ahead_[8];
  int n_ahead_ = 0;
  char** addresses_;
  int64_t inner_tile_ = 0, inner_index0_ = 0;
};

}  // namespace ingot::cpu
