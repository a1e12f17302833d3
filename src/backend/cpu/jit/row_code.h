// Map and Row kernels of float32 as machine code: all rounds of a row in one function, values in
// registers, one pass over memory. A row is the run of elements along the last axis; a kernel's
// other axes enumerate the rows. Values that a later round needs are recomputed when they are cheap
// and kept in a row of the frame otherwise.
//
// Made where the processor has AVX-512 and the kernel is nothing but float32 arithmetic on dense
// rows; everything else runs over tiles (exec.h). Both round every operation alike.
#pragma once
#include <memory>

#include "backend/cpu/jit/code_memory.h"
#include "backend/cpu/kernel/layout.h"
#include "runtime/backend.h"

namespace ingot::cpu {

/// How a row's code finds its memory: the address of the first row is computed here, the code
/// itself steps from row to row along the last row axis.
struct RowPointer {
  int buffer = -1;        // -1: an index, a value instead of an address
  Affine map;             // over the kernel's axes
  bool along = false;     // runs along the row
  bool streamed = false;  // written bypassing the caches: must be aligned
};

/// The schedule of what is computed when, determined before any code is generated.
struct RowProgram {
  const Analysis& an;
  const KernelSpec& spec;
  int row_axes = 0;     // the axes that enumerate rows
  int64_t length = -1;  // of a row; -1: known at run time (Maps of one axis)
  bool streams = false;
  std::vector<RowPointer> pointers;
  std::vector<int> load_pointer, index_pointer;  // per instruction
  std::vector<int> store_pointer;                // per store
  std::vector<int> store_round;
  std::vector<char> host;              // Uniform and computed before the code runs: any type
  std::vector<char> full;              // varies along the row
  std::vector<char> row_needed;        // something that is stored depends on it
  std::vector<int> kept_round;         // the round that fills the kept row of a value, or -1
  std::vector<std::vector<int>> loop;  // per round: instructions of the loop over the row, in order

  explicit RowProgram(const Analysis& a) : an(a), spec(a.spec) {}
  /// False: not a kernel for row code.
  bool make();
  bool is_kept(int v, int round) const {
    return kept_round[static_cast<size_t>(v)] >= 0 && kept_round[static_cast<size_t>(v)] < round;
  }
  /// Loops that reduce, store or keep something.
  std::vector<int> roots(int round) const;

 private:
  bool suits();
  bool find_host();
  bool suits(const Instr& i) const;
  bool find_pointers();
  int pointer(int buffer, const Affine& map);
  void find_loops();
  void choose_kept();
  std::vector<char> reach(int round, std::vector<char>* reloaded) const;
};

class RowCode {
 public:
  /// nullptr where the kernel is not one for row code.
  static std::shared_ptr<RowCode> make(const Analysis& an);
  /// Boxes [begin, end) of the plan that make() set up.
  void run(const Plan& plan, int64_t begin, int64_t end, void* const* buffers,
           const RunArgs& args) const;
  /// Of thread_memory(): the code's frame, then the cells.
  size_t thread_bytes() const { return cells_at() + cells_.size() * sizeof(uint64_t); }
  size_t host_bytes() const {
    return sizeof *this + code_.bytes() + plain_.bytes() +
           pointers_.capacity() * sizeof(RowPointer) + host_.capacity() * sizeof(HostStep) +
           (cells_.capacity() + extent_.capacity()) * 8;
  }

 private:
  size_t cells_at() const { return static_cast<size_t>((frame_bytes_ + 63) / 64 * 64); }
  /// A value computed before the code runs, in its own cell; slot: where the code expects it, or
  /// -1.
  struct HostStep {
    TileFn fn = nullptr;  // nullptr: an argument, or a constant that is there
    int cell = 0, a = -1, b = -1, c = -1, arg = -1, slot = -1;
    DType dtype = DType::Float32;
  };
  void add_host_steps(const RowProgram& program, const std::vector<int>& slots);
  void host_values(char* frame, const RunArgs& args) const;
  void rows(const Plan& plan, int64_t begin, int64_t end, void* const* buffers, char* frame) const;

  Code code_, plain_;  // plain_: without streaming stores, for memory that is not aligned
  std::vector<RowPointer> pointers_;
  std::vector<HostStep> host_;
  std::vector<uint64_t> cells_;  // with the constants
  std::vector<int64_t> extent_;  // of the row axes
  int64_t length_ = -1, rows_per_box_ = 1;
  int64_t frame_bytes_ = 0;
  bool streams_ = false;
  friend class RowEmitter;
};

/// Is machine code generated at all? INGOT_JIT=0: no; INGOT_JIT=all: for small kernels too. Tests
/// set both the switch and the minimum number of elements.
bool use_machine_code();
void set_machine_code(bool on, int64_t least_work);
int64_t machine_code_least_work();
/// How many kernels became machine code so far.
int64_t machine_code_made();
void count_machine_code();

}  // namespace ingot::cpu
