// See spec_builder.h.
#include "emulator/spec_builder.h"

#include <algorithm>

namespace ingot::test {

Affine SpecBuilder::dense(std::vector<bool> keep) const {
  Affine a;
  a.stride.assign(k.extent.size(), 0);
  int64_t step = 1;
  for (int x = k.n_axes() - 1; x >= 0; --x) {
    if (!keep.empty() && !keep[x]) continue;
    a.stride[x] = step;
    step *= k.extent[x];
  }
  return a;
}

Affine SpecBuilder::outer_dense() const {
  std::vector<bool> keep(k.extent.size());
  std::fill(keep.begin(), keep.begin() + k.n_outer, true);
  return dense(keep);
}

int SpecBuilder::add(Instr in) {
  k.instrs.push_back(std::move(in));
  return static_cast<int>(k.instrs.size()) - 1;
}

int SpecBuilder::buffer(DType t, const Affine& map, int64_t extra) {
  int64_t last = map.offset + extra;
  for (int x = 0; x < k.n_axes(); ++x)
    last += std::max<int64_t>(map.stride[x], 0) * (k.extent[x] - 1);
  k.buffers.push_back({t, last + 1, false, false});
  return static_cast<int>(k.buffers.size()) - 1;
}

Level SpecBuilder::level_of(std::initializer_list<int> args) const {
  for (int a : args)
    if (a >= 0 && k.instrs[a].level == Level::Elem && k.instrs[a].kind != InstrKind::Const &&
        k.instrs[a].kind != InstrKind::Arg)
      return Level::Elem;
  return k.n_inner() > 0 ? Level::Outer : Level::Elem;
}

int SpecBuilder::load(DType t, const Affine& map, Level level) {
  return load_from(buffer(t, map), map, level);
}

int SpecBuilder::load_from(int b, const Affine& map, Level level) {
  Instr in;
  in.kind = InstrKind::Load;
  in.dtype = k.buffers[b].dtype;
  in.level = level;
  in.buffer = b;
  in.map = map;
  return add(in);
}

int SpecBuilder::load_indirect(DType t, const Affine& map, int index, int64_t stride,
                               int64_t extent, Level level) {
  int i = load_from(buffer(t, map, stride * (extent - 1)), map, level);
  Instr& in = k.instrs[i];
  in.indirect = index;
  in.indirect_stride = stride;
  in.indirect_extent = extent;
  in.site = 7;
  return i;
}

void SpecBuilder::bound(int instr, const Affine& at, int64_t extent, double fill) {
  Instr& in = k.instrs[instr];
  in.bounds.push_back({at, extent});
  in.fvalue = fill;
  in.ivalue = static_cast<int64_t>(fill);
}

int SpecBuilder::constant(DType t, double x) {
  Instr in;
  in.kind = InstrKind::Const;
  in.level = level_of({});
  in.dtype = t;
  in.fvalue = x;
  in.ivalue = static_cast<int64_t>(x);
  return add(in);
}

int SpecBuilder::arg(DType t, int slot) {
  Instr in;
  in.kind = InstrKind::Arg;
  in.level = level_of({});
  in.op = Op::Arg;
  in.dtype = t;
  in.slot = slot;
  return add(in);
}

int SpecBuilder::index(const Affine& map) {
  Instr in;
  in.kind = InstrKind::Index;
  in.op = Op::Iota;
  in.dtype = DType::Int64;
  in.map = map;
  return add(in);
}

int SpecBuilder::random(const Affine& map, int slot, int64_t offset) {
  Instr in;
  in.kind = InstrKind::Random;
  in.op = Op::Random;
  in.dtype = DType::Int32;
  in.map = map;
  in.slot = slot;
  in.ivalue = offset;
  return add(in);
}

int SpecBuilder::compute(Op op, int a, int b) {
  Instr in;
  in.kind = InstrKind::Compute;
  in.op = op;
  in.dtype = info(op).rule == TypeRule::Bool ? DType::Bool : k.instrs[a].dtype;
  in.arg[0] = a;
  in.arg[1] = b;
  in.level = level_of({a, b});
  return add(in);
}

int SpecBuilder::cast(DType t, int a) {
  Instr in;
  in.kind = InstrKind::Compute;
  in.op = Op::Cast;
  in.dtype = t;
  in.arg[0] = a;
  in.level = level_of({a});
  return add(in);
}

int SpecBuilder::where(int c, int a, int b) {
  Instr in;
  in.kind = InstrKind::Compute;
  in.op = Op::Where;
  in.dtype = k.instrs[a].dtype;
  in.arg[0] = c;
  in.arg[1] = a;
  in.arg[2] = b;
  in.level = level_of({c, a, b});
  return add(in);
}

int SpecBuilder::uniform(DType t, int bits) {
  int i = cast(t, bits);
  k.instrs[i].op = Op::Uniform;
  return i;
}

int SpecBuilder::reduce(Op op, int a, DType t) {
  Instr in;
  in.kind = InstrKind::Reduce;
  in.op = op;
  in.dtype = op == Op::ArgMax || op == Op::ArgMin ? DType::Int64 : t;
  in.arg[0] = a;
  in.level = Level::Outer;
  return add(in);
}

void SpecBuilder::store(int value, const Affine& map, bool predicated) {
  int b = buffer(k.instrs[value].dtype, map);
  k.buffers[b].written = true;
  k.stores.push_back({value, b, map, predicated});
}

void SpecBuilder::store_into(int b, int value, bool predicated) {
  k.buffers[b].written = k.buffers[b].may_alias = true;
  k.stores.push_back({value, b, dense(), predicated});
}

}  // namespace ingot::test
