// The emitter of one kernel's text: private to the files of this folder.
//
// A kernel is emitted in four steps: the position of this thread (coordinates of its outer point or
// lane group), what is computed once per outer point, the rounds (loops over the inner axes that
// load, compute, reduce and store), and the stores of outer values. In the text i0, i1.. are
// coordinates, vN the value of instruction N (vN[j] when it differs between the lanes j of a
// thread), rN what a load brought from memory, hN a kept value, aN an accumulator.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "backend/cuda/emit/schedule.h"
#include "backend/cuda/emit/values.h"

namespace ingot::cuda {

/// Lines of text, with loops over a thread's lanes opened and closed as needed.
class Lines {
 public:
  explicit Lines(int lanes) : lanes_(lanes) {}
  void plain(const std::string& s) {
    close();
    text_ += s + "\n";
  }
  /// A statement per lane j.
  void lane(const std::string& s) {
    if (!open_) text_ += "IG_UNROLL for (int j = 0; j < " + std::to_string(lanes_) + "; ++j) {\n";
    open_ = true;
    text_ += "  " + s + "\n";
  }
  void close() {
    if (open_) text_ += "}\n";
    open_ = false;
  }
  std::string take() {
    close();
    return std::move(text_);
  }

 private:
  std::string text_;
  int lanes_;
  bool open_ = false;
};

class Emitter {
 public:
  /// stage 1 is the second half of a two-stage reduction; its schedule has one lane and the second
  /// stage's team.
  Emitter(std::span<const KernelSpec> parts, const Schedule& schedule, int stage, Numbers& numbers,
          ElementwiseFunctions& functions, const SingleIndex& single = {});
  /// The statements of the kernel, after the declarations of numbers and buffers.
  std::string body();

 private:
  using Pick = std::function<const Affine&(const KernelSpec&)>;
  struct MapText {
    std::string base, lane;  // position of lane 0, and what lane j adds
  };

  // emit/emit.cpp: the frame
  void place_thread();
  void place_tile();
  void decode(const std::string& linear, int begin, int end, int lanes_on);
  void count_lanes(int axis);
  void declare_scalars();
  void declare_held();
  void declare_single_index();
  void outer_values(int round);
  void bring_forward();
  void round(int r);
  void groups(const std::vector<int>& need, const std::vector<int>& reduces,
              const std::vector<int>& stores);
  void keep(int i, bool load);
  void rounds();
  void store_partials();
  void load_partials();
  void outer_stores();
  std::vector<int> reduces_of(int round) const;
  std::vector<int> stores_of(int round) const;
  std::vector<int> needed(int round);

  // emit/reduce.cpp: from every thread's accumulator to the team's result
  void declare_accumulators(const std::vector<int>& reduces);
  void accumulate(const std::vector<int>& reduces);
  void combine(const std::vector<int>& reduces);
  void combine_row(const std::vector<int>& reduces);
  void combine_column(int i);
  std::string accumulator_type(int i) const;
  bool lane_accumulator(int i) const;
  bool in_order() const;
  int finder(int i) const;

  // emit/body.cpp: loads, values, stores
  MapText map_text(const Pick& pick);
  std::string bounds_text(int i, bool lane_dependent);
  std::string index_text(int i, const std::string& guard);
  void group_place(bool swapped);
  void shift_lanes();
  void raw_load(int i, const std::string& into, const std::string& guard, const MapText& at);
  void load_groups(const std::vector<int>& need);
  void value(int i, bool in_group);
  void random_value(int i);
  void indirect_value(int i, const std::string& guard);
  std::string compute_text(int i);
  std::string round_result(int i, const std::string& text) const;
  std::string narrow_comparison(int i);
  bool below_one(int i) const;
  bool shared_division(int i);
  void store(int s, const std::string& guard);
  int overwritten(int s) const;
  bool unseen(int load) const;
  std::string operand(int i) const;
  std::string target(int i) const { return uniform_[i] ? v(i) : v(i) + "[j]"; }
  void assign(int i, const std::string& text);
  std::string declaration(int i) const;
  std::string raw_type(int i) const;
  std::string held_type(int i) const;
  int load_hint(int i) const;

  // emit/tile.cpp: through shared memory
  bool staged_load(int i) const;
  bool staged_store(int s) const;
  std::string tile_declaration(DType t, const std::string& name) const;
  void tile_loads(const std::vector<int>& need);
  void stage_store(int n);
  void tile_stores();

  std::string number(const std::string& name, Numbers::Value value) {
    return numbers_.use(name, std::move(value));
  }
  std::string extent(int axis);
  /// What must hold for the current group to be loaded or stored; empty: it always does.
  std::string guard() const {
    if (s_.mode == Mode::Map) return "";
    return !s_.exact ? "ok" : s_.side > 1 && !leaves() ? "live" : "";
  }
  /// No thread waits for another: one without a column leaves.
  bool leaves() const { return s_.sweep || s_.alone(); }
  /// The condition for lane j to be inside the lane axis.
  std::string inside_lanes() const {
    return !s_.tail ? "" : s_.shifted ? "j >= low && j < cnt" : "j < cnt";
  }
  static std::string v(int i) { return "v" + std::to_string(i); }
  bool is_elem(int i) const { return k_.instrs[i].level == Level::Elem && !is_scalar(i); }
  bool is_scalar(int i) const {
    return k_.instrs[i].kind == InstrKind::Const || k_.instrs[i].kind == InstrKind::Arg;
  }
  /// Is the value read from where an earlier round left it?
  bool kept(int i) const { return s_.hold != Hold::None && rounds_.held[i] && created_[i]; }

  /// A load that all rows share comes from a cache: it is loaded where it is used, to save
  /// registers.
  bool late(int i) const {
    if (s_.hold != Hold::Registers || rounds_.held[i] || k_.n_outer == 0) return false;
    for (int x = 0; x < k_.n_outer; ++x)
      if (k_.instrs[i].map.stride[x] != 0) return false;
    return true;
  }

  std::span<const KernelSpec> parts_;
  const KernelSpec& k_;
  Schedule s_;
  int stage_;
  Numbers& numbers_;
  ElementwiseFunctions& functions_;
  Rounds rounds_;
  std::vector<bool> uniform_, created_;
  SingleIndex single_;
  std::vector<int> forward_;       // loads of later rounds that the first one makes
  std::vector<bool> only_stored_;  // 16-bit values that no instruction uses: stores round them
  std::vector<Pick> maps_;         // those that have names already
  Lines out_;
};

inline std::string str(int64_t x) { return std::to_string(x); }

}  // namespace ingot::cuda
