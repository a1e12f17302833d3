// Transcendental functions in machine code: step for step what math-inl.h does, so that results are
// the same to the bit.
#include <cstring>

#include "backend/cpu/jit/vector_emitter.h"

namespace ingot::cpu {

using namespace x64;

void VectorEmitter::polynomial(int out, int x, std::initializer_list<float> c) {
  auto it = c.begin();
  move_to(out, constant(*it));
  for (++it; it != c.end(); ++it) a_.v(kFma213, out, x, constant(*it));
}

/// out = exp(x) * 2^n for |x| <= ln(2)/2. out, x, n are different registers.
void VectorEmitter::exp_tail(int out, int x, int n) {
  polynomial(out, x,
             {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
              1.6666665459e-1f, 5.0000001201e-1f});
  const int square = temp();
  a_.v(kMul, square, x, x);
  a_.v(kFma213, out, square, x);
  release(square);
  a_.v(kAdd, out, out, constant(1.0f));
  a_.v(kScale, out, out, n);
}

void VectorEmitter::exp(int out, int in) {
  std::vector<int> taken;
  const int x = temp(), n = temp();
  // Between the limits; the instructions return their second operand when one is NaN, so NaN stays.
  a_.v(kMax, x, constant_register(-105.0f, taken), in);
  a_.v(kMin, x, constant_register(89.0f, taken), x);
  for (int r : taken) release(r);
  a_.v(kMul, n, x, constant(1.44269504088896341f));
  a_.v(kRound, n, -1, n, 0, false, 8);
  a_.v(kFnma231, x, n, constant(0.693359375f));
  a_.v(kFnma231, x, n, constant(-2.12194440e-4f));
  exp_tail(out, x, n);
  release(x);
  release(n);
}

void VectorEmitter::sigmoid(int out, int in) {
  std::vector<int> taken;
  const int x = temp();
  a_.v(kXor, x, in, constant_bits(0x80000000u));
  exp(out, x);
  release(x);
  a_.v(kAdd, out, out, constant(1.0f));
  a_.v(kDiv, out, constant_register(1.0f, taken), out);
  for (int r : taken) release(r);
}

void VectorEmitter::tanh(int out, int in) {
  std::vector<int> taken;
  const int a = temp(), z = temp(), small = temp(), n = temp();
  a_.v(kAnd, a, in, constant_bits(0x7fffffffu));
  a_.v(kMul, z, in, in);
  polynomial(small, z,
             {-5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f,
              -3.33332819422e-1f});
  a_.v(kMul, small, small, z);
  a_.v(kFma213, small, in, in);
  // t = min(9.1, a), NaN stays; then e^(2t)
  const int t = z;
  a_.v(kMin, t, constant_register(9.1f, taken), a);
  a_.v(kMul, n, t, constant(2.88539008177792681f));
  a_.v(kRound, n, -1, n, 0, false, 8);
  a_.v(kAdd, t, t, t);
  a_.v(kFnma231, t, n, constant(0.693359375f));
  a_.v(kFnma231, t, n, constant(-2.12194440e-4f));
  exp_tail(out, t, n);
  a_.v(kAdd, out, out, constant(1.0f));
  a_.v(kDiv, out, constant_register(2.0f, taken), out);
  a_.v(kSub, out, constant_register(1.0f, taken), out);
  // the sign of in
  a_.v(kAnd, n, in, constant_bits(0x80000000u));
  a_.v(kOr, out, out, n);
  a_.v(kOr, small, small, n);  // -0.0
  a_.v(kCompare, kEndMask, a, constant(0.625f), 0, false, 0x1e);
  a_.v(kBlend, out, small, out, kEndMask);
  for (int r : taken) release(r);
  for (int r : {a, z, small, n}) release(r);
}

void VectorEmitter::erf(int out, int in) {
  std::vector<int> taken;
  const int t = temp(), s = temp(), r = temp(), u = temp();
  a_.v(kAnd, t, in, constant_bits(0x7fffffffu));
  a_.v(kMul, s, in, in);
  polynomial(r, t, {-1.72853470e-5f, 3.83197126e-4f});
  polynomial(u, t, {-3.88396438e-3f, 2.42546219e-2f});
  a_.v(kFma213, r, s, u);
  a_.v(kFma213, r, t, constant(-1.06777877e-1f));
  a_.v(kFma213, r, t, constant(-6.34846687e-1f));
  a_.v(kFma213, r, t, constant(-1.28717512e-1f));
  a_.v(kXor, u, t, constant_bits(0x80000000u));
  a_.v(kFma213, r, t, u);
  exp(out, r);
  a_.v(kSub, out, constant_register(1.0f, taken), out);
  a_.v(kAnd, u, in, constant_bits(0x80000000u));
  a_.v(kAnd, out, out, constant_bits(0x7fffffffu));
  a_.v(kOr, out, out, u);
  polynomial(r, s,
             {-5.96761703e-4f, 4.99119423e-3f, -2.67681349e-2f, 1.12819925e-1f, -3.76125336e-1f,
              1.28379166e-1f});
  a_.v(kFma213, r, in, in);
  a_.v(kCompare, kEndMask, t, constant(0.927734375f), 0, false, 0x1e);
  a_.v(kBlend, out, r, out, kEndMask);
  for (int q : taken) release(q);
  for (int q : {t, s, r, u}) release(q);
}

void VectorEmitter::log(int out, int in) {
  std::vector<int> taken;
  const int y = temp(), e = temp(), f = temp(), z = temp();
  // Subnormals are scaled up first. m in [sqrt(1/2), sqrt(2)), x = m * 2^e.
  a_.v(kCompare, kEndMask, in, constant(1.17549435e-38f), 0, false, 0x11);
  a_.v(kMove, y, -1, in);
  a_.v(kMul, y, in, constant(8388608.0f), kEndMask);
  a_.v(kSubInt, e, y, constant_bits(0x3f3504f3u));
  a_.v(kShiftInt, 4, e, e, 0, false, 23);  // arithmetic, right
  a_.v(kShiftInt, 6, f, e, 0, false, 23);  // left
  a_.v(kSubInt, f, y, f);
  a_.v(kToFloat, e, -1, e);
  a_.v(kSub, e, e, constant(23.0f), kEndMask);
  a_.v(kSub, f, f, constant(1.0f));
  a_.v(kMul, z, f, f);
  polynomial(
      out, f,
      {7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
       -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f});
  a_.v(kMul, out, out, z);
  a_.v(kMul, out, out, f);
  a_.v(kFma231, out, e, constant(-2.12194440e-4f));
  a_.v(kFnma231, out, z, constant(0.5f));
  a_.v(kAdd, f, f, out);
  a_.v(kMove, out, -1, f);
  a_.v(kFma231, out, e, constant(0.693359375f));
  // The ends of the range, then below 0 and NaN.
  a_.v(kCompare, kEndMask, in, constant_bits(0x7f800000u), 0, false, 0);
  a_.v(kMove, out, -1, in, kEndMask);
  a_.v(kCompare, kEndMask, in, constant(0.0f), 0, false, 0);
  a_.v(kBroadcast, out, -1, Mem{.pool = a_.constant(0xff800000u), .broadcast = true}, kEndMask);
  a_.v(kCompare, kEndMask, in, constant(0.0f), 0, false, 0x19);  // not >=, or unordered
  a_.v(kBroadcast, out, -1, Mem{.pool = a_.constant(0x7fc00000u), .broadcast = true}, kEndMask);
  for (int r : {y, e, f, z}) release(r);
}

void VectorEmitter::wanted_constants(const Instr& i, std::vector<uint32_t>& out) {
  if (i.kind != InstrKind::Compute) return;
  auto want = [&](std::initializer_list<float> list) {
    for (float f : list) {
      uint32_t b;
      std::memcpy(&b, &f, 4);
      out.push_back(b);
    }
  };
  switch (i.op) {
    case Op::Exp:
    case Op::Erf:
    case Op::Sigmoid:
      want({-105.0f, 89.0f, 1.0f, 1.9875691500e-4f});
      break;
    case Op::Tanh:
      want({9.1f, 2.0f, 1.0f, 1.9875691500e-4f, -5.70498872745e-3f});
      break;
    case Op::Rsqrt:
    case Op::Reciprocal:
      want({1.0f});
      break;
    default:
      break;
  }
}

}  // namespace ingot::cpu
