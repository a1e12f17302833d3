// See single_index_update.h.
#include "codegen/single_index_update.h"

namespace ingot {

int overwritten_load(std::span<const KernelSpec> parts, int store) {
  const KernelSpec& k = parts[0];
  const Store& to = k.stores[store];
  const Instr& w = k.instrs[to.value];
  if (to.over < 0 || w.kind != InstrKind::Compute || w.op != Op::Where) return -1;
  const int old = w.arg[2];
  const Instr& in = k.instrs[old];
  if (in.kind != InstrKind::Load || in.buffer != to.over || in.indirect >= 0 || !in.bounds.empty())
    return -1;
  if (in.dtype != w.dtype || k.buffers[in.buffer].dtype != k.buffers[to.buffer].dtype) return -1;
  for (const KernelSpec& p : parts)
    if (!(p.instrs[old].map == p.stores[store].map)) return -1;
  int readers = 0;  // of old and of the result: where() and the store, or somebody needs the values
  auto count = [&](int value) { readers += value == old || value == to.value; };
  for (const Instr& x : k.instrs) for_each_operand(x, count);
  for (const Store& s : k.stores) count(s.value);
  return readers == 2 ? old : -1;
}

SingleIndex find_single_index(std::span<const KernelSpec> parts) {
  const KernelSpec& k = parts[0];
  if (k.n_inner() > 0 || k.stores.size() != 1 || overwritten_load(parts, 0) < 0) return {};
  const Instr& is = k.instrs[k.instrs[k.stores[0].value].arg[0]];
  if (is.kind != InstrKind::Compute || is.op != Op::Eq) return {};
  for (int side = 0; side < 2; ++side) {
    const Instr& index = k.instrs[is.arg[side]];
    SingleIndex single{-1, is.arg[side], is.arg[1 - side]};
    if (index.kind != InstrKind::Index || index.dtype != DType::Int64) continue;
    for (int x = 0; x + 1 < k.n_axes(); ++x)  // the last axis has the lanes
      if (index.map.stride[x] == 1) single.axis = x;
    int number = single.number;
    while (k.instrs[number].kind == InstrKind::Compute && k.instrs[number].op == Op::Cast)
      number = k.instrs[number].arg[0];
    const InstrKind kind = k.instrs[number].kind;
    bool fits = single.axis >= 0 && k.instrs[single.number].dtype == DType::Int64 &&
                (kind == InstrKind::Arg || kind == InstrKind::Const);
    for (const KernelSpec& p : parts) {
      Affine along{0, std::vector<int64_t>(p.extent.size(), 0)};
      if (fits) along.stride[static_cast<size_t>(single.axis)] = 1;
      fits = fits && p.instrs[single.index].map == along;
    }
    if (fits) return single;
  }
  return {};
}

}  // namespace ingot
