// See column_code.h.
#include "backend/cpu/jit/column_code.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "backend/cpu/jit/row_code.h"
#include "backend/cpu/jit/vector_emitter.h"

namespace ingot::cpu {

using namespace x64;

namespace {

constexpr int kRows = 8;  // at a time
// The frame: bytes of whole vectors, lanes left over (all, and those of the upper half), groups of
// rows, single rows.
constexpr int kVectors = 0, kLanes = 8, kUpperLanes = 16, kGroups = 24, kSingles = 32,
              kAddresses = 40, kMostAddresses = 24;
constexpr int kUpperTail = 7;
constexpr int64_t kPrefetchBytes = 512 << 10;
constexpr Reg kRegisters[] = {rdx, rsi, r8, r9, r10, r11, rbx, rbp, r12, r13, r14, r15};

class ColumnEmitter final : public VectorEmitter {
 public:
  ColumnEmitter(const Analysis& an, std::vector<ColumnCode::Pointer>& pointers,
                std::vector<int>& reduces)
      : VectorEmitter(an.spec), an_(an), pointers_(pointers), reduces_(reduces) {
    collect();
  }

  std::vector<uint8_t> emit() {
    if (failed()) return {};
    for (int q = 6; q < 12; ++q) a_.push(kRegisters[q]);
    for (size_t k = 0; k < addresses(); ++k)
      a_.load(kRegisters[k], frame(kAddresses + static_cast<int>(k) * 8));
    a_.load32(rax, frame(kLanes));
    a_.k_set(kTail, rax);
    a_.load32(rax, frame(kUpperLanes));
    a_.k_set(kUpperTail, rax);
    pin_constants();
    rows_loop(kGroups, kRows);
    rows_loop(kSingles, 1);
    for (int q = 12; q-- > 6;) a_.pop(kRegisters[q]);
    a_.vzeroupper();
    a_.ret();
    return a_.finish();
  }

 private:
  static Mem frame(int at) { return Mem{.base = rdi, .disp = at}; }
  size_t addresses() const { return pointers_.size() + reduces_.size(); }

  int pointer(int buffer, const Affine& map) {
    const Access at = an_.access(map);
    for (size_t k = 0; k < pointers_.size(); ++k)
      if (pointers_[k].buffer == buffer && !std::memcmp(&pointers_[k].at, &at, sizeof at))
        return static_cast<int>(k);
    pointers_.push_back({buffer, at, at.stride[0], at.stride[1] == 1});
    return static_cast<int>(pointers_.size()) - 1;
  }

  /// What the sums and stores of elements depend on, in order.
  void collect() {
    const size_t n = spec_.instrs.size();
    uses_.assign(n, 0);
    load_.assign(n, -1);
    std::vector<char> in(n, 0);
    auto root = [&](int v) {
      in[static_cast<size_t>(v)] = 1;
      ++uses_[static_cast<size_t>(v)];
    };
    for (size_t k = 0; k < n; ++k)
      if (spec_.instrs[k].kind == InstrKind::Reduce && an_.computed[k]) {
        reduces_.push_back(static_cast<int>(k));
        root(spec_.instrs[k].arg[0]);
      }
    for (const Store& s : spec_.stores) {
      const bool elem = spec_.instrs[static_cast<size_t>(s.value)].level == Level::Elem;
      store_.push_back(elem ? pointer(s.buffer, s.map) : -1);
      if (elem) root(s.value);
    }
    for (size_t k = n; k-- > 0;) {
      if (!in[k]) continue;
      const Instr& i = spec_.instrs[k];
      if (i.kind == InstrKind::Load) {
        if (i.dtype != DType::Float32 || !i.bounds.empty() || i.indirect >= 0) fail();
        load_[k] = pointer(i.buffer, i.map);
      }
      for (int a : spec_.instrs[k].arg)
        if (a >= 0) {
          in[static_cast<size_t>(a)] = 1;
          ++uses_[static_cast<size_t>(a)];
        }
    }
    for (size_t k = 0; k < n; ++k)
      if (in[k]) list_.push_back(static_cast<int>(k));
    if (addresses() > 12 || reduces_.size() > 8) fail();
    for (const ColumnCode::Pointer& p : pointers_)
      if (p.row_step > (1 << 24) || p.row_step < 0) fail();
  }

  void pin_constants() {
    std::vector<uint32_t> wanted;
    for (int k : list_) wanted_constants(spec_.instrs[static_cast<size_t>(k)], wanted);
    int next = kTemps + static_cast<int>(reduces_.size());
    std::sort(wanted.begin(), wanted.end());
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    for (uint32_t b : wanted)
      if (next < 32) pin_constant(b, next++);
  }

