// See random_spec.h.
#include "random_spec.h"

#include <algorithm>

namespace ingot::test {

int SpecMaker::add(Instr i) {
  if (i.map.stride.empty()) i.map.stride.assign(k_.extent.size(), 0);
  k_.instrs.push_back(std::move(i));
  return static_cast<int>(k_.instrs.size()) - 1;
}

int SpecMaker::add_buffer(DType t, int64_t numel, bool written) {
  k_.buffers.push_back({t, numel, written, false});
  Bytes b(static_cast<size_t>(numel) * size_of(t));
  for (int64_t i = 0; i < numel; ++i) {
    const int v = pick(-3, 4);
    Number n{static_cast<double>(v), v};
    if (t == DType::Bool) n.i = v & 1;
    if (t == DType::UInt8) n.i = v & 7;
    write_number(b, t, i, n);
  }
  data_->push_back(std::move(b));
  return static_cast<int>(k_.buffers.size()) - 1;
}

DType SpecMaker::any_type() {
  return floats_ || chance(45) ? DType::Float32 : static_cast<DType>(pick(0, kDTypeCount - 1));
}
DType SpecMaker::num_type() {
  const DType t = any_type();
  return t == DType::Bool ? DType::Float32 : t;
}

/// Strides of a buffer of this shape with its axes in a random order; some axes broadcast, some
/// backwards.
Affine SpecMaker::dense(Level level, std::vector<int64_t> shape, int64_t& numel, bool broadcast) {
  const int n = k_.n_axes();
  Affine m;
  m.stride.assign(static_cast<size_t>(n), 0);
  std::vector<int> order;
  for (int a = 0; a < (level == Level::Outer ? k_.n_outer : n); ++a) order.push_back(a);
  if (columns_) std::reverse(order.begin(), order.end());
  if (chance(floats_ ? 5 : 40)) std::shuffle(order.begin(), order.end(), rng_);
  int64_t stride = chance(floats_ ? 2 : 15) ? 2 : 1;
  for (size_t q = order.size(); q-- > 0;) {
    const size_t a = static_cast<size_t>(order[q]);
    if (broadcast && chance(25)) continue;
    m.stride[a] = stride;
    if (chance(floats_ ? 1 : 10)) {  // backwards
      m.offset += stride * (shape[a] - 1);
      m.stride[a] = -stride;
    }
    stride *= shape[a] + (chance(10) ? 3 : 0);
  }
  const int64_t front = chance(20) ? pick(1, 9) : 0;
  m.offset += front;
  numel = stride + front + 2;
  return m;
}

int SpecMaker::load(Level level, DType t, bool whole) {
  Instr i;
  i.kind = InstrKind::Load;
  i.level = level;
  i.dtype = t;
  int64_t numel;
  i.map = dense(level, k_.extent, numel, !whole);
  i.buffer = add_buffer(t, numel, false);
  return add(i);
}

int SpecMaker::bounded_load(Level level, DType t) {
  const int n = level == Level::Outer ? k_.n_outer : k_.n_axes();
  if (n == 0) return load(level, t, false);
  Instr i;
  i.kind = InstrKind::Load;
  i.level = level;
  i.dtype = t;
  i.fvalue = i.ivalue = t == DType::Bool ? 1 : 2;
  std::vector<int64_t> shape = k_.extent, front(shape.size(), 0);
  for (int a = 0; a < n; ++a) {
    if (!chance(50)) continue;
    const size_t s = static_cast<size_t>(a);
    const int64_t f = pick(0, static_cast<int>(std::min<int64_t>(3, shape[s] - 1)));
    front[s] = f;
    shape[s] = std::max<int64_t>(1, shape[s] - f - pick(0, 2));
    Bound b;
    b.at.stride.assign(k_.extent.size(), 0);
    b.at.stride[s] = 1;
    b.at.offset = -f;
    b.extent = shape[s];
    if (chance(20)) {  // the same range, counted from its end
      b.at.stride[s] = -1;
      b.at.offset = f + shape[s] - 1;
    }
    i.bounds.push_back(b);
  }
  int64_t numel;
  i.map = dense(level, shape, numel, false);
  for (int a = 0; a < n; ++a)
    i.map.offset -= front[static_cast<size_t>(a)] * i.map.stride[static_cast<size_t>(a)];
  i.buffer = add_buffer(t, numel, false);
  return add(i);
}

int SpecMaker::indirect_load(Level level, DType t) {
  static const DType index_types[] = {DType::Int64, DType::Int32, DType::Int16, DType::Int64};
  const DType index_type = index_types[pick(0, 3)];
  Instr size;
  size.kind = InstrKind::Compute;
  size.op = Op::Abs;
  size.level = level;
  size.dtype = index_type;
  size.arg[0] = load(level, index_type, false);
  const int index = add(size);
  Instr i;
  i.kind = InstrKind::Load;
  i.level = level;
  i.dtype = t;
  i.indirect = index;
  i.indirect_extent = chance(10) ? 4 : 5;  // index values are in [0, 4]: 4 makes some of them bad
  i.site = 7;
  int64_t numel;
  i.map = dense(level, k_.extent, numel, true);
  if (chance(50)) {
    i.indirect_stride = numel;
    numel *= i.indirect_extent;
  } else {  // the indexed axis is the fastest
    for (int64_t& s : i.map.stride) s *= i.indirect_extent;
    i.map.offset *= i.indirect_extent;
    i.indirect_stride = 1;
    numel *= i.indirect_extent;
  }
  i.buffer = add_buffer(t, numel, false);
  return add(i);
}

int SpecMaker::source(Level level) {
  const int what =
      floats_ ? pick(0, 6) * 14 + 2 : pick(1, 100);  // floats: loads, constants, arguments
  if (floats_ && what < 60) return load(level, any_type(), chance(70));
  if (floats_ && what < 80) return row_mask(level);
  if (floats_ && chance(50)) return host_number(level);
  if (what <= 55) return load(level, any_type(), chance(50));
  if (what <= 68) return bounded_load(level, any_type());
  if (what <= 78) return indirect_load(level, any_type());
  Instr i;
  i.level = level;
  if (what <= 84) {
    i.kind = InstrKind::Const;
    i.dtype = any_type();
    i.fvalue = i.ivalue = pick(0, 3);
  } else if (what <= 88) {
    i.kind = InstrKind::Arg;
    i.dtype = num_type();
    i.slot = pick(0, 1);
  } else if (what <= 92) {
    i.kind = InstrKind::Index;
    i.dtype = DType::Int64;
    int64_t numel;
    i.map = dense(level, k_.extent, numel, true);
  } else if (what <= 95) {
    i.kind = InstrKind::Random;
    i.dtype = DType::Int32;
    int64_t numel;
    i.map = dense(level, k_.extent, numel, false);
    i.slot = 0;
    i.ivalue = pick(0, 1000);
    const int bits = add(i);  // brought down to small numbers
    Instr c;
    c.kind = InstrKind::Const;
    c.level = level;
    c.dtype = DType::Int32;
    c.ivalue = 3;
    const int three = add(c);
    Instr a;
    a.kind = InstrKind::Compute;
    a.op = Op::BitAnd;
    a.level = level;
    a.dtype = DType::Int32;
    a.arg[0] = bits;
    a.arg[1] = three;
    return add(a);
  } else {
    i.kind = InstrKind::InBounds;
    i.dtype = DType::Bool;
    for (int a = 0; a < (level == Level::Outer ? k_.n_outer : k_.n_axes()); ++a) {
      Bound b;
      b.at.stride.assign(k_.extent.size(), 0);
      b.at.stride[static_cast<size_t>(a)] = pick(-2, 2);
      b.at.offset = pick(-3, 5);
      b.extent = pick(1, 20);
      i.bounds.push_back(b);
    }
  }
  return add(i);
}

/// What an optimiser's step size is made of: an argument, a constant, another type.
int SpecMaker::host_number(Level level) {
  Instr arg, c, sum;
  arg.kind = InstrKind::Arg;
  arg.slot = pick(0, 1);
  c.fvalue = c.ivalue = pick(0, 3);
  sum.kind = InstrKind::Compute;
  sum.op = chance(50) ? Op::Add : Op::Sub;
  arg.dtype = c.dtype = sum.dtype = chance(50) ? DType::Float64 : DType::Int32;
  arg.level = c.level = sum.level = level;
  sum.arg[0] = add(arg);
  sum.arg[1] = add(c);
  return cast(add(sum), DType::Float32, level);
}

/// What a causal mask is made of: two positions compared.
int SpecMaker::row_mask(Level level) {
  Instr i, c;
  for (int q = 0; q < 2; ++q) {
    i = {};
    i.kind = InstrKind::Index;
    i.level = level;
    i.dtype = DType::Int64;
    i.map.stride.assign(k_.extent.size(), 0);
    const int axes = level == Level::Outer ? k_.n_outer : k_.n_axes();
    if (axes > 0) i.map.stride[static_cast<size_t>(pick(0, axes - 1))] = 1;
    i.map.offset = pick(-2, 5);
    c.arg[q] = add(i);
  }
  c.kind = InstrKind::Compute;
  c.op = chance(50) ? Op::Le : Op::Gt;
  c.level = level;
  c.dtype = DType::Bool;
  return add(c);
}

int SpecMaker::cast(int v, DType t, Level level) {
  if (k_.instrs[static_cast<size_t>(v)].dtype == t) return v;
  Instr i;
  i.kind = InstrKind::Compute;
  i.op = Op::Cast;
  i.dtype = t;
  i.level = level;
  i.arg[0] = v;
  return add(i);
}

/// Some value usable at this level, of type t: an Outer one serves Elem consumers too.
int SpecMaker::value_of(Level level, DType t) {
  std::vector<int> have;
  for (size_t v = 0; v < k_.instrs.size(); ++v)
    if ((level == Level::Elem || k_.instrs[v].level == Level::Outer) &&
        k_.instrs[v].kind != InstrKind::Random && !(floats_ && k_.instrs[v].dtype == DType::Int64))
      have.push_back(static_cast<int>(v));
  int v = have.empty() || chance(20)
              ? source(level)
              : have[static_cast<size_t>(pick(0, static_cast<int>(have.size()) - 1))];
  const DType from = k_.instrs[static_cast<size_t>(v)].dtype;
  // Casting a negative float to an unsigned type is not defined the same everywhere.
  if (is_float(from) && t == DType::UInt8)
    v = cast(v, DType::Int32, k_.instrs[static_cast<size_t>(v)].level);
  return cast(v, t, k_.instrs[static_cast<size_t>(v)].level);
}

int SpecMaker::compute(Level level) {
  static const Op binary[] = {Op::Add,     Op::Sub, Op::Mul, Op::Maximum,
                              Op::Minimum, Op::Add, Op::Mul, Op::Sub};
  static const Op compare[] = {Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge};
  static const Op unary[] = {Op::Neg, Op::Abs, Op::Relu, Op::Sign};
  static const Op integer[] = {Op::BitAnd,   Op::BitOr,     Op::BitXor,
                               Op::FloorDiv, Op::Remainder, Op::Fmod};
  Instr i;
  i.kind = InstrKind::Compute;
  i.level = level;
  const int what = pick(1, floats_ ? 92 : 100);
  if (what <= 55) {
    i.op = binary[pick(0, 7)];
    i.dtype = num_type();
    i.arg[0] = value_of(level, i.dtype);
    i.arg[1] = value_of(level, i.dtype);
    // Products of products would leave the range in which all is exact.
    if (i.op == Op::Mul && is_float(i.dtype)) {
      Instr s;
      s.kind = InstrKind::Compute;
      s.op = Op::Sign;
      s.dtype = i.dtype;
      s.level = k_.instrs[static_cast<size_t>(i.arg[1])].level;
      s.arg[0] = i.arg[1];
      i.arg[1] = add(s);
    }
  } else if (what <= 67) {
    i.op = compare[pick(0, 5)];
    i.dtype = DType::Bool;
    const DType t = any_type();
    i.arg[0] = value_of(level, t);
    i.arg[1] = value_of(level, t);
  } else if (what <= 80) {
    i.op = Op::Where;
    i.dtype = any_type();
    i.arg[0] = value_of(level, DType::Bool);
    i.arg[1] = value_of(level, i.dtype);
    i.arg[2] = value_of(level, i.dtype);
  } else if (what <= 92) {
    i.op = unary[pick(0, 3)];
    i.dtype = num_type();
    i.arg[0] = value_of(level, i.dtype);
  } else {
    static const DType ints[] = {DType::Int64, DType::Int32, DType::Int16, DType::Int8,
                                 DType::UInt8};
    i.op = integer[pick(0, 5)];
    i.dtype = ints[pick(0, 4)];
    i.arg[0] = value_of(level, i.dtype);
    i.arg[1] = value_of(level, i.dtype);
  }
  return add(i);
}

int SpecMaker::reduce() {
  static const Op ops[] = {Op::Sum, Op::Sum,    Op::Sum,    Op::Max,
                           Op::Min, Op::ArgMax, Op::ArgMin, Op::Prod};
  Instr i;
  i.kind = InstrKind::Reduce;
  i.op = ops[pick(0, floats_ ? 4 : 7)];
  i.level = Level::Outer;
  if (i.op == Op::Prod && k_.inner_size() > 8) i.op = Op::Sum;
  const DType t = any_type();
  i.arg[0] = value_of(Level::Elem, t);
  if (k_.instrs[static_cast<size_t>(i.arg[0])].level == Level::Outer)
    i.arg[0] = load(Level::Elem, t, true);
  if (is_float(t) &&
      (i.op == Op::Sum || i.op == Op::Prod)) {  // sums of signs stay exact in 16 bits
    Instr s;
    s.kind = InstrKind::Compute;
    s.op = Op::Sign;
    s.dtype = t;
    s.arg[0] = i.arg[0];
    i.arg[0] = add(s);
  }
  i.dtype = i.op == Op::ArgMax || i.op == Op::ArgMin ? DType::Int64
            : i.op == Op::Sum && !is_float(t)        ? (chance(50)         ? DType::Int64
                                                        : t == DType::Bool ? DType::Int32
                                                                           : t)
                                                     : t;
  if (i.op == Op::Prod && t == DType::Bool) i.dtype = DType::Int64;
  return add(i);
}

void SpecMaker::store(int v) {
  if (floats_) {  // masks are stored as numbers, positions not at all
    const Instr i = k_.instrs[static_cast<size_t>(v)];
    v = i.dtype == DType::Int64 ? load(i.level, DType::Float32, false)
                                : cast(v, DType::Float32, i.level);
  }
  const Instr& i = k_.instrs[static_cast<size_t>(v)];
  Store s;
  s.value = v;
  s.predicated = floats_ ? k_.stores.empty() ? chance(15) : k_.stores[0].predicated : chance(15);
  int64_t numel;
  s.map = dense(i.level, k_.extent, numel, false);
  const DType t = i.dtype;
  // Sometimes over memory that is read, position by position.
  if (i.level == Level::Elem && chance(25)) {
    for (size_t w = 0; w < k_.instrs.size(); ++w) {
      const Instr& l = k_.instrs[w];
      if (l.kind != InstrKind::Load || l.level != Level::Elem || l.dtype != t ||
          !l.bounds.empty() || l.indirect >= 0)
        continue;
      bool whole = !k_.buffers[static_cast<size_t>(l.buffer)].written;
      for (size_t a = 0; a < k_.extent.size(); ++a)
        whole = whole && (l.map.stride[a] != 0 || k_.extent[a] == 1);
      if (!whole) continue;
      s.buffer = l.buffer;
      s.map = l.map;
      k_.buffers[static_cast<size_t>(l.buffer)].written =
          k_.buffers[static_cast<size_t>(l.buffer)].may_alias = true;
      k_.stores.push_back(s);
      return;
    }
  }
  s.buffer = add_buffer(t, numel, true);
  k_.stores.push_back(s);
}

KernelSpec SpecMaker::make(std::vector<Bytes>& data) {
  k_ = {};
  data.clear();
  data_ = &data;
  columns_ = floats_ && chance(30);
  const int n = columns_ ? 2 : pick(0, 4);
  int64_t total = 1;
  const int64_t most =
      chance(4) ? 150000 : 20000;  // large enough for several tiles, and sometimes for splits
  for (int a = 0; a < n; ++a) {
    int64_t e = chance(70) ? pick(2, 9) : chance(70) ? pick(10, 70) : pick(100, 3000);
    if (floats_ && (columns_ || a + 1 == n)) e = pick(16, 200);
    while (total * e > most) e = (e + 1) / 2;
    total *= e;
    k_.extent.push_back(e);
  }
  k_.n_outer = columns_ ? 1 : chance(40) ? n : floats_ ? std::max(0, n - 1) : pick(0, n);
  const bool reduces = k_.n_outer < n || chance(5);
  if (!reduces) k_.n_outer = n;
  for (int c = pick(1, 3); c > 0; --c) source(Level::Elem);
  for (int c = pick(0, 5); c > 0; --c) compute(Level::Elem);
  std::vector<int> results;
  if (reduces) {
    for (int rounds = pick(1, 3); rounds > 0; --rounds) {
      for (int c = pick(1, 2); c > 0; --c) results.push_back(reduce());
      for (int c = pick(0, 2); c > 0; --c) results.push_back(compute(Level::Outer));
      if (rounds > 1 || chance(40))
        for (int c = pick(1, 3); c > 0; --c) results.push_back(compute(Level::Elem));
    }
  }
  const int last = static_cast<int>(k_.instrs.size()) - 1;
  for (int r : results)
    if (chance(50)) store(r);
  for (int c = pick(0, 2); c > 0; --c) store(pick(0, last));
  store(last);
  k_.label = "random";
  return k_;
}

}  // namespace ingot::test
