// See spec_interpreter.h.
#include "support/spec_interpreter.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "codegen/philox.h"
#include "support/oracle.h"

namespace ingot::test {
namespace {

uint16_t half_bits(DType t, double x) {
  float f = static_cast<float>(oracle::round_to(t, x));
  uint32_t u = std::bit_cast<uint32_t>(f);
  if (t == DType::BFloat16) return std::isnan(f) ? 0x7fff : static_cast<uint16_t>(u >> 16);
  uint16_t sign = static_cast<uint16_t>((u >> 16) & 0x8000);
  if (std::isnan(f)) return 0x7fff;
  if (std::isinf(f)) return sign | 0x7c00;
  double a = std::fabs(static_cast<double>(f));
  if (a < std::ldexp(1.0, -14)) return sign | static_cast<uint16_t>(std::ldexp(a, 24));
  int e = 0;
  double m = std::frexp(a, &e);  // a = m * 2^e, m in [0.5, 1)
  return sign |
         static_cast<uint16_t>(((e + 14) << 10) | (static_cast<int>(std::ldexp(m, 11)) & 1023));
}

template <class T>
void put(void* data, int64_t at, T x) {
  std::memcpy(static_cast<char*>(data) + at * static_cast<int64_t>(sizeof x), &x, sizeof x);
}

Element rounded(DType t, Element e) {
  if (is_float(t)) return {oracle::round_to(t, e.f), 0};
  return {0, oracle::wrap_to(t, e.i)};
}

Element cast(DType from, DType to, Element e) {
  Element r;
  if (is_float(to))
    r.f = is_float(from) ? e.f : static_cast<double>(e.i);
  else if (!is_float(from))
    r.i = e.i;
  else if (to == DType::Bool)
    r.i = e.f != 0;
  else
    r.i = std::isfinite(e.f) && std::fabs(e.f) < 9e18 ? static_cast<int64_t>(e.f) : 0;
  return rounded(to, r);
}

class Machine {
 public:
  Machine(const KernelSpec& k, void* const* buffers, const RunArgs& run)
      : k_(k), buffers_(buffers), run_(run) {
    for (size_t b = 0; b < k.buffers.size(); ++b) {
      const char* p = static_cast<const char*>(buffers[b]);
      before_.emplace_back(
          p, p + k.buffers[b].numel * static_cast<int64_t>(size_of(k.buffers[b].dtype)));
    }
    inner_ = k.inner_size();
    at_.assign(k.extent.size(), 0);
  }

  void outer_point(int64_t o) {
    set_axes(o, 0, k_.n_outer);
    values_.assign(k_.instrs.size(), {});
    for (size_t i = 0; i < k_.instrs.size(); ++i) {
      const Instr& in = k_.instrs[i];
      if (in.kind == InstrKind::Reduce) {
        values_[i] = {reduce(in)};
        continue;
      }
      int64_t n = in.level == Level::Elem ? inner_ : 1;
      for (int64_t r = 0; r < n; ++r) {
        set_axes(r, k_.n_outer, k_.n_axes());
        values_[i].push_back(rounded(in.dtype, value(in, r)));
      }
    }
    for (const Store& s : k_.stores) store(s);
  }

 private:
  void set_axes(int64_t linear, int begin, int end) {
    for (int x = end - 1; x >= begin; --x) {
      at_[x] = linear % k_.extent[x];
      linear /= k_.extent[x];
    }
  }
  int64_t affine(const Affine& a) const {
    int64_t p = a.offset;
    for (size_t x = 0; x < at_.size(); ++x) p += a.stride[x] * at_[x];
    return p;
  }
  bool inside(const Instr& in) const {
    for (const Bound& b : in.bounds)
      if (int64_t p = affine(b.at); p < 0 || p >= b.extent) return false;
    return true;
  }
  Element get(int i, int64_t r) const {
    const auto& v = values_[i];
    return v.size() == 1 ? v[0] : v[static_cast<size_t>(r)];
  }
  DType type(int i) const { return k_.instrs[i].dtype; }

  Element load(const Instr& in, int64_t r) {
    Element fill{in.fvalue, in.ivalue};
    if (!inside(in)) return fill;
    int64_t p = affine(in.map);
    if (in.indirect >= 0) {
      int64_t v = get(in.indirect, r).i, n = v;
      if (n < 0 || n >= in.indirect_extent) {
        if (run_.status->code == 0)
          *run_.status = {RunStatus::IndexError, in.site, v, in.indirect_extent};
        return fill;
      }
      p += n * in.indirect_stride;
    }
    const BufferSpec& b = k_.buffers[in.buffer];
    if (p < 0 || p >= b.numel) throw std::runtime_error("spec: a load leaves its buffer");
    return cast(b.dtype, in.dtype, read_element(b.dtype, before_[in.buffer].data(), p));
  }

  Element random(const Instr& in) const {
    int64_t n = affine(in.map);
    uint64_t counter =
        run_.offsets[in.slot] + static_cast<uint64_t>(in.ivalue) + static_cast<uint64_t>(n / 4);
    return {0, static_cast<int32_t>(philox(counter, run_.seeds[in.slot]).v[n % 4])};
  }