  Mem source(int v) override {
    const size_t p = static_cast<size_t>(load_[static_cast<size_t>(v)]);
    const int64_t row = pointers_[p].row_step * 4 * row_;
    if (pointers_[p].along) return Mem{.base = kRegisters[p], .index = rcx, .disp = row};
    return Mem{.base = kRegisters[p], .disp = row, .broadcast = true};
  }
  void index_vector(int, int) override { fail(); }

  void rows_loop(int count, int rows) {
    a_.load(rax, frame(count));
    a_.compare(rax, 0);
    const int none = a_.jump(Assembler::kZero);
    const int top = a_.here();
    columns_loop(rows);
    for (size_t k = 0; k < pointers_.size(); ++k)
      if (pointers_[k].row_step)
        a_.add(kRegisters[k], static_cast<int32_t>(pointers_[k].row_step * 4 * rows));
    a_.load(rax, frame(count));
    a_.decrement(rax);
    a_.store(frame(count), rax);
    a_.jump_back(Assembler::kNotZero, top);
    a_.land(none);
  }

  void columns_loop(int rows) {
    a_.clear(rcx);
    a_.compare(rcx, frame(kVectors));
    const int none = a_.jump(Assembler::kNotLess);
    const int top = a_.here();
    vector_of_columns(rows, false);
    a_.add(rcx, 64);
    a_.compare(rcx, frame(kVectors));
    a_.jump_back(Assembler::kLess, top);
    a_.land(none);
    a_.k_test(kTail);
    const int even = a_.jump(Assembler::kZero);
    vector_of_columns(rows, true);
    a_.land(even);
  }

  void vector_of_columns(int rows, bool tail) {
    for (size_t q = 0; q < reduces_.size(); ++q) {
      const int acc = kTemps + static_cast<int>(q);
      a_.v(kXor, acc, acc, acc);
    }
    for (row_ = 0; row_ < rows; ++row_) body(tail, rows);
    for (size_t q = 0; q < reduces_.size(); ++q) flush(static_cast<int>(q), tail);
  }

  void body(bool tail, int rows) {
    begin_body(uses_, tail);
    for (int k : list_) {
      element(k, rows);
      for (size_t q = 0; q < reduces_.size(); ++q)
        if (spec_.instrs[static_cast<size_t>(reduces_[q])].arg[0] == k) {
          const int acc = kTemps + static_cast<int>(q);
          a_.v(kAdd, acc, acc, operand(k), tail ? kTail : 0);
          finish_use(k);
        }
    }
    for (size_t s = 0; s < spec_.stores.size(); ++s) {
      if (store_[s] < 0) continue;
      const ColumnCode::Pointer& p = pointers_[static_cast<size_t>(store_[s])];
      const Mem to{.base = kRegisters[store_[s]], .index = rcx, .disp = p.row_step * 4 * row_};
      a_.v(kStore, in_register(spec_.stores[s].value), -1, to, tail ? kTail : 0);
      finish_use(spec_.stores[s].value);
    }
  }

  void element(int k, int rows) {
    const Instr& i = spec_.instrs[static_cast<size_t>(k)];
    if (i.kind == InstrKind::Compute) return compute(k);
    if (i.kind != InstrKind::Load) return;
    const ColumnCode::Pointer& p = pointers_[static_cast<size_t>(load_[static_cast<size_t>(k)])];
    const BufferSpec& b = spec_.buffers[static_cast<size_t>(i.buffer)];
    Mem from = source(k);
    if (p.along && p.row_step && b.numel * 4 >= kPrefetchBytes) {
      Mem next = from;
      next.disp += p.row_step * 4 * rows;
      a_.prefetch(next);
    }
    if (!p.along || (uses_[static_cast<size_t>(k)] == 1 && !tail_ && !b.may_alias))
      return;  // read where it is used
    const int r = temp();
    a_.v(kLoad, r, -1, from, tail_ ? kTail : 0, tail_);
    set_register(k, r);
  }

