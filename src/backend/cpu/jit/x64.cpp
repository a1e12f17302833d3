// See x64.h.
#include "backend/cpu/jit/x64.h"

#include <cstring>

namespace ingot::cpu::x64 {

void Assembler::word(int64_t x) {
  for (int k = 0; k < 4; ++k) byte(static_cast<int>(x >> (8 * k) & 0xff));
}

/// ModRM, SIB and displacement. after: bytes of the instruction that follow the displacement.
void Assembler::address(int reg, const Mem& m, int unit, int after) {
  const int r = (reg & 7) << 3;
  if (m.pool >= 0) {
    byte(r | 5);
    fixes_.push_back({here(), m.pool, here() + 4 + after});
    word(0);
    return;
  }
  const bool small = m.disp % unit == 0 && m.disp / unit >= -128 && m.disp / unit < 128;
  const bool sib = m.index >= 0 || (m.base & 7) == rsp;
  byte((small ? 0x40 : 0x80) | r | (sib ? 4 : m.base & 7));
  if (sib) byte((m.index >= 0 ? (m.index & 7) << 3 : 4 << 3) | (m.base & 7));
  if (small)
    byte(static_cast<int>(m.disp / unit) & 0xff);
  else
    word(m.disp);
}

void Assembler::v(const Enc& e, int dst, int src, const Rm& rm, int mask, bool zero, int imm) {
  const int s = src < 0 ? 0 : src;
  const bool mem = !rm.is_reg();
  const int b = mem ? (rm.mem.base >= 0 ? rm.mem.base >> 3 & 1 : 0) : rm.reg >> 3 & 1;
  const int x = mem ? (rm.mem.index >= 0 ? rm.mem.index >> 3 & 1 : 0) : rm.reg >> 4 & 1;
  const bool broadcast =
      mem && rm.mem.broadcast && e.unit == 64;  // others have their own form of it
  byte(0x62);
  byte((!(dst >> 3 & 1) << 7) | (!x << 6) | (!b << 5) | (!(dst >> 4 & 1) << 4) | e.map);
  byte((e.w << 7) | ((~s & 15) << 3) | 4 | e.pp);
  byte((zero ? 0x80 : 0) | (e.ll << 5) | (broadcast ? 0x10 : 0) | (!(s >> 4 & 1) << 3) | mask);
  byte(e.op);
  if (mem)
    address(dst, rm.mem, broadcast ? (e.w ? 8 : 4) : e.unit, imm >= 0);
  else
    byte(0xc0 | (dst & 7) << 3 | (rm.reg & 7));
  if (imm >= 0) byte(imm);
}

void Assembler::vex(int pp, int l, int op, int reg, int src, int rm) {
  byte(0xc5);
  byte((reg < 8 ? 0x80 : 0) | ((~src & 15) << 3) | (l << 2) | pp);
  byte(op);
  byte(0xc0 | (reg & 7) << 3 | (rm & 7));
}
void Assembler::k_set(int k, Reg from) { vex(0, 0, 0x92, k, 0, from); }
void Assembler::k_op(uint8_t op, int dst, int a, int b) { vex(0, 1, op, dst, a, b); }
void Assembler::k_not(int dst, int a) { vex(0, 0, 0x44, dst, 0, a); }
void Assembler::k_test(int a) { vex(0, 0, 0x98, a, 0, a); }

void Assembler::gpr(int w, int op, int reg, const Mem& m, int after) {
  const int rex = 0x40 | w << 3 | (reg >> 3 & 1) << 2 |
                  (m.index >= 0 ? (m.index >> 3 & 1) << 1 : 0) |
                  (m.base >= 0 ? m.base >> 3 & 1 : 0);
  if (rex != 0x40) byte(rex);
  if (op > 0xff) byte(op >> 8);
  byte(op & 0xff);
  address(reg, m, 1, after);
}
void Assembler::load(Reg r, const Mem& m) { gpr(1, 0x8b, r, m); }
void Assembler::load32(Reg r, const Mem& m) { gpr(0, 0x8b, r, m); }
void Assembler::store(const Mem& m, Reg r) { gpr(1, 0x89, r, m); }
void Assembler::move(Reg to, Reg from) {
  byte(0x48 | (from >> 3 & 1) << 2 | (to >> 3 & 1));
  byte(0x89);
  byte(0xc0 | (from & 7) << 3 | (to & 7));
}
void Assembler::move32(Reg r, uint32_t imm) {
  if (r >= r8) byte(0x41);
  byte(0xb8 | (r & 7));
  word(imm);
}
void Assembler::clear(Reg r) {
  if (r >= r8) byte(0x45);
  byte(0x31);
  byte(0xc0 | (r & 7) << 3 | (r & 7));
}
void Assembler::add_twice(Reg to, Reg base, Reg index) {  // lea
  byte(0x48 | (to >> 3 & 1) << 2 | (index >> 3 & 1) << 1 | (base >> 3 & 1));
  byte(0x8d);
  byte(0x44 | (to & 7) << 3);
  byte(0x40 | (index & 7) << 3 | (base & 7));
  byte(0);
}
void Assembler::add(Reg r, int32_t imm) {
  byte(0x48 | (r >> 3 & 1));
  byte(0x81);
  byte(0xc0 | (r & 7));
  word(imm);
}
void Assembler::add(const Mem& m, int32_t imm) {
  gpr(1, 0x81, 0, m, 4);
  word(imm);
}
void Assembler::shift_right32(Reg r, int bits) {
  if (r >= r8) byte(0x41);
  byte(0xc1);
  byte(0xe8 | (r & 7));
  byte(bits);
}
void Assembler::compare(Reg r, int32_t imm) {
  byte(0x48 | (r >> 3 & 1));
  byte(0x81);
  byte(0xf8 | (r & 7));
  word(imm);
}
void Assembler::compare(Reg r, const Mem& m) { gpr(1, 0x3b, r, m); }
void Assembler::decrement(Reg r) {
  byte(0x48 | (r >> 3 & 1));
  byte(0xff);
  byte(0xc8 | (r & 7));
}
void Assembler::prefetch(const Mem& m) { gpr(0, 0x0f18, 1, m); }
void Assembler::push(Reg r) {
  if (r >= r8) byte(0x41);
  byte(0x50 | (r & 7));
}
void Assembler::pop(Reg r) {
  if (r >= r8) byte(0x41);
  byte(0x58 | (r & 7));
}
void Assembler::vzeroupper() {
  byte(0xc5);
  byte(0xf8);
  byte(0x77);
}
void Assembler::ret() { byte(0xc3); }

void Assembler::jump_back(Condition c, int target) {
  const int32_t distance = target - jump(c);
  std::memcpy(&code_[code_.size() - 4], &distance, 4);
}
int Assembler::jump(Condition c) {
  byte(0x0f);
  byte(0x80 | c);
  word(0);
  return here();
}
void Assembler::land(int jump) {
  const int32_t distance = here() - jump;
  std::memcpy(&code_[static_cast<size_t>(jump) - 4], &distance, 4);
}

int Assembler::constant(uint32_t bits) {
  for (size_t k = 0; k < pool_.size(); ++k)
    if (pool_[k] == bits) return static_cast<int>(k);
  pool_.push_back(bits);
  return static_cast<int>(pool_.size()) - 1;
}
int Assembler::constant(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return constant(bits);
}
int Assembler::vector(const uint32_t (&lanes)[16]) {
  while (pool_.size() % 16) pool_.push_back(0);
  pool_.insert(pool_.end(), lanes, lanes + 16);
  return static_cast<int>(pool_.size()) - 16;
}

std::vector<uint8_t> Assembler::finish() {
  while (code_.size() % 64) byte(0xcc);
  const int pool = here();
  for (const Fix& f : fixes_) {
    const int32_t distance = pool + f.pool * 4 - f.end;
    std::memcpy(&code_[static_cast<size_t>(f.at)], &distance, 4);
  }
  for (uint32_t w : pool_) word(w);
  return std::move(code_);
}

}  // namespace ingot::cpu::x64
