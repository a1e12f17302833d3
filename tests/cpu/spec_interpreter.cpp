// See spec_interpreter.h.
#include "spec_interpreter.h"

#include <cmath>
#include <cstring>

#include "backend/cpu/support/half.h"
#include "backend/cpu/support/scalar_math.h"
#include "codegen/philox.h"

namespace ingot::test {

using namespace ingot::cpu;  // ig_*, the 16-bit conversions

namespace {
template <class T>
Number load_as(const Bytes& b, int64_t at) {
  T v;
  std::memcpy(&v, b.data() + at * static_cast<int64_t>(sizeof(T)), sizeof(T));
  Number n;
  if constexpr (std::is_floating_point_v<T>)
    n.f = static_cast<double>(v);
  else
    n.i = static_cast<int64_t>(v);
  return n;
}
template <class T>
void store_as(Bytes& b, int64_t at, T v) {
  std::memcpy(b.data() + at * static_cast<int64_t>(sizeof(T)), &v, sizeof(T));
}
}  // namespace

Number read_number(const Bytes& b, DType t, int64_t at) {
  switch (t) {
    case DType::Float64:
      return load_as<double>(b, at);
    case DType::Float32:
      return load_as<float>(b, at);
    case DType::Float16:
      return {static_cast<double>(f32_from_f16(static_cast<uint16_t>(load_as<uint16_t>(b, at).i))),
              0};
    case DType::BFloat16:
      return {static_cast<double>(f32_from_bf16(static_cast<uint16_t>(load_as<uint16_t>(b, at).i))),
              0};
    case DType::Int64:
      return load_as<int64_t>(b, at);
    case DType::Int32:
      return load_as<int32_t>(b, at);
    case DType::Int16:
      return load_as<int16_t>(b, at);
    case DType::Int8:
      return load_as<int8_t>(b, at);
    default:
      return load_as<uint8_t>(b, at);
  }
}

void write_number(Bytes& b, DType t, int64_t at, Number v) {
  switch (t) {
    case DType::Float64:
      return store_as(b, at, v.f);
    case DType::Float32:
      return store_as(b, at, static_cast<float>(v.f));
    case DType::Float16:
      return store_as(b, at, f16_from_f32(static_cast<float>(v.f)));
    case DType::BFloat16:
      return store_as(b, at, bf16_from_f32(static_cast<float>(v.f)));
    case DType::Int64:
      return store_as(b, at, v.i);
    case DType::Int32:
      return store_as(b, at, static_cast<int32_t>(v.i));
    case DType::Int16:
      return store_as(b, at, static_cast<int16_t>(v.i));
    default:
      return store_as(b, at, static_cast<uint8_t>(v.i));
  }
}

Number to_type(Number v, DType t) {
  switch (t) {
    case DType::Float32:
      v.f = static_cast<double>(static_cast<float>(v.f));
      break;
    case DType::Float16:
      v.f = static_cast<double>(f32_from_f16(f16_from_f32(static_cast<float>(v.f))));
      break;
    case DType::BFloat16:
      v.f = static_cast<double>(f32_from_bf16(bf16_from_f32(static_cast<float>(v.f))));
      break;
    case DType::Int32:
      v.i = static_cast<int32_t>(v.i);
      break;
    case DType::Int16:
      v.i = static_cast<int16_t>(v.i);
      break;
    case DType::Int8:
      v.i = static_cast<int8_t>(v.i);
      break;
    case DType::UInt8:
      v.i = static_cast<uint8_t>(v.i);
      break;
    case DType::Bool:
      v.i = v.i != 0;
      break;
    default:
      break;
  }
  return v;
}

Number convert(Number v, DType from, DType to) {
  Number r;
  if (to == DType::Bool)
    r.i = is_float(from) ? v.f != 0 : v.i != 0;
  else if (is_float(to))
    r.f = is_float(from) ? v.f : static_cast<double>(v.i);
  else if (!is_float(from))
    r.i = v.i;
  else
    r.i = to == DType::Int64 ? ig_cast<int64_t>(v.f) : ig_cast<int32_t>(v.f);
  return to_type(r, to);
}

namespace {
template <class T>
T expression(Op op, T a, [[maybe_unused]] T b, bool& is_bool) {
  is_bool = false;
  switch (op) {
#define INGOT_EW(E, name, arity, rule, expr, ga, gb)                            \
  case Op::E:                                                                   \
    if constexpr ((TypeRule::rule != TypeRule::Float ||                         \
                   is_fp<T>)&&(TypeRule::rule != TypeRule::Int || !is_fp<T>)) { \
      is_bool = TypeRule::rule == TypeRule::Bool;                               \
      return static_cast<T>(expr);                                              \
    }                                                                           \
    break;
#include "graph/elementwise.def"
#undef INGOT_EW
    default:
      break;
  }
  return T(0);
}
}  // namespace

Number compute(Op op, DType in, DType out, Number a, Number b, Number c) {
  Number r;
  if (op == Op::Cast) return convert(a, in, out);
  if (op == Op::Where) return a.i ? b : c;
  if (op == Op::Uniform) {
    const uint32_t bits = static_cast<uint32_t>(a.i);
    r.f = out == DType::Float64 ? bits * 0x1p-32 : (bits >> 8) * 0x1p-24;
    return to_type(r, out);
  }
  bool is_bool;
  if (in == DType::Bool && op == Op::Add) return {0, (a.i | b.i) != 0};
  if (in == DType::Bool && op == Op::BitNot) return {0, a.i == 0};
  if (is_float(in)) {
    const double v = expression<double>(op, a.f, b.f, is_bool);
    if (is_bool)
      r.i = v != 0;
    else
      r.f = v;
  } else {
    r.i = expression<int64_t>(op, a.i, b.i, is_bool);
  }
  return to_type(r, out);
}

namespace {

struct Interpreter {
  const KernelSpec& k;
  std::vector<Bytes*>& buffers;
  const RunArgs& run;
  std::vector<std::vector<Number>> values;
  int64_t outer, inner;