  /// Adds the sums of these rows to the accumulators, in float64.
  void flush(int q, bool tail) {
    const int sum = kTemps + q, upper = 0, low = 1, high = 2;
    const Reg to = kRegisters[pointers_.size() + static_cast<size_t>(q)];
    a_.add_twice(rax, to, rcx);
    a_.v(kUpperHalf, sum, -1, upper, 0, false, 1);
    a_.v(kWiden, low, -1, sum);
    a_.v(kWiden, high, -1, upper);
    const Mem first{.base = rax}, second{.base = rax, .disp = 64};
    if (!tail) {
      a_.v(kAddDouble, low, low, first);
      a_.v(kAddDouble, high, high, second);
      a_.v(kStoreDouble, low, -1, first);
      a_.v(kStoreDouble, high, -1, second);
      return;
    }
    a_.v(kLoadDouble, 3, -1, first, kTail, true);
    a_.v(kLoadDouble, 4, -1, second, kUpperTail, true);
    a_.v(kAddDouble, low, low, 3);
    a_.v(kAddDouble, high, high, 4);
    a_.v(kStoreDouble, low, -1, first, kTail);
    a_.v(kStoreDouble, high, -1, second, kUpperTail);
  }

  const Analysis& an_;
  std::vector<ColumnCode::Pointer>& pointers_;
  std::vector<int>& reduces_;
  std::vector<int> list_, uses_, load_, store_;
  int row_ = 0;
};

}  // namespace

bool suits_column_code(const Analysis& an) {
  const KernelSpec& spec = an.spec;
  if (!use_machine_code() || spec.n_axes() != 2 || spec.n_outer != 1 || !an.plan.by_columns ||
      an.elem_rounds() != 1)
    return false;
  if (spec.extent[0] * spec.extent[1] < std::max<int64_t>(machine_code_least_work(), 1))
    return false;
  if (spec.extent[0] < 16 && machine_code_least_work() > 0) return false;
  for (const Store& s : spec.stores) {
    if (spec.instrs[static_cast<size_t>(s.value)].level == Level::Outer) continue;
    if (s.predicated || s.map.stride[0] != 1 ||
        spec.instrs[static_cast<size_t>(s.value)].dtype != DType::Float32)
      return false;
  }
  for (size_t k = 0; k < spec.instrs.size(); ++k) {
    const Instr& i = spec.instrs[k];
    if (i.kind == InstrKind::Reduce) {
      const Instr& x = spec.instrs[static_cast<size_t>(i.arg[0])];
      if (i.op != Op::Sum || x.dtype != DType::Float32 || x.level != Level::Elem) return false;
      continue;
    }
    if (i.level == Level::Outer) continue;  // done by steps, before or after
    switch (i.kind) {
      case InstrKind::Const:
        if (i.dtype != DType::Float32) return false;
        break;
      case InstrKind::Load:
        if (i.dtype != DType::Float32 || !i.bounds.empty() || i.indirect >= 0) return false;
        if (i.map.stride[0] != 0 && i.map.stride[0] != 1) return false;
        break;
      case InstrKind::Compute:
        if (!VectorEmitter::can(spec, i)) return false;
        for (int a : i.arg)  // values per column come from steps: not for code
          if (a >= 0 && spec.instrs[static_cast<size_t>(a)].level == Level::Outer &&
              spec.instrs[static_cast<size_t>(a)].kind != InstrKind::Const &&
              spec.instrs[static_cast<size_t>(a)].kind != InstrKind::Load)
            return false;
        break;
      default:
        return false;
    }
  }
  return true;
}

std::shared_ptr<ColumnCode> ColumnCode::make(const Analysis& an) {
  if (!suits_column_code(an)) return nullptr;
  auto c = std::make_shared<ColumnCode>();
  ColumnEmitter emitter(an, c->pointers_, c->reduces_);
  const std::vector<uint8_t> bytes = emitter.emit();
  if (emitter.failed() || c->reduces_.empty()) return nullptr;
  for (const Pointer& p : c->pointers_)
    if (p.at.stride[1] != 0 && p.at.stride[1] != 1) return nullptr;
  c->code_ = Code(bytes);
  if (!c->code_.entry()) return nullptr;
  count_machine_code();
  return c;
}

void ColumnCode::run(std::span<char* const> addresses, int64_t rows, int64_t columns) const {
  int64_t frame[kAddresses / 8 + kMostAddresses];
  const int64_t lanes = (int64_t{1} << columns % 16) - 1;
  frame[kVectors / 8] = columns / 16 * 64;
  frame[kLanes / 8] = lanes;
  frame[kUpperLanes / 8] = lanes >> 8;
  frame[kGroups / 8] = rows / kRows;
  frame[kSingles / 8] = rows % kRows;
  for (size_t k = 0; k < addresses.size(); ++k)
    frame[kAddresses / 8 + k] = static_cast<int64_t>(reinterpret_cast<intptr_t>(addresses[k]));
  reinterpret_cast<void (*)(int64_t*)>(reinterpret_cast<uintptr_t>(code_.entry()))(frame);
}

}  // namespace ingot::cpu
