// How a kernel is laid over threads: which axis the lanes of a thread run along, how many threads
// share a row, what stays in registers between rounds. Decided from the structure and from buckets
// of the sizes, so that a new batch size seldom means new text. The numbers themselves are
// collected by name in Numbers.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backend/cuda/emit/text.h"
#include "codegen/single_index_update.h"

namespace ingot::cuda {

enum class Mode : uint8_t {
  Map,     // lanes along the last outer axis, no inner axes
  Column,  // lanes along the last outer axis, the inner axes walked by a team of threads
  Row,     // lanes along the last inner axis, a team of threads per outer point
  Tile,    // a Map through shared memory: operands' unit-stride axes differ
};
enum class Hold : uint8_t { None, Registers, Shared };

struct Schedule {
  Mode mode = Mode::Map;
  int lanes = 1;   // V: consecutive elements per thread
  int team = 1;    // T: threads that share the inner axes of one outer point (of one lane group)
  int side = 1;    // teams side by side in a block
  int groups = 1;  // lane groups a thread has in flight (in registers: all it has)
  Hold hold = Hold::None;
  bool keep_sources = false;  // what is held: see find_rounds
  bool split = false;   // two stages: several blocks per outer point, then their partial results
  bool sweep = false;   // Column without reductions: several blocks share the rows of a column
  bool packed = false;  // 16-bit values are held two to a register
  bool exact = false;   // every group of every thread is inside the row
  bool shifted =
      false;  // Row: rows are not aligned; groups begin at aligned addresses, some before the row
  int shift_load = -1, shift_store = -1;  // shifted: the access that says where
  bool wide = false;                      // 64-bit indices
  bool tail = false;                      // the lane axis is not a multiple of lanes
  bool streaming = false;                 // larger than the cache
  int tile_axis = -1;                     // Tile: the other axis
  int stage2_team = 0, stage2_side = 0;
  std::vector<int>
      load_width;  // per instruction: elements per memory access (a power of two up to lanes)
  std::vector<int> store_width;  // per store

  int min_blocks = 0;  // per multiprocessor: a bound on registers; 0: none

  int threads() const { return team * side; }
  bool lanes_outer() const { return mode != Mode::Row; }
  bool in_chunks() const { return split || sweep; }
  /// Does one thread alone walk a column? It may leave when it has none, and it meets elements in
  /// order.
  bool alone() const { return mode == Mode::Column && team == 1 && !in_chunks(); }
};

Schedule choose_schedule(std::span<const KernelSpec> parts, const CudaTarget& target);
std::string describe(const Schedule& s);

/// The rounds of a kernel: what is computed before, between and after its reductions.
struct Rounds {
  std::vector<int> round;  // per instruction: reductions that must be done before it
  std::vector<bool> held;  // per instruction: kept from its round to a later one
  int last = 0;            // of any store or reduction
  bool stores_last =
      false;  // elements are stored in the last round: what is read there may be the same memory
  double held_words = 0;    // registers per element, 16-bit values unpacked
  double packed_words = 0;  // the same with two 16-bit values to a register
};
/// The kernel with one index along the axis; the index keeps the axis' size in ivalue.
KernelSpec at_single_index(const KernelSpec& k, const SingleIndex& single);
/// keep_sources: keep what was loaded and compute the rest again, instead of keeping the smallest
/// cut.
Rounds find_rounds(const KernelSpec& k, bool keep_sources = false);

/// The axis that lanes run along; -1 when there is none.
int lane_axis(const KernelSpec& k, Mode mode);
/// Does the value not change along the lanes? Per instruction.
std::vector<bool> lane_uniform(const KernelSpec& k, Mode mode);

/// Sizes of one part under a schedule.
struct Geometry {
  int64_t outer = 1;         // points of the outer axes
  int64_t outer_groups = 1;  // lane groups of them (Row: the points)
  int64_t lane_groups = 1;   // lane groups along the lane axis
  int64_t inner_groups = 1;  // what a team walks
  int64_t splits = 1, chunk = 1;
  int64_t column_blocks = 1;  // blocks side by side
  int64_t blocks[2] = {1, 1};
  std::vector<int64_t> scratch;  // offset of each reduction's partial results, in bytes
  int64_t scratch_bytes = 0;     // of this part
};
Geometry geometry(const Schedule& s, const KernelSpec& k, const CudaTarget& target);

/// Tile: does the access go through shared memory? load is nullptr for a store.
bool is_staged(const KernelSpec& k, const Affine& map, const Instr* load, int tile_axis);

/// Dynamic shared memory of a block that keeps a row of that many lane groups.
size_t shared_bytes(const KernelSpec& k, const Schedule& s, int64_t inner_groups);

/// Bytes of one partial result of a Reduce instruction.
size_t partial_bytes(const KernelSpec& k, const Instr& reduce);

/// The numbers a text reads, in order. A number is known by its name; its value is computed for
/// each part.
class Numbers {
 public:
  using Value = std::function<int64_t(const KernelSpec&, const Geometry&)>;
  /// The name, after making sure that it is in the list.
  std::string use(const std::string& name, Value value);
  /// A divisor with its magic number: text of "x / divisor".
  std::string divide(const std::string& x, const std::string& name, const Value& value, bool wide);

  struct Entry {
    std::string name;
    Value value;
    bool magic = false;
  };
  const std::vector<Entry>& list() const { return list_; }

 private:
  std::vector<Entry> list_;
  std::map<std::string, int> known_;
};
/// Positions below this are counted in 32 bits.
inline constexpr int64_t kNarrowLimit = (int64_t{1} << 31) - (int64_t{1} << 22);
/// For 0 <= x < 2^31: x / d == (x * low 32 bits) >> high 32 bits.
int64_t magic_divisor(int64_t d);

}  // namespace ingot::cuda