  void coordinates(int64_t point, std::vector<int64_t>& i) const {
    for (int a = k.n_axes() - 1; a >= 0; --a) {
      i[static_cast<size_t>(a)] = point % k.extent[static_cast<size_t>(a)];
      point /= k.extent[static_cast<size_t>(a)];
    }
  }
  static int64_t at(const Affine& m, const std::vector<int64_t>& i) {
    int64_t p = m.offset;
    for (size_t a = 0; a < i.size(); ++a) p += m.stride[a] * i[a];
    return p;
  }
  Number value(int v, int64_t point) const {
    const auto& x = values[static_cast<size_t>(v)];
    return k.instrs[static_cast<size_t>(v)].level == Level::Outer
               ? x[static_cast<size_t>(point / inner)]
               : x[static_cast<size_t>(point)];
  }
  static bool inside(const Instr& in, const std::vector<int64_t>& i) {
    for (const Bound& b : in.bounds) {
      const int64_t p = at(b.at, i);
      if (p < 0 || p >= b.extent) return false;
    }
    return true;
  }

  Number load(const Instr& in, const std::vector<int64_t>& i, int64_t point) {
    const Number fill = to_type({in.fvalue, in.ivalue}, in.dtype);
    if (!inside(in, i)) return fill;
    int64_t p = at(in.map, i);
    if (in.indirect >= 0) {
      const int64_t v = value(in.indirect, point).i, w = v;
      if (w < 0 || w >= in.indirect_extent) {
        if (run.status && run.status->code == 0)
          *run.status = {RunStatus::IndexError, in.site, v, in.indirect_extent};
        return fill;
      }
      p += w * in.indirect_stride;
    }
    return read_number(*buffers[static_cast<size_t>(in.buffer)], in.dtype, p);
  }

  Number eval(const Instr& in, const std::vector<int64_t>& i, int64_t point) {
    switch (in.kind) {
      case InstrKind::Load:
        return load(in, i, point);
      case InstrKind::Const:
        return to_type({in.fvalue, in.ivalue}, in.dtype);
      case InstrKind::Arg:
        return convert({run.args[in.slot], 0}, DType::Float64, in.dtype);
      case InstrKind::Index:
        return {0, at(in.map, i)};
      case InstrKind::InBounds:
        return {0, inside(in, i)};
      case InstrKind::Random: {
        const int64_t n = at(in.map, i);
        const uint64_t base = run.offsets[in.slot] + static_cast<uint64_t>(in.ivalue);
        return {0, static_cast<int32_t>(
                       philox(base + static_cast<uint64_t>(n / 4), run.seeds[in.slot]).v[n % 4])};
      }
      default:
        break;
    }
    Number x[3];
    for (int a = 0; a < 3; ++a)
      if (in.arg[a] >= 0) x[a] = value(in.arg[a], point);
    return compute(in.op, k.instrs[static_cast<size_t>(in.arg[in.op == Op::Where ? 1 : 0])].dtype,
                   in.dtype, x[0], x[1], x[2]);
  }

