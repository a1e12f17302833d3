// See row_code.h: generating the code and running it over boxes of rows.
#include "backend/cpu/jit/row_code.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>

#include "backend/cpu/jit/row_emitter.h"
#include "backend/cpu/support/dispatch.h"
#include "backend/cpu/support/move.h"
#include "backend/cpu/support/threads.h"
#include "base/env.h"

namespace ingot::cpu {

namespace {

constexpr int64_t kBox = 8192;  // elements handed to a thread at a time

/// Generating code costs as much as running some thousand elements, and most kernels run often.
std::atomic<int64_t> least_work{env::is("INGOT_JIT", "all") ? 0 : 1024};
std::atomic<bool> code_on{!env::is("INGOT_JIT", "0")};

std::atomic<int64_t> made{0};

/// The loop that computes a value outside the code, on one element.
TileFn host_loop(const KernelSpec& spec, const Instr& i) {
  if (i.kind != InstrKind::Compute) return nullptr;
  const TileType in = tile_type(spec.instrs[static_cast<size_t>(i.arg[0])].dtype);
  return i.op == Op::Cast ? find_cast(in, tile_type(i.dtype)) : find_op(i.op, in, 0);
}

/// A value of a type, in the first bytes of a cell.
uint64_t number_bits(DType t, double f, int64_t i) {
  uint64_t u = 0;
  auto put = [&](auto v) { std::memcpy(&u, &v, sizeof v); };
  switch (t) {
    case DType::Float64:
      put(f);
      break;
    case DType::Float32:
      put(static_cast<float>(f));
      break;
    case DType::Int64:
      put(i);
      break;
    case DType::Int32:
      put(static_cast<int32_t>(i));
      break;
    case DType::Int16:
      put(static_cast<int16_t>(i));
      break;
    case DType::Bool:
      put(static_cast<uint8_t>(i != 0));
      break;
    default:
      put(static_cast<uint8_t>(i));
  }
  return u;
}

bool mark_streams(RowProgram& program) {
  bool any = false;
  const KernelSpec& spec = program.spec;
  if (!goes_past_caches(spec, program.an.plan.work * 4)) return false;
  for (size_t s = 0; s < spec.stores.size(); ++s) {
    RowPointer& p = program.pointers[static_cast<size_t>(program.store_pointer[s])];
    bool aligned =
        p.along && p.map.offset % 16 == 0 && (program.length < 0 || program.length % 16 == 0);
    for (int a = 0; a < program.row_axes; ++a)
      aligned &= p.map.stride[static_cast<size_t>(a)] % 16 == 0;
    p.streamed = aligned;
    any |= aligned;
  }
  return any;
}

}  // namespace

bool use_machine_code() {
#if defined(__x86_64__) && defined(__linux__)
  return code_on.load(std::memory_order_relaxed) && simd_level() == Simd::Avx512;
#else
  return false;
#endif
}
void set_machine_code(bool on, int64_t least) {
  code_on.store(on, std::memory_order_relaxed);
  least_work.store(least, std::memory_order_relaxed);
}
int64_t machine_code_least_work() { return least_work.load(std::memory_order_relaxed); }

void count_machine_code() { made.fetch_add(1, std::memory_order_relaxed); }
int64_t machine_code_made() { return made.load(std::memory_order_relaxed); }

std::shared_ptr<RowCode> RowCode::make(const Analysis& an) {
  if (!use_machine_code() || an.plan.work < machine_code_least_work()) return nullptr;
  RowProgram program(an);
  if (!program.make()) return nullptr;
  auto rc = std::make_shared<RowCode>();
  rc->streams_ = mark_streams(program);
  RowEmitter emitter(program, rc->streams_);
  const std::vector<uint8_t> bytes = emitter.emit();
  if (emitter.failed()) return nullptr;
  for (size_t k = 0; k < an.spec.instrs.size(); ++k)
    if (program.host[k] && an.spec.instrs[k].kind == InstrKind::Compute &&
        !host_loop(an.spec, an.spec.instrs[k]))
      return nullptr;
  rc->code_ = Code(bytes);
  if (!rc->code_.entry()) return nullptr;
  if (rc->streams_) {
    rc->plain_ = Code(RowEmitter(program, false).emit());
    if (!rc->plain_.entry()) return nullptr;
  }
  count_machine_code();
  rc->frame_bytes_ = emitter.frame_bytes();
  rc->pointers_ = program.pointers;
  rc->length_ = program.length;
  rc->add_host_steps(program, emitter.slots());
  rc->extent_.assign(an.spec.extent.begin(), an.spec.extent.end() - 1);
  Plan& plan = an.plan;
  plan.n_buffers = static_cast<int>(an.spec.buffers.size());
  plan.all_predicated = !an.spec.stores.empty() && an.spec.stores[0].predicated;
  int64_t rows = 1;
  for (int64_t e : rc->extent_) rows *= e;
  if (rc->length_ < 0) {
    plan.boxes = (plan.work + kBox - 1) / kBox;
  } else {
    rc->rows_per_box_ = std::max<int64_t>(1, kBox / rc->length_);
    plan.boxes = (rows + rc->rows_per_box_ - 1) / rc->rows_per_box_;
  }
  return rc;
}

void RowCode::add_host_steps(const RowProgram& program, const std::vector<int>& slots) {
  const KernelSpec& spec = program.spec;
  cells_.assign(spec.instrs.size(), 0);
  for (size_t k = 0; k < spec.instrs.size(); ++k) {
    const Instr& i = spec.instrs[k];
    if (!program.host[k] && i.kind != InstrKind::Arg) continue;
    if (i.kind == InstrKind::Const) {
      cells_[k] = number_bits(i.dtype, i.fvalue, i.ivalue);
      continue;
    }
    HostStep s;
    s.cell = static_cast<int>(k);
    s.slot = i.dtype == DType::Float32 ? slots[k] : -1;
    s.dtype = i.dtype;
    s.fn = host_loop(spec, i);
    if (i.kind == InstrKind::Arg)
      s.arg = i.slot;
    else
      s.a = i.arg[0], s.b = i.arg[1], s.c = i.arg[2];
    host_.push_back(s);
  }
}

void RowCode::host_values(char* frame, const RunArgs& args) const {
  auto* cell = reinterpret_cast<uint64_t*>(frame + cells_at());
  std::copy(cells_.begin(), cells_.end(), cell);
  for (const HostStep& s : host_) {
    const double v = s.arg >= 0 ? args.args[s.arg] : 0;
    if (s.arg >= 0)
      cell[s.cell] = number_bits(s.dtype, v, is_float(s.dtype) ? 0 : static_cast<int64_t>(v));
    else
      s.fn(cell + s.cell, cell + s.a, s.b >= 0 ? cell + s.b : nullptr,
           s.c >= 0 ? cell + s.c : nullptr, 1);
    if (s.slot >= 0) std::memcpy(frame + s.slot, cell + s.cell, 4);
  }
}

void RowCode::run(const Plan& plan, int64_t begin, int64_t end, void* const* buffers,
                  const RunArgs& args) const {
  if (plan.all_predicated && args.status &&
      std::atomic_ref<int32_t>(args.status->code).load(std::memory_order_relaxed) != 0)
    return;
  char* frame = thread_memory(thread_bytes());
  if (!host_.empty()) host_values(frame, args);
  rows(plan, begin, end, buffers, frame);
  if (streams_) finish_stream();
}

void RowCode::rows(const Plan& plan, int64_t begin, int64_t end, void* const* buffers,
                   char* frame) const {
  bool aligned = true;
  for (const RowPointer& p : pointers_)
    if (p.streamed) aligned &= reinterpret_cast<uintptr_t>(buffers[p.buffer]) % 64 == 0;
  const auto code = reinterpret_cast<void (*)(char*, int64_t)>(
      reinterpret_cast<uintptr_t>(streams_ && !aligned ? plain_.entry() : code_.entry()));
  const auto set = [&](size_t k, int64_t at) {
    const RowPointer& p = pointers_[k];
    const int64_t address =
        p.buffer < 0 ? at
                     : static_cast<int64_t>(reinterpret_cast<intptr_t>(buffers[p.buffer])) + at * 4;
    std::memcpy(frame + kFramePointers + k * 8, &address, 8);
  };
  if (length_ < 0) {  // one axis: a box is a part of it
    const int64_t from = begin * kBox, n = std::min(end * kBox, plan.work) - from;
    for (size_t k = 0; k < pointers_.size(); ++k)
      set(k, pointers_[k].map.offset + from * pointers_[k].map.stride[0]);
    const int64_t sizes[3] = {n / 64 * 256, n / 16 * 64, (int64_t{1} << n % 16) - 1};
    std::memcpy(frame + kFrameMain, sizes, sizeof sizes);
    return code(frame, 1);
  }
  const size_t axes = extent_.size();
  int64_t total = 1;
  for (int64_t e : extent_) total *= e;
  int64_t row = begin * rows_per_box_;
  const int64_t stop = std::min(end * rows_per_box_, total);
  while (row < stop) {
    int64_t at[kMaxAxes], rest = row;
    for (size_t a = axes; a-- > 0;) {
      at[a] = rest % extent_[a];
      rest /= extent_[a];
    }
    const int64_t count = axes ? std::min(stop - row, extent_[axes - 1] - at[axes - 1]) : 1;
    for (size_t k = 0; k < pointers_.size(); ++k) {
      int64_t p = pointers_[k].map.offset;
      for (size_t a = 0; a < axes; ++a) p += at[a] * pointers_[k].map.stride[a];
      set(k, p);
    }
    code(frame, count);
    row += count;
  }
}

}  // namespace ingot::cpu
