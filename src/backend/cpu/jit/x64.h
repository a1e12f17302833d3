// A small assembler for x86-64 with AVX-512: the few instructions that RowCode and
// ColumnCode are made of. Constants are collected in a pool after the code and addressed
// relative to the instruction pointer.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace ingot::cpu::x64 {

enum Reg : int { rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15 };

/// base + index + disp, or a position in the pool. broadcast: one element for all lanes.
struct Mem {
  int base = -1, index = -1;
  int64_t disp = 0;
  int pool = -1;
  bool broadcast = false;
};

/// A vector register or memory.
struct Rm {
  int reg = -1;
  Mem mem;
  Rm(int r) : reg(r) {}
  Rm(const Mem& m) : mem(m) {}
  bool is_reg() const { return reg >= 0; }
};

/// How a vector instruction is encoded. unit: bytes that a short displacement counts, when not
/// broadcast.
struct Enc {
  uint8_t map, pp, w, op;
  uint8_t unit = 64, ll = 2;
};

// pp: 0 none, 1 66, 2 F3. map: 1 0F, 2 0F38, 3 0F3A.
inline constexpr Enc kLoad{1, 0, 0, 0x10}, kStore{1, 0, 0, 0x11}, kStream{1, 0, 0, 0x2b},
    kMove{1, 0, 0, 0x28}, kStoreOne{1, 2, 0, 0x11, 4, 0}, kBroadcast{2, 1, 0, 0x18, 4},
    kAdd{1, 0, 0, 0x58}, kMul{1, 0, 0, 0x59}, kSub{1, 0, 0, 0x5c}, kMin{1, 0, 0, 0x5d},
    kDiv{1, 0, 0, 0x5e}, kMax{1, 0, 0, 0x5f}, kSqrt{1, 0, 0, 0x51}, kAnd{1, 0, 0, 0x54},
    kOr{1, 0, 0, 0x56}, kXor{1, 0, 0, 0x57}, kCompare{1, 0, 0, 0xc2}, kFma213{2, 1, 0, 0xa8},
    kFma231{2, 1, 0, 0xb8}, kFnma231{2, 1, 0, 0xbc}, kFnma213{2, 1, 0, 0xac}, kRound{3, 1, 0, 0x08},
    kScale{2, 1, 0, 0x2c}, kBlend{2, 1, 0, 0x65}, kCompareInt{3, 1, 0, 0x1f},
    kAddInt{1, 1, 0, 0xfe}, kSubInt{1, 1, 0, 0xfa}, kShiftInt{1, 1, 0, 0x72},
    kToFloat{1, 0, 0, 0x5b}, kBroadcastInt{2, 1, 0, 0x58, 4}, kBroadcastGpr{2, 1, 0, 0x7c},
    kShuffle4{3, 1, 0, 0x23}, kPermute{3, 1, 0, 0x04}, kWiden{1, 0, 0, 0x5a, 32},
    kUpperHalf{3, 1, 1, 0x1b}, kAddDouble{1, 1, 1, 0x58}, kLoadDouble{1, 1, 1, 0x10},
    kStoreDouble{1, 1, 1, 0x11};

class Assembler {
 public:
  /// dst, src (-1: none) and rm; mask: k register, 0 none; zero: lanes that are not in the mask
  /// become 0.
  void v(const Enc& e, int dst, int src, const Rm& rm, int mask = 0, bool zero = false,
         int imm = -1);

  // k registers
  void k_set(int k, Reg from);                   // 16 bits
  void k_op(uint8_t op, int dst, int a, int b);  // 0x41 and, 0x45 or, 0x47 xor
  void k_not(int dst, int a);
  void k_test(int a);  // zero flag: no bit set

  void load(Reg r, const Mem& m);
  void load32(Reg r, const Mem& m);
  void store(const Mem& m, Reg r);
  void move(Reg to, Reg from);
  void move32(Reg r, uint32_t imm);
  void clear(Reg r);
  void add_twice(Reg to, Reg base, Reg index);  // to = base + 2 * index
  void add(Reg r, int32_t imm);
  void add(const Mem& m, int32_t imm);
  void shift_right32(Reg r, int bits);
  void compare(Reg r, int32_t imm);
  void compare(Reg r, const Mem& m);
  void decrement(Reg r);
  void prefetch(const Mem& m);
  void push(Reg r);
  void pop(Reg r);
  void vzeroupper();
  void ret();

  enum Condition : uint8_t { kZero = 4, kNotZero = 5, kLess = 0xc, kNotLess = 0xd };
  int here() const { return static_cast<int>(code_.size()); }
  void jump_back(Condition c, int target);
  int jump(Condition c);  // forward; land() sets its target
  void land(int jump);

  /// A constant in the pool, reused when it is there already.
  int constant(uint32_t bits);
  int constant(float f);
  int vector(const uint32_t (&lanes)[16]);

  /// Code and pool, ready to be placed at an address that is a multiple of 64.
  std::vector<uint8_t> finish();

 private:
  void byte(int b) { code_.push_back(static_cast<uint8_t>(b)); }
  void word(int64_t x);
  void address(int reg, const Mem& m, int unit, int after);
  void gpr(int w, int op, int reg, const Mem& m, int after = 0);
  void vex(int pp, int l, int op, int reg, int src, int rm);

  std::vector<uint8_t> code_;
  std::vector<uint32_t> pool_;
  struct Fix {
    int at, pool, end;
  };
  std::vector<Fix> fixes_;
};

}  // namespace ingot::cpu::x64