  Number reduce(const Instr& in, int64_t o) const {
    const DType t = k.instrs[static_cast<size_t>(in.arg[0])].dtype;
    const bool fl = is_float(t);
    Number acc, best;
    if (in.op == Op::Prod) acc = {1, 1};
    int64_t where = -1;
    for (int64_t c = 0; c < inner; ++c) {
      const Number v = value(in.arg[0], o * inner + c);
      if (in.op == Op::Sum)
        acc = {acc.f + v.f,
               static_cast<int64_t>(static_cast<uint64_t>(acc.i) + static_cast<uint64_t>(v.i))};
      if (in.op == Op::Prod)
        acc = {acc.f * v.f,
               static_cast<int64_t>(static_cast<uint64_t>(acc.i) * static_cast<uint64_t>(v.i))};
      const bool max = in.op == Op::Max || in.op == Op::ArgMax;
      bool better = where < 0;
      if (fl)
        better = better || (max ? v.f > best.f : v.f < best.f) || (v.f != v.f && best.f == best.f);
      else
        better = better || (max ? v.i > best.i : v.i < best.i);
      if (better) {
        best = v;
        where = c;
      }
    }
    if (in.op == Op::ArgMax || in.op == Op::ArgMin) return {0, where};
    if (in.op == Op::Max || in.op == Op::Min) return best;
    if (is_float(in.dtype) && !fl) acc.f = static_cast<double>(acc.i);
    return to_type(acc, in.dtype);
  }
};

}  // namespace

void interpret(const KernelSpec& k, std::vector<Bytes*> buffers, const RunArgs& run) {
  Interpreter it{k, buffers, run, {}, k.outer_size(), k.inner_size()};
  std::vector<int64_t> i(static_cast<size_t>(k.n_axes()));
  std::vector<char> live(k.instrs.size(),
                         0);  // what nobody stores is not computed: it raises no index error
  for (const Store& s : k.stores) live[static_cast<size_t>(s.value)] = 1;
  for (size_t n = k.instrs.size(); n-- > 0;) {
    if (!live[n]) continue;
    for (int a : k.instrs[n].arg)
      if (a >= 0) live[static_cast<size_t>(a)] = 1;
    if (k.instrs[n].indirect >= 0) live[static_cast<size_t>(k.instrs[n].indirect)] = 1;
  }
  for (const Instr& in : k.instrs) {
    if (!live[it.values.size()]) {
      it.values.emplace_back();
      continue;
    }
    const bool outer = in.level == Level::Outer;
    std::vector<Number> v(static_cast<size_t>(outer ? it.outer : it.outer * it.inner));
    it.values.emplace_back();
    for (int64_t p = 0; p < static_cast<int64_t>(v.size()); ++p) {
      const int64_t point = outer ? p * it.inner : p;
      it.coordinates(point, i);
      v[static_cast<size_t>(p)] =
          in.kind == InstrKind::Reduce ? it.reduce(in, p) : it.eval(in, i, point);
    }
    it.values.back() = std::move(v);
  }
  for (const Store& s : k.stores) {
    if (s.predicated && run.status && run.status->code) continue;
    const Instr& in = k.instrs[static_cast<size_t>(s.value)];
    const bool outer = in.level == Level::Outer;
    const auto& v = it.values[static_cast<size_t>(s.value)];
    for (int64_t p = 0; p < static_cast<int64_t>(v.size()); ++p) {
      it.coordinates(outer ? p * it.inner : p, i);
      write_number(*buffers[static_cast<size_t>(s.buffer)], in.dtype, Interpreter::at(s.map, i),
                   v[static_cast<size_t>(p)]);
    }
  }
}

}  // namespace ingot::test
