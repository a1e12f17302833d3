// Machine code for the float32 instructions of a kernel on one vector of 16 elements: values live
// in registers from the instruction that makes them to the last one that uses them. What surrounds
// it (loops, addresses, reductions) is done by RowCode and ColumnCode.
#pragma once
#include <map>
#include <vector>

#include "backend/cpu/jit/x64.h"
#include "codegen/kernel_spec.h"

namespace ingot::cpu {

class VectorEmitter {
 public:
  explicit VectorEmitter(const KernelSpec& spec);
  virtual ~VectorEmitter() = default;

  /// Can this instruction be emitted as vector code at all?
  static bool can(const KernelSpec& spec, const Instr& i);
  static bool is_mask(const Instr& i) { return i.dtype == DType::Bool; }
  static bool is_int(const Instr& i) { return i.dtype == DType::Int64; }
  /// Rough number of micro-operations.
  static int cost(const Instr& i);
  /// Ran out of registers: the code is not usable.
  bool failed() const { return failed_; }

 protected:
  static constexpr int kTemps =
      14;  // zmm0..13: values of a body; the others: accumulators and pinned values
  static constexpr int kTail = 1;  // k1: the lanes of a row's last vector
  static constexpr int kFirstMask = 2, kEndMask = 6;

  /// Where a float value that has no register is stored in memory (broadcast or not).
  virtual x64::Mem source(int v) = 0;
  /// An Index instruction's values of this vector, into a register.
  virtual void index_vector(int k, int dst) = 0;

  /// Starts a body: `uses` says how often each value is read in it.
  void begin_body(const std::vector<int>& uses, bool tail);
  /// The code of a Compute instruction.
  void compute(int k);
  /// A value in a register; release() it by finish_use.
  int in_register(int v);
  x64::Rm operand(int v);
  /// One reader of v is done. Registers that operand() or in_register() took for it are free again.
  void finish_use(int v);
  void fail() { failed_ = true; }
  void set_register(int v, int r) { reg_[static_cast<size_t>(v)] = r; }
  int temp();
  void release(int r);
  x64::Rm constant(float f);
  x64::Rm constant_bits(uint32_t b);
  int constant_register(float f, std::vector<int>& taken);

  /// Registers that hold a constant or a value during a loop.
  void pin_nothing();
  int pin_constant(uint32_t bits, int r);
  void pin_value(int v, int r) { pinned_[v] = r; }
  /// The constants that an instruction's code prefers in registers, most useful first.
  static void wanted_constants(const Instr& i, std::vector<uint32_t>& out);

  const KernelSpec& spec_;
  x64::Assembler a_;
  bool tail_ = false;
  std::vector<int> reg_, left_;

 private:
  void binary(const x64::Enc& e, int k, bool commutes);
  void extremum(const x64::Enc& e, int k);
  void comparison(int k);
  int compare_mask(int k);
  void where(int k);
  void unary(int k);
  void move_to(int dst, const x64::Rm& from);
  // in and out are different registers; in is kept
  void exp(int out, int in);
  void exp_tail(int out, int x, int n);
  void sigmoid(int out, int in);
  void tanh(int out, int in);
  void erf(int out, int in);
  void log(int out, int in);
  /// out = ((c[0] x + c[1]) x + c[2]) ...
  void polynomial(int out, int x, std::initializer_list<float> c);

  std::vector<int> borrowed_;  // registers taken for memory operands of the current instruction
  std::map<int, int> pinned_;
  std::map<uint32_t, int> pinned_constants_;
  uint32_t free_ = 0;  // of the temps
  uint32_t free_masks_ = 0;
  std::map<int, int> masks_;  // mask value -> k register
  bool failed_ = false;
};

}  // namespace ingot::cpu
