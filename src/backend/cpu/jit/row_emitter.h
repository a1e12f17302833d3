// The machine code of a RowProgram: void code(frame, rows). The frame holds the row's addresses,
// the scalars of a row (means, sums) and the kept rows.
#pragma once
#include "backend/cpu/jit/row_code.h"
#include "backend/cpu/jit/vector_emitter.h"

namespace ingot::cpu {

// Slots in the frame for rows whose length is known at run time: bytes done four vectors at a time,
// bytes done by full vectors, the remaining lanes. The addresses follow.
inline constexpr int kFrameMain = 0, kFrameVectors = 8, kFrameLanes = 16, kFramePointers = 64;

class RowEmitter final : public VectorEmitter {
 public:
  RowEmitter(const RowProgram& program, bool stream);
  std::vector<uint8_t> emit();
  int64_t frame_bytes() const { return frame_bytes_; }
  /// Where the frame holds a value of a row or of the whole kernel, or -1.
  const std::vector<int>& slots() const { return slots_; }

 private:
  x64::Mem source(int v) override;
  void index_vector(int k, int dst) override;

  void lay_out_frame();
  void section(int round);
  void row_value(int k);
  void put_slot(int k);
  x64::Reg pointer(int p);
  void prepare_loop(int round);
  void pin_for_loop(int first_free);
  void loop(int round);
  void loop_of_known_length();
  void loop_of_any_length();
  void body(int vector, bool tail);
  void element(int k);
  void results_of(int k);
  void reduce_into(int reduce);
  void store_along(size_t s);
  void finish_reduce(int k);
  void step_rows();
  std::vector<int> section_list(int round, std::vector<int>& uses) const;

  const RowProgram& p_;
  const bool stream_;
  std::vector<int> slots_;     // byte offsets in the frame
  std::vector<int64_t> kept_;  // of kept rows
  std::vector<int> gpr_;       // per pointer, or -1
  int64_t frame_bytes_ = 0;
  std::vector<char> ahead_;   // pointers to prefetch from
  std::vector<char> loaded_;  // pointers a loop has read already

  // the current loop
  int round_ = 0, unroll_ = 1, vector_ = 0;
  std::vector<int> uses_;
  std::vector<int> reduces_;           // instructions
  std::vector<std::vector<int>> acc_;  // their registers
  std::vector<int> nan_;               // k register of Max and Min, or -1
  std::vector<int> last_;              // and a register for the previous vector
  bool in_pairs_ = false;              // the loop processes vectors in pairs
  std::vector<char> in_loop_;
  bool first_body_ = false;
};

}  // namespace ingot::cpu
