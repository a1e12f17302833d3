// A generated kernel that updates one index along an axis (codegen/single_index_update.h), as
// one token's keys are written to a cache: the kernel of that index alone, with its buffers
// offset as the arguments say.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "backend/cpu/library.h"
#include "codegen/single_index_update.h"

namespace ingot::cpu {
namespace {

/// The index: an argument or a constant, and the types it is cast to.
struct Number {
  Instr source;
  std::vector<DType> types;

  double value(const RunArgs& args) const {
    double v = source.kind == InstrKind::Arg ? args.args[source.slot]
               : is_float(source.dtype)      ? source.fvalue
                                             : static_cast<double>(source.ivalue);
    for (DType t : types)
      v = t == DType::Float32 ? static_cast<double>(static_cast<float>(v))
          : t == DType::Int64 ? std::trunc(v)
                              : v;
    return v;
  }
};

std::optional<Number> number_of(const KernelSpec& k, int i) {
  Number n;
  for (;; i = k.instrs[static_cast<size_t>(i)].arg[0]) {
    const Instr& in = k.instrs[static_cast<size_t>(i)];
    if (in.dtype != DType::Float32 && in.dtype != DType::Float64 && in.dtype != DType::Int64)
      return {};
    n.types.insert(n.types.begin(), in.dtype);
    if (in.kind == InstrKind::Compute) continue;  // a cast
    n.source = in;
    return n;
  }
}

class Pinned final : public CpuExecutable {
 public:
  bool init(std::span<const KernelSpec> parts) {
    const SingleIndex single = find_single_index(parts);
    if (single.axis < 0) return false;
    for (const KernelSpec& k : parts)
      if (!add(k, single)) return false;
    return true;
  }

  void run(void* const* buffers, void* scratch, const RunArgs& args) override {
    for (const Part& p : parts_) {
      const double v = p.number.value(args);
      if (v > -1 && v < static_cast<double>(p.extent)) {
        std::vector<void*> moved(buffers, buffers + p.step.size());
        for (size_t b = 0; b < moved.size(); ++b)
          moved[b] = static_cast<char*>(moved[b]) + p.step[b] * static_cast<int64_t>(v);
        p.kernel->run(moved.data(), scratch, args);
      }
      buffers += p.step.size();
    }
  }

 private:
  struct Part {
    Number number;
    int64_t extent;             // of the axis
    std::vector<int64_t> step;  // per buffer: bytes from one index to the next
    std::unique_ptr<Kernel> kernel;
  };

  bool add(const KernelSpec& k, const SingleIndex& single) {
    const auto axis = static_cast<size_t>(single.axis);
    const std::optional<Number> number = number_of(k, single.number);
    if (!number) return false;
    Part p{*number, k.extent[axis], std::vector<int64_t>(k.buffers.size(), 0), nullptr};
    KernelSpec one = k;
    one.stores[0].value = k.instrs[static_cast<size_t>(k.stores[0].value)].arg[1];
    one.stores[0].over = -1;
    drop_unread(one);
    // A buffer moves as a unit, so all that is read or written in it must move alike; and nothing
    // else may depend on the axis.
    std::vector<bool> seen(k.buffers.size(), false);
    bool fits = true;
    auto take = [&](int32_t buffer, Affine& map) {
      const auto b = static_cast<size_t>(buffer);
      const int64_t step = map.stride[axis] * static_cast<int64_t>(size_of(k.buffers[b].dtype));
      fits = fits && (!seen[b] || p.step[b] == step);
      seen[b] = true;
      p.step[b] = step;
      drop(map, axis);
    };
    for (Instr& i : one.instrs) {
      if (i.kind == InstrKind::Load) {
        take(i.buffer, i.map);
      } else if (!i.map.stride.empty()) {
        fits = fits && i.map.stride[axis] == 0;
        drop(i.map, axis);
      }
      for (Bound& b : i.bounds) {
        fits = fits && b.at.stride[axis] == 0;
        drop(b.at, axis);
      }
    }
    take(one.stores[0].buffer, one.stores[0].map);
    if (!fits) return false;
    one.extent.erase(one.extent.begin() + single.axis);
    --one.n_outer;
    verify(one);
    p.kernel = std::make_unique<Kernel>(std::span(&one, 1));
    scratch_bytes = std::max(scratch_bytes, p.kernel->scratch_bytes);
    parts_.push_back(std::move(p));
    return true;
  }

  static void drop(Affine& a, size_t axis) {
    a.stride.erase(a.stride.begin() + static_cast<ptrdiff_t>(axis));
  }

  /// Leaves only the instructions that the store's value depends on.
  static void drop_unread(KernelSpec& k) {
    std::vector<int> place(k.instrs.size(), -1);
    place[static_cast<size_t>(k.stores[0].value)] = 0;
    for (size_t i = k.instrs.size(); i-- > 0;)
      if (place[i] >= 0)
        for_each_operand(k.instrs[i], [&](int a) { place[static_cast<size_t>(a)] = 0; });
    std::vector<Instr> left;
    auto moved = [&](int32_t& i) {
      if (i >= 0) i = place[static_cast<size_t>(i)];
    };
    for (size_t i = 0; i < k.instrs.size(); ++i) {
      if (place[i] < 0) continue;
      place[i] = static_cast<int>(left.size());
      left.push_back(k.instrs[i]);
      for (int32_t& a : left.back().arg) moved(a);
      moved(left.back().indirect);
    }
    k.instrs = std::move(left);
    moved(k.stores[0].value);
  }

  std::vector<Part> parts_;
};

}  // namespace

std::unique_ptr<CpuExecutable> prepare_single_index_update(std::span<const KernelSpec> parts) {
  auto p = std::make_unique<Pinned>();
  return p->init(parts) ? std::move(p) : nullptr;
}

}  // namespace ingot::cpu