  Element compute(const Instr& in, int64_t r) const {
    Element a = get(in.arg[0], r);
    DType t = type(in.arg[0]);
    if (in.op == Op::Cast) return cast(t, in.dtype, a);
    if (in.op == Op::Where) {
      int pick = a.i != 0 ? in.arg[1] : in.arg[2];
      return cast(type(pick), in.dtype, get(pick, r));
    }
    if (in.op == Op::Uniform) {
      auto bits = static_cast<uint32_t>(a.i);
      return {in.dtype == DType::Float64 ? bits * 0x1p-32 : (bits >> 8) * 0x1p-24, 0};
    }
    Element b = in.arg[1] >= 0 ? cast(type(in.arg[1]), t, get(in.arg[1], r)) : Element{};
    if (in.dtype == DType::Bool && info(in.op).rule == TypeRule::Bool)
      return {0, is_float(t) ? oracle::bool_element(in.op, a.f, b.f)
                             : oracle::int_element(in.op, t, a.i, b.i)};
    if (is_float(t)) return {oracle::float_element(in.op, a.f, b.f), 0};
    return {0, oracle::int_element(in.op, t, a.i, b.i)};
  }

  Element value(const Instr& in, int64_t r) {
    switch (in.kind) {
      case InstrKind::Load:
        return load(in, r);
      case InstrKind::Const:
        return {in.fvalue, in.ivalue};
      case InstrKind::Arg:
        return cast(DType::Float64, in.dtype, {run_.args[in.slot], 0});
      case InstrKind::Index:
        return {0, affine(in.map)};
      case InstrKind::InBounds:
        return {0, inside(in)};
      case InstrKind::Random:
        return random(in);
      default:
        return compute(in, r);
    }
  }

  Element reduce(const Instr& in) const {
    DType t = type(in.arg[0]);
    bool position = in.op == Op::ArgMax || in.op == Op::ArgMin,
         up = in.op == Op::Max || in.op == Op::ArgMax;
    Element best = get(in.arg[0], 0);
    int64_t where = 0;
    Element sum{in.op == Op::Prod ? 1.0 : 0.0, in.op == Op::Prod};
    for (int64_t r = 0; r < inner_; ++r) {
      Element e = get(in.arg[0], r);
      if (in.op == Op::Sum)
        sum = {sum.f + e.f,
               static_cast<int64_t>(static_cast<uint64_t>(sum.i) + static_cast<uint64_t>(e.i))};
      if (in.op == Op::Prod)
        sum = {sum.f * e.f,
               static_cast<int64_t>(static_cast<uint64_t>(sum.i) * static_cast<uint64_t>(e.i))};
      bool better = is_float(t) ? (up ? e.f > best.f : e.f < best.f) ||
                                      (std::isnan(e.f) && !std::isnan(best.f))
                                : (up ? e.i > best.i : e.i < best.i);
      if (is_float(t) && std::isnan(best.f)) better = false;
      if (!better) continue;
      best = e;
      where = r;
    }
    if (position) return {0, where};
    return rounded(in.dtype, cast(t, in.dtype, in.op == Op::Sum || in.op == Op::Prod ? sum : best));
  }

  void store(const Store& s) {
    if (s.predicated && run_.status->code != 0) return;
    const BufferSpec& b = k_.buffers[s.buffer];
    int64_t n = k_.instrs[s.value].level == Level::Elem ? inner_ : 1;
    for (int64_t r = 0; r < n; ++r) {
      set_axes(r, k_.n_outer, k_.n_axes());
      int64_t p = affine(s.map);
      if (p < 0 || p >= b.numel) throw std::runtime_error("spec: a store leaves its buffer");
      write_element(b.dtype, buffers_[s.buffer], p, cast(type(s.value), b.dtype, get(s.value, r)));
    }
  }

  const KernelSpec& k_;
  void* const* buffers_;
  const RunArgs& run_;
  std::vector<std::vector<char>> before_;
  std::vector<std::vector<Element>> values_;
  std::vector<int64_t> at_;
  int64_t inner_ = 1;
};

}  // namespace

void write_element(DType t, void* data, int64_t at, Element e) {
  switch (t) {
    case DType::Float64:
      return put(data, at, e.f);
    case DType::Float32:
      return put(data, at, static_cast<float>(e.f));
    case DType::Float16:
    case DType::BFloat16:
      return put(data, at, half_bits(t, e.f));
    case DType::Int64:
      return put(data, at, e.i);
    case DType::Int32:
      return put(data, at, static_cast<int32_t>(e.i));
    case DType::Int16:
      return put(data, at, static_cast<int16_t>(e.i));
    case DType::Int8:
      return put(data, at, static_cast<int8_t>(e.i));
    case DType::UInt8:
      return put(data, at, static_cast<uint8_t>(e.i));
    case DType::Bool:
      return put(data, at, static_cast<uint8_t>(e.i != 0));
  }
}

Element read_element(DType t, const void* data, int64_t at) {
  auto* p = static_cast<const char*>(data) + at * static_cast<int64_t>(size_of(t));
  oracle::Value v = oracle::read_memory(t, Dims{1}, p);
  return is_float(t) ? Element{v.f[0], 0} : Element{0, v.i[0]};
}

void interpret(const KernelSpec& spec, void* const* buffers, const RunArgs& run) {
  Machine m(spec, buffers, run);
  for (int64_t o = 0; o < spec.outer_size(); ++o) m.outer_point(o);
}

}  // namespace ingot::test
