// See row_emitter.h.
#include "backend/cpu/jit/row_emitter.h"

#include <algorithm>
#include <cstring>

namespace ingot::cpu {

using namespace x64;

namespace {
constexpr Reg kPointers[] = {rdx, r8, r9, r10, r11, rbx, rbp, r12, r13, r14, r15};
constexpr int kPointerRegs = 11, kScratchRegs = 5;  // the first need not be saved
constexpr int64_t kPrefetchBytes = 512 << 10;       // smaller buffers are in a close cache anyway
}  // namespace

RowEmitter::RowEmitter(const RowProgram& program, bool stream)
    : VectorEmitter(program.spec), p_(program), stream_(stream) {
  lay_out_frame();
}

void RowEmitter::lay_out_frame() {
  const size_t n = spec_.instrs.size();
  int64_t at = kFramePointers + static_cast<int64_t>(p_.pointers.size()) * 8;
  slots_.assign(n, -1);
  for (size_t k = 0; k < n; ++k)
    if (!p_.full[k] && spec_.instrs[k].dtype == DType::Float32 &&
        spec_.instrs[k].kind != InstrKind::Const) {
      slots_[k] = static_cast<int>(at);
      at += 4;
    }
  at = (at + 63) / 64 * 64;
  kept_.assign(n, -1);
  for (size_t k = 0; k < n; ++k)
    if (p_.kept_round[k] >= 0) {
      kept_[k] = at;
      at += (p_.length * 4 + 63) / 64 * 64 + 64;
    }
  frame_bytes_ = at;
  gpr_.assign(p_.pointers.size(), -1);
  ahead_.assign(p_.pointers.size(), 0);
  int used = 0;
  for (size_t k = 0; k < p_.pointers.size(); ++k) {
    const RowPointer& p = p_.pointers[k];
    if (!p.along) continue;
    if (used < kPointerRegs) gpr_[k] = kPointers[used++];
    const bool in_order =
        p_.row_axes > 0 && p.map.stride[static_cast<size_t>(p_.row_axes) - 1] == p_.length;
    ahead_[k] =
        in_order && spec_.buffers[static_cast<size_t>(p.buffer)].numel * 4 >= kPrefetchBytes;
  }
}

// ---- Where values are

Reg RowEmitter::pointer(int p) {
  if (gpr_[static_cast<size_t>(p)] >= 0) return static_cast<Reg>(gpr_[static_cast<size_t>(p)]);
  a_.load(rax, Mem{.base = rdi, .disp = kFramePointers + p * 8});
  return rax;
}

Mem RowEmitter::source(int v) {
  const size_t k = static_cast<size_t>(v);
  if (p_.full[k] && p_.is_kept(v, round_))
    return Mem{.base = rdi, .index = rcx, .disp = kept_[k] + vector_ * 64};
  if (p_.full[k])
    return Mem{.base = pointer(p_.load_pointer[k]), .index = rcx, .disp = vector_ * 64};
  return Mem{.base = rdi, .disp = slots_[k], .broadcast = true};
}

void RowEmitter::index_vector(int k, int dst) {
  const Instr& i = spec_.instrs[static_cast<size_t>(k)];
  const Mem base{.base = rdi,
                 .disp = kFramePointers + p_.index_pointer[static_cast<size_t>(k)] * 8,
                 .broadcast = true};
  a_.v(kBroadcastInt, dst, -1, base);
  if (i.map.stride.back() == 0) return;
  uint32_t lanes[16];
  for (uint32_t l = 0; l < 16; ++l) lanes[l] = l;
  a_.v(kAddInt, dst, dst, Mem{.pool = a_.vector(lanes)});
  const int t = temp();
  a_.move(rax, rcx);
  a_.shift_right32(rax, 2);
  a_.v(kBroadcastGpr, t, -1, static_cast<int>(rax));
  a_.v(kAddInt, dst, dst, t);
  release(t);
  if (vector_)
    a_.v(kAddInt, dst, dst,
         Mem{.pool = a_.constant(static_cast<uint32_t>(vector_ * 16)), .broadcast = true});
}

// ---- Scalars of a row

void RowEmitter::put_slot(int k) {
  const int r = reg_[static_cast<size_t>(k)];
  if (r < 0) return;
  a_.v(kStoreOne, r, -1, Mem{.base = rdi, .disp = slots_[static_cast<size_t>(k)]});
  if (left_[static_cast<size_t>(k)] <= 0) {
    release(r);
    set_register(k, -1);
  }
}

/// Values of a section in order, with the masks they need. round -1: values common to all rows.
std::vector<int> RowEmitter::section_list(int round, std::vector<int>& uses) const {
  const size_t n = spec_.instrs.size();
  std::vector<char> in(n, 0);
  for (size_t k = n; k-- > 0;) {
    const Instr& i = spec_.instrs[k];
    if (slots_[k] >= 0 && i.kind != InstrKind::Reduce && p_.row_needed[k] && !p_.host[k]) {
      const bool uniform = p_.an.span[k] == Span::Uniform;
      if (uniform ? round == -1 : round == p_.an.round[k]) in[k] = 1;
    }
    if (!in[k]) continue;
    for (int a : i.arg)
      if (a >= 0) {
        ++uses[static_cast<size_t>(a)];
        if (spec_.instrs[static_cast<size_t>(a)].dtype != DType::Float32)
          in[static_cast<size_t>(a)] = 1;
      }
  }
  std::vector<int> list;
  for (size_t k = 0; k < n; ++k)
    if (in[k]) list.push_back(static_cast<int>(k));
  return list;
}

void RowEmitter::row_value(int k) {
  const Instr& i = spec_.instrs[static_cast<size_t>(k)];
  if (i.kind == InstrKind::Load) {
    const int r = temp();
    a_.v(kBroadcast, r, -1,
         Mem{.base = pointer(p_.load_pointer[static_cast<size_t>(k)]), .broadcast = true});
    set_register(k, r);
  } else if (i.kind == InstrKind::Compute) {
    compute(k);
  }
  if (i.dtype == DType::Float32) put_slot(k);
}

/// The code before the loop of a round: the results of the previous loop, and what is computed from
/// them.
void RowEmitter::section(int round) {
  std::vector<int> uses(spec_.instrs.size(), 0);
  const std::vector<int> list = section_list(round, uses);
  std::vector<size_t> stores;
  for (size_t s = 0; s < spec_.stores.size(); ++s)
    if (!p_.pointers[static_cast<size_t>(p_.store_pointer[s])].along &&
        p_.store_round[s] == round) {
      stores.push_back(s);
      ++uses[static_cast<size_t>(spec_.stores[s].value)];
    }
  pin_nothing();
  begin_body(uses, false);
  for (size_t k = 0; k < reduces_.size(); ++k) finish_reduce(static_cast<int>(k));
  reduces_.clear();
  for (int k : list) row_value(k);
  for (size_t s : stores) {
    const int v = in_register(spec_.stores[s].value);
    a_.v(kStoreOne, v, -1, Mem{.base = pointer(p_.store_pointer[s])});
    finish_use(spec_.stores[s].value);
  }
}

void RowEmitter::finish_reduce(int which) {
  const int k = reduces_[static_cast<size_t>(which)];
  const Instr& i = spec_.instrs[static_cast<size_t>(k)];
  const Enc e = i.op == Op::Sum ? kAdd : i.op == Op::Max ? kMax : kMin;
  std::vector<int>& acc = acc_[static_cast<size_t>(which)];
  for (size_t half = acc.size() / 2; half > 0; half /= 2)
    for (size_t u = 0; u < half; ++u) a_.v(e, acc[u], acc[u], acc[u + half]);
  const int r = acc[0], t = temp(), d = temp();
  a_.v(kShuffle4, t, r, r, 0, false, 0x4e);
  a_.v(e, r, r, t);
  a_.v(kShuffle4, t, r, r, 0, false, 0xb1);
  a_.v(e, r, r, t);
  a_.v(kPermute, t, -1, r, 0, false, 0x4e);
  a_.v(e, r, r, t);
  a_.v(kPermute, t, -1, r, 0, false, 0xb1);
  a_.v(e, d, r, t);
  if (nan_[static_cast<size_t>(which)] >= 0) {
    a_.k_test(nan_[static_cast<size_t>(which)]);
    const int none = a_.jump(Assembler::kZero);
    a_.v(kBroadcast, d, -1, Mem{.pool = a_.constant(0x7fc00000u), .broadcast = true});
    a_.land(none);
  }
  release(t);
  set_register(k, d);
  put_slot(k);
}

// ---- Loops

void RowEmitter::prepare_loop(int round) {
  const std::vector<int>& list = p_.loop[static_cast<size_t>(round)];
  round_ = round;
  uses_.assign(spec_.instrs.size(), 0);
  in_loop_.assign(spec_.instrs.size(), 0);
  int work = 0;
  for (int k : list) {
    const Instr& i = spec_.instrs[static_cast<size_t>(k)];
    in_loop_[static_cast<size_t>(k)] = 1;
    if (p_.is_kept(k, round)) continue;
    work += cost(i);
    for (int a : i.arg)
      if (a >= 0) ++uses_[static_cast<size_t>(a)];
  }
  for (int v : p_.roots(round)) ++uses_[static_cast<size_t>(v)];
  reduces_.clear();
  for (size_t k = 0; k < spec_.instrs.size(); ++k)
    if (spec_.instrs[k].kind == InstrKind::Reduce && p_.row_needed[k] && p_.an.round[k] == round)
      reduces_.push_back(static_cast<int>(k));
  unroll_ = reduces_.empty() ? (work > 60 ? 1 : 2) : work > 100 || reduces_.size() > 3 ? 2 : 4;
  if (p_.length >= 0) unroll_ = static_cast<int>(std::clamp<int64_t>(p_.length / 16, 1, unroll_));
  if (unroll_ == 3) unroll_ = 2;
}

void RowEmitter::pin_for_loop(int first_free) {
  pin_nothing();
  int next = first_free;
  std::vector<uint32_t> wanted, numbers;
  std::vector<int> values;
  for (int k : p_.loop[static_cast<size_t>(round_)]) {
    const Instr& i = spec_.instrs[static_cast<size_t>(k)];
    if (p_.is_kept(k, round_)) continue;
    wanted_constants(i, wanted);
    for (int a : i.arg) {
      if (a < 0 || spec_.instrs[static_cast<size_t>(a)].dtype != DType::Float32) continue;
      if (spec_.instrs[static_cast<size_t>(a)].kind == InstrKind::Const) {
        const float f = static_cast<float>(spec_.instrs[static_cast<size_t>(a)].fvalue);
        uint32_t b;
        std::memcpy(&b, &f, 4);
        numbers.push_back(b);
      } else if (!p_.full[static_cast<size_t>(a)]) {
        values.push_back(a);
      }
    }
  }
  std::vector<uint32_t> done;
  auto pin = [&](const std::vector<uint32_t>& list) {
    for (uint32_t b : list)
      if (next < 32 && std::find(done.begin(), done.end(), b) == done.end()) {
        pin_constant(b, next++);
        done.push_back(b);
      }
  };
  pin(wanted);
  std::vector<int> held;
  for (int v : values)
    if (next < 32 && std::find(held.begin(), held.end(), v) == held.end()) {
      a_.v(kBroadcast, next, -1,
           Mem{.base = rdi, .disp = slots_[static_cast<size_t>(v)], .broadcast = true});
      pin_value(v, next++);
      held.push_back(v);
    }
  pin(numbers);
}

void RowEmitter::loop(int round) {
  prepare_loop(round);
  if (p_.roots(round).empty()) return;
  acc_.clear();
  nan_.clear();
  last_.clear();
  int next = kTemps, trackers = 0;
  for (int k : reduces_) {
    const Op op = spec_.instrs[static_cast<size_t>(k)].op;
    acc_.emplace_back();
    for (int u = 0; u < unroll_; ++u, ++next) {
      if (next >= 32) return fail();
      acc_.back().push_back(next);
      if (op == Op::Sum)
        a_.v(kXor, next, next, next);
      else
        a_.v(
            kBroadcast, next, -1,
            Mem{.pool = a_.constant(op == Op::Max ? 0xff800000u : 0x7f800000u), .broadcast = true});
    }
    last_.push_back(-1);
    nan_.push_back(op == Op::Sum ? -1 : trackers == 0 ? 7 : 0);
    if (op == Op::Sum) continue;
    if (++trackers > 2 || next >= 32) return fail();
    last_.back() = next++;
    a_.k_op(0x47, nan_.back(), nan_.back(), nan_.back());
  }
  pin_for_loop(next);
  first_body_ = true;
  if (p_.length >= 0)
    loop_of_known_length();
  else
    loop_of_any_length();
  pin_nothing();
}

void RowEmitter::loop_of_known_length() {
  const int64_t step = unroll_ * 64, whole = p_.length / (unroll_ * 16);
  a_.clear(rcx);
  if (whole > 0) {
    const int top = a_.here();
    in_pairs_ = unroll_ % 2 == 0;
    for (int u = 0; u < unroll_; ++u) body(u, false);
    in_pairs_ = false;
    a_.add(rcx, static_cast<int32_t>(step));
    if (whole > 1) {
      a_.compare(rcx, static_cast<int32_t>(whole * step));
      a_.jump_back(Assembler::kLess, top);
    }
  }
  const int rest = static_cast<int>(p_.length / 16 % unroll_),
            lanes = static_cast<int>(p_.length % 16);
  for (int u = 0; u < rest; ++u) body(u, false);
  if (!lanes) return;
  a_.move32(rax, (1u << lanes) - 1);
  a_.k_set(kTail, rax);
  body(rest, true);
}

void RowEmitter::loop_of_any_length() {
  a_.clear(rcx);
  a_.compare(rcx, Mem{.base = rdi, .disp = kFrameMain});
  const int no_main = a_.jump(Assembler::kNotLess);
  const int top = a_.here();
  for (int u = 0; u < unroll_; ++u) body(u, false);
  a_.add(rcx, unroll_ * 64);
  a_.compare(rcx, Mem{.base = rdi, .disp = kFrameMain});
  a_.jump_back(Assembler::kLess, top);
  a_.land(no_main);
  a_.compare(rcx, Mem{.base = rdi, .disp = kFrameVectors});
  const int no_vectors = a_.jump(Assembler::kNotLess);
  const int again = a_.here();
  body(0, false);
  a_.add(rcx, 64);
  a_.compare(rcx, Mem{.base = rdi, .disp = kFrameVectors});
  a_.jump_back(Assembler::kLess, again);
  a_.land(no_vectors);
  a_.load32(rax, Mem{.base = rdi, .disp = kFrameLanes});
  a_.k_set(kTail, rax);
  a_.k_test(kTail);
  const int no_tail = a_.jump(Assembler::kZero);
  body(0, true);
  a_.land(no_tail);
}

/// All of the loop's work on one vector.
void RowEmitter::body(int vector, bool tail) {
  vector_ = vector;
  begin_body(uses_, tail);
  for (int k : p_.loop[static_cast<size_t>(round_)]) {
    element(k);
    results_of(k);
  }
  for (size_t which = 0; which < reduces_.size(); ++which)
    if (const int v = spec_.instrs[static_cast<size_t>(reduces_[which])].arg[0];
        !in_loop_[static_cast<size_t>(v)])
      reduce_into(static_cast<int>(which));
  for (size_t s = 0; s < spec_.stores.size(); ++s) {
    if (!p_.pointers[static_cast<size_t>(p_.store_pointer[s])].along || p_.store_round[s] != round_)
      continue;
    const bool alias = spec_.buffers[static_cast<size_t>(spec_.stores[s].buffer)].may_alias;
    if (alias || !in_loop_[static_cast<size_t>(spec_.stores[s].value)]) store_along(s);
  }
}

void RowEmitter::element(int k) {
  const Instr& i = spec_.instrs[static_cast<size_t>(k)];
  const bool again = p_.is_kept(k, round_);
  if (i.kind == InstrKind::Compute && !again) return compute(k);
  if (i.kind != InstrKind::Load && !again) return;
  if (!again) {
    const size_t p = static_cast<size_t>(p_.load_pointer[static_cast<size_t>(k)]);
    if (ahead_[p] && (!loaded_[p] || loaded_[p] == round_ + 1)) {
      loaded_[p] = static_cast<char>(round_ + 1);
      Mem next = source(k);
      next.disp += std::clamp<int64_t>(2 * p_.length * 4, 2048, 8192) / 64 * 64;
      a_.prefetch(next);
    }
  }
  const bool changes = !again && spec_.buffers[static_cast<size_t>(i.buffer)].may_alias;
  if (uses_[static_cast<size_t>(k)] == 1 && !tail_ && !changes)
    return;  // its one reader takes it from memory
  const int r = temp();
  if (tail_ && !again)
    a_.v(kLoad, r, -1, source(k), kTail, true);
  else
    a_.v(kLoad, r, -1, source(k));
  set_register(k, r);
}

/// Every use that takes a value out of the loop as soon as it is computed.
void RowEmitter::results_of(int k) {
  for (size_t which = 0; which < reduces_.size(); ++which)
    if (spec_.instrs[static_cast<size_t>(reduces_[which])].arg[0] == k)
      reduce_into(static_cast<int>(which));
  if (p_.kept_round[static_cast<size_t>(k)] == round_) {
    const int r = in_register(k);
    a_.v(kStore, r, -1,
         Mem{.base = rdi, .index = rcx, .disp = kept_[static_cast<size_t>(k)] + vector_ * 64});
    finish_use(k);
  }
  for (size_t s = 0; s < spec_.stores.size(); ++s)
    if (spec_.stores[s].value == k && p_.store_round[s] == round_ &&
        p_.pointers[static_cast<size_t>(p_.store_pointer[s])].along &&
        !spec_.buffers[static_cast<size_t>(spec_.stores[s].buffer)].may_alias)
      store_along(s);
}

void RowEmitter::reduce_into(int which) {
  const int k = reduces_[static_cast<size_t>(which)],
            v = spec_.instrs[static_cast<size_t>(k)].arg[0];
  const std::vector<int>& acc = acc_[static_cast<size_t>(which)];
  const int to = acc[static_cast<size_t>(vector_) % acc.size()], mask = tail_ ? kTail : 0;
  if (spec_.instrs[static_cast<size_t>(k)].op == Op::Sum) {
    a_.v(kAdd, to, to, operand(v), mask);
  } else {
    const int x = in_register(v), nan = nan_[static_cast<size_t>(which)];
    a_.v(spec_.instrs[static_cast<size_t>(k)].op == Op::Max ? kMax : kMin, to, to, x, mask);
    // One comparison finds the NaNs of two vectors.
    const int last = last_[static_cast<size_t>(which)];
    if (in_pairs_ && vector_ % 2 == 0) {
      a_.v(kMove, last, -1, x);
    } else {
      a_.v(kCompare, kEndMask, x, in_pairs_ ? last : x, mask, false, 3);
      a_.k_op(0x45, nan, nan, kEndMask);
    }
  }
  finish_use(v);
}

void RowEmitter::store_along(size_t s) {
  const int p = p_.store_pointer[s], v = spec_.stores[s].value;
  const int r = in_register(v);
  const Mem to{.base = pointer(p), .index = rcx, .disp = vector_ * 64};
  const bool past = stream_ && !tail_ && p_.pointers[static_cast<size_t>(p)].streamed;
  a_.v(past ? kStream : kStore, r, -1, to, tail_ ? kTail : 0);
  finish_use(v);
}

// ---- The complete code

void RowEmitter::step_rows() {
  if (p_.row_axes > 0)
    for (size_t k = 0; k < p_.pointers.size(); ++k) {
      const RowPointer& p = p_.pointers[k];
      const int64_t step =
          p.map.stride[static_cast<size_t>(p_.row_axes) - 1] * (p.buffer >= 0 ? 4 : 1);
      if (step)
        a_.add(Mem{.base = rdi, .disp = kFramePointers + static_cast<int>(k) * 8},
               static_cast<int32_t>(step));
    }
}

std::vector<uint8_t> RowEmitter::emit() {
  int saved = 0;
  for (int g : gpr_)
    for (int q = kScratchRegs; q < kPointerRegs; ++q)
      if (g == kPointers[q]) saved = std::max(saved, q + 1 - kScratchRegs);
  for (int q = 0; q < saved; ++q) a_.push(kPointers[kScratchRegs + q]);
  loaded_.assign(p_.pointers.size(), 0);
  section(-1);
  const int top = a_.here();
  for (size_t k = 0; k < gpr_.size(); ++k)
    if (gpr_[k] >= 0)
      a_.load(static_cast<Reg>(gpr_[k]),
              Mem{.base = rdi, .disp = kFramePointers + static_cast<int>(k) * 8});
  for (int r = 0; r < p_.an.n_rounds; ++r) {
    section(r);
    loop(r);
    if (failed()) return {};
  }
  step_rows();
  a_.decrement(rsi);
  a_.jump_back(Assembler::kNotZero, top);
  for (int q = saved; q-- > 0;) a_.pop(kPointers[kScratchRegs + q]);
  a_.vzeroupper();
  a_.ret();
  return a_.finish();
}

}  // namespace ingot::cpu
