// See vector_emitter.h: registers, operands and arithmetic. The transcendental functions are in
// vector_math.cpp.
#include "backend/cpu/jit/vector_emitter.h"

#include <algorithm>
#include <cstring>

namespace ingot::cpu {

using namespace x64;

VectorEmitter::VectorEmitter(const KernelSpec& spec)
    : spec_(spec), reg_(spec.instrs.size(), -1), left_(spec.instrs.size(), 0) {}

static bool whole_number(const KernelSpec& spec, int v) {
  const Instr& i = spec.instrs[static_cast<size_t>(v)];
  if (i.dtype != DType::Int64) return false;
  if (i.kind == InstrKind::Const)
    return i.ivalue > -(int64_t{1} << 30) && i.ivalue < int64_t{1} << 30;
  return i.kind == InstrKind::Index;
}

bool VectorEmitter::can(const KernelSpec& spec, const Instr& i) {
  auto type = [&](int k) { return spec.instrs[static_cast<size_t>(i.arg[k])].dtype; };
  if (i.kind != InstrKind::Compute) return false;
  switch (i.op) {
    case Op::Eq:
    case Op::Ne:
    case Op::Lt:
    case Op::Le:
    case Op::Gt:
    case Op::Ge:
      return type(0) == type(1) && (type(0) == DType::Float32 ||
                                    (whole_number(spec, i.arg[0]) && whole_number(spec, i.arg[1])));
    case Op::Where:
      return i.dtype == DType::Float32 && type(0) == DType::Bool;
    case Op::Cast:
      if (i.dtype == DType::Bool) return type(0) == DType::Float32;
      return i.dtype == DType::Float32 && (type(0) == DType::Float32 || type(0) == DType::Bool);
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Div:
    case Op::Maximum:
    case Op::Minimum:
    case Op::Neg:
    case Op::Abs:
    case Op::Sign:
    case Op::Sqrt:
    case Op::Rsqrt:
    case Op::Reciprocal:
    case Op::Relu:
    case Op::Floor:
    case Op::Ceil:
    case Op::Round:
    case Op::Trunc:
    case Op::Exp:
    case Op::Sigmoid:
    case Op::Tanh:
    case Op::Erf:
    case Op::Log:
      return i.dtype == DType::Float32;
    default:
      return false;
  }
}

int VectorEmitter::cost(const Instr& i) {
  if (i.kind != InstrKind::Compute) return i.kind == InstrKind::Load;
  switch (i.op) {
    case Op::Div:
    case Op::Sqrt:
    case Op::Reciprocal:
      return 8;
    case Op::Exp:
    case Op::Rsqrt:
      return 18;
    case Op::Tanh:
    case Op::Erf:
    case Op::Log:
    case Op::Sigmoid:
      return 30;
    default:
      return 1;
  }
}

// ---- Registers

void VectorEmitter::begin_body(const std::vector<int>& uses, bool tail) {
  left_ = uses;
  tail_ = tail;
  std::fill(reg_.begin(), reg_.end(), -1);
  masks_.clear();
  borrowed_.clear();
  free_ = (1u << kTemps) - 1;
  free_masks_ = ((1u << kEndMask) - 1) & ~((1u << kFirstMask) - 1);
}

int VectorEmitter::temp() {
  if (!free_) {
    failed_ = true;
    return 0;
  }
  const int r = __builtin_ctz(free_);
  free_ &= free_ - 1;
  return r;
}
void VectorEmitter::release(int r) {
  if (r < kTemps) free_ |= 1u << r;
}

void VectorEmitter::pin_nothing() {
  pinned_.clear();
  pinned_constants_.clear();
}
int VectorEmitter::pin_constant(uint32_t bits, int r) {
  pinned_constants_[bits] = r;
  a_.v(kBroadcast, r, -1, Mem{.pool = a_.constant(bits), .broadcast = true});
  return r;
}

Rm VectorEmitter::constant_bits(uint32_t b) {
  if (auto it = pinned_constants_.find(b); it != pinned_constants_.end()) return it->second;
  return Mem{.pool = a_.constant(b), .broadcast = true};
}
Rm VectorEmitter::constant(float f) {
  uint32_t b;
  std::memcpy(&b, &f, 4);
  return constant_bits(b);
}
int VectorEmitter::constant_register(float f, std::vector<int>& taken) {
  const Rm c = constant(f);
  if (c.is_reg()) return c.reg;
  const int r = temp();
  taken.push_back(r);
  a_.v(kBroadcast, r, -1, c);
  return r;
}

Rm VectorEmitter::operand(int v) {
  const Instr& i = spec_.instrs[static_cast<size_t>(v)];
  if (reg_[static_cast<size_t>(v)] >= 0) return reg_[static_cast<size_t>(v)];
  if (auto it = pinned_.find(v); it != pinned_.end()) return it->second;
  if (i.kind == InstrKind::Const) return constant(static_cast<float>(i.fvalue));
  const Mem m = source(v);
  if (m.broadcast || !tail_) return m;
  const int r = temp();  // lanes past the end of the row must not be accessed
  borrowed_.push_back(r);
  a_.v(kLoad, r, -1, m, kTail, true);
  return r;
}

int VectorEmitter::in_register(int v) {
  const Rm x = operand(v);
  if (x.is_reg()) return x.reg;
  const int r = temp();
  borrowed_.push_back(r);
  move_to(r, x);
  return r;
}

void VectorEmitter::move_to(int dst, const Rm& from) {
  if (from.is_reg())
    a_.v(kMove, dst, -1, from);
  else
    a_.v(from.mem.broadcast ? kBroadcast : kLoad, dst, -1, from);
}

void VectorEmitter::finish_use(int v) {
  for (int r : borrowed_) release(r);
  borrowed_.clear();
  const size_t k = static_cast<size_t>(v);
  if (--left_[k] > 0) return;
  if (reg_[k] >= 0) {
    release(reg_[k]);
    reg_[k] = -1;
  }
  if (auto it = masks_.find(v); it != masks_.end()) {
    free_masks_ |= 1u << it->second;
    masks_.erase(it);
  }
}

// ---- Arithmetic

void VectorEmitter::compute(int k) {
  const Instr& i = spec_.instrs[static_cast<size_t>(k)];
  switch (i.op) {
    case Op::Add:
      binary(kAdd, k, true);
      break;
    case Op::Mul:
      binary(kMul, k, true);
      break;
    case Op::Sub:
      binary(kSub, k, false);
      break;
    case Op::Div:
      binary(kDiv, k, false);
      break;
    case Op::Maximum:
      extremum(kMax, k);
      break;
    case Op::Minimum:
      extremum(kMin, k);
      break;
    case Op::Where:
      where(k);
      break;
    case Op::Eq:
    case Op::Ne:
    case Op::Lt:
    case Op::Le:
    case Op::Gt:
    case Op::Ge:
      comparison(k);
      break;
    case Op::Cast:
      if (is_mask(i))
        comparison(k);
      else
        unary(k);
      break;
    default:
      unary(k);
  }
  for (int v : i.arg)
    if (v >= 0) finish_use(v);
}

void VectorEmitter::binary(const Enc& e, int k, bool commutes) {
  int x = spec_.instrs[static_cast<size_t>(k)].arg[0],
      y = spec_.instrs[static_cast<size_t>(k)].arg[1];
  if (commutes && !operand(x).is_reg() && operand(y).is_reg()) std::swap(x, y);
  const int s = in_register(x);
  const Rm t = operand(y);
  const int d = temp();
  a_.v(e, d, s, t);
  set_register(k, d);
}

/// The instruction returns its second operand when one is NaN; a NaN in the first must be kept too.
void VectorEmitter::extremum(const Enc& e, int k) {
  const Instr& i = spec_.instrs[static_cast<size_t>(k)];
  const int s = in_register(i.arg[0]);
  const Rm t = operand(i.arg[1]);
  const int d = temp();
  a_.v(e, d, s, t);
  a_.v(kCompare, kEndMask, s, s, 0, false, 3);
  a_.v(kMove, d, -1, s, kEndMask);
  set_register(k, d);
}

void VectorEmitter::comparison(int k) {
  const Instr& i = spec_.instrs[static_cast<size_t>(k)];
  if (!free_masks_) {
    failed_ = true;
    return;
  }
  const int m = __builtin_ctz(free_masks_);
  free_masks_ &= free_masks_ - 1;
  masks_[k] = m;
  if (i.op == Op::Cast) {  // anything but 0
    a_.v(kCompare, m, in_register(i.arg[0]), constant(0.0f), 0, false, 0x04);
    return;
  }
  const int which = static_cast<int>(i.op) - static_cast<int>(Op::Eq);  // eq ne lt le gt ge
  if (!is_int(spec_.instrs[static_cast<size_t>(i.arg[0])])) {
    constexpr int codes[6] = {0x00, 0x04, 0x11, 0x12, 0x1e, 0x1d};
    const int s = in_register(i.arg[0]);
    a_.v(kCompare, m, s, operand(i.arg[1]), 0, false, codes[which]);
    return;
  }
  constexpr int codes[6] = {0, 4, 1, 2, 6, 5};
  int r[2];
  for (int q = 0; q < 2; ++q) {
    const Instr& x = spec_.instrs[static_cast<size_t>(i.arg[q])];
    r[q] = temp();
    if (x.kind == InstrKind::Const)
      a_.v(kBroadcastInt, r[q], -1,
           Mem{.pool = a_.constant(static_cast<uint32_t>(x.ivalue)), .broadcast = true});
    else
      index_vector(i.arg[q], r[q]);
  }
  a_.v(kCompareInt, m, r[0], r[1], 0, false, codes[which]);
  release(r[0]);
  release(r[1]);
}

void VectorEmitter::where(int k) {
  const Instr& i = spec_.instrs[static_cast<size_t>(k)];
  const auto m = masks_.find(i.arg[0]);
  if (m == masks_.end()) {
    failed_ = true;
    return;
  }
  const int no = in_register(i.arg[2]);
  const Rm yes = operand(i.arg[1]);
  const int d = temp();
  a_.v(kBlend, d, no, yes, m->second);
  set_register(k, d);
}

void VectorEmitter::unary(int k) {
  const Instr& i = spec_.instrs[static_cast<size_t>(k)];
  if (i.op == Op::Cast && is_mask(spec_.instrs[static_cast<size_t>(i.arg[0])])) {
    const auto m = masks_.find(i.arg[0]);
    if (m == masks_.end()) {
      failed_ = true;
      return;
    }
    std::vector<int> taken;
    const int one = constant_register(1.0f, taken), d = temp();
    a_.v(kMove, d, -1, one, m->second, true);
    for (int r : taken) release(r);
    set_register(k, d);
    return;
  }
  const int s = in_register(i.arg[0]), d = temp();
  std::vector<int> taken;
  switch (i.op) {
    case Op::Cast:
      a_.v(kMove, d, -1, s);
      break;
    case Op::Neg:
      a_.v(kXor, d, s, constant_bits(0x80000000u));
      break;
    case Op::Abs:
      a_.v(kAnd, d, s, constant_bits(0x7fffffffu));
      break;
    case Op::Sign:  // 1 where a > 0, then -1 where a < 0, else 0
      a_.v(kCompare, kEndMask, s, constant(0.0f), 0, false, 0x1e);
      a_.v(kMove, d, -1, constant_register(1.0f, taken), kEndMask, true);
      a_.v(kCompare, kEndMask, s, constant(0.0f), 0, false, 0x11);
      a_.v(kBroadcast, d, -1, Mem{.pool = a_.constant(-1.0f), .broadcast = true}, kEndMask);
      break;
    case Op::Sqrt:
      a_.v(kSqrt, d, -1, s);
      break;
    case Op::Rsqrt:
      a_.v(kSqrt, d, -1, s);
      a_.v(kDiv, d, constant_register(1.0f, taken), d);
      break;
    case Op::Reciprocal:
      a_.v(kDiv, d, constant_register(1.0f, taken), s);
      break;
    case Op::Relu:
      a_.v(kMax, d, s, constant(0.0f));
      a_.v(kCompare, kEndMask, s, s, 0, false, 3);
      a_.v(kMove, d, -1, s, kEndMask);
      break;
    case Op::Round:
      a_.v(kRound, d, -1, s, 0, false, 8);
      break;
    case Op::Floor:
      a_.v(kRound, d, -1, s, 0, false, 9);
      break;
    case Op::Ceil:
      a_.v(kRound, d, -1, s, 0, false, 10);
      break;
    case Op::Trunc:
      a_.v(kRound, d, -1, s, 0, false, 11);
      break;
    case Op::Exp:
      exp(d, s);
      break;
    case Op::Sigmoid:
      sigmoid(d, s);
      break;
    case Op::Tanh:
      tanh(d, s);
      break;
    case Op::Erf:
      erf(d, s);
      break;
    case Op::Log:
      log(d, s);
      break;
    default:
      failed_ = true;
  }
  for (int r : taken) release(r);
  set_register(k, d);
}

}  // namespace ingot::cpu
