// Questions about KernelSpecs that every backend and the compiler ask: sizes, kinds, equal
// structure, a printed form for people and a verifier that catches a wrong kernel before it runs.
#include "codegen/kernel_spec.h"

#include <cstdio>

#include "ingot/error.h"

namespace ingot {

int64_t KernelSpec::outer_size() const {
  int64_t n = 1;
  for (int a = 0; a < n_outer; ++a) n *= extent[a];
  return n;
}

int64_t KernelSpec::inner_size() const {
  int64_t n = 1;
  for (int a = n_outer; a < n_axes(); ++a) n *= extent[a];
  return n;
}

bool KernelSpec::has_reduce() const {
  for (const Instr& i : instrs)
    if (i.kind == InstrKind::Reduce) return true;
  return false;
}

bool KernelSpec::is_row() const {
  std::vector<char> from_reduce(instrs.size(), 0);
  for (size_t n = 0; n < instrs.size(); ++n) {
    const Instr& i = instrs[n];
    bool f = i.kind == InstrKind::Reduce;
    for (int a : i.arg) f = f || (a >= 0 && i.kind != InstrKind::Reduce && from_reduce[a]);
    if (i.indirect >= 0) f = f || from_reduce[i.indirect];
    from_reduce[n] = f;
    if (f && i.level == Level::Elem) return true;
    if (i.kind == InstrKind::Reduce && from_reduce[i.arg[0]]) return true;
  }
  for (const Store& s : stores)  // a reduce result written per element is a broadcast too
    if (from_reduce[s.value] && instrs[s.value].level == Level::Elem) return true;
  return false;
}

// --- Equal structure
// -------------------------------------------------------------------------------------------

static bool alike(int64_t a, int64_t b) { return a == b || ((a < 0 || a > 1) && (b < 0 || b > 1)); }

static bool alike(const Affine& a, const Affine& b) {
  if (a.stride.size() != b.stride.size()) return false;
  for (size_t k = 0; k < a.stride.size(); ++k)
    if (!alike(a.stride[k], b.stride[k])) return false;
  return true;
}

static bool alike(const Instr& a, const Instr& b) {
  if (a.kind != b.kind || a.op != b.op || a.dtype != b.dtype || a.level != b.level ||
      a.buffer != b.buffer || a.slot != b.slot || a.ivalue != b.ivalue ||
      a.indirect != b.indirect || a.bounds.size() != b.bounds.size())
    return false;
  if (!(a.fvalue == b.fvalue || (a.fvalue != a.fvalue && b.fvalue != b.fvalue))) return false;
  for (int k = 0; k < 3; ++k)
    if (a.arg[k] != b.arg[k]) return false;
  if (!alike(a.map, b.map)) return false;
  for (size_t k = 0; k < a.bounds.size(); ++k)
    if (!alike(a.bounds[k].at, b.bounds[k].at)) return false;
  return a.site == b.site;
}

bool same_structure(const KernelSpec& a, const KernelSpec& b) {
  if (a.n_axes() != b.n_axes() || a.n_outer != b.n_outer || a.buffers.size() != b.buffers.size() ||
      a.instrs.size() != b.instrs.size() || a.stores.size() != b.stores.size())
    return false;
  for (size_t k = 0; k < a.buffers.size(); ++k) {
    const BufferSpec &p = a.buffers[k], &q = b.buffers[k];
    if (p.dtype != q.dtype || p.written != q.written || p.may_alias != q.may_alias) return false;
  }
  for (size_t k = 0; k < a.instrs.size(); ++k)
    if (!alike(a.instrs[k], b.instrs[k])) return false;
  for (size_t k = 0; k < a.stores.size(); ++k) {
    const Store &p = a.stores[k], &q = b.stores[k];
    if (p.value != q.value || p.buffer != q.buffer || p.predicated != q.predicated ||
        p.over != q.over || !alike(p.map, q.map))
      return false;
  }
  return true;
}

// --- Printing
// --------------------------------------------------------------------------------------------------

static std::string text(const Affine& m) {
  std::string s = "[" + std::to_string(m.offset);
  for (size_t k = 0; k < m.stride.size(); ++k)
    if (m.stride[k]) s += " + " + std::to_string(m.stride[k]) + "*i" + std::to_string(k);
  return s + "]";
}

static std::string number(double v) {
  char b[40];
  std::snprintf(b, sizeof b, "%.9g", v);
  return b;
}

static std::string text(const Instr& i) {
  auto v = [](int k) { return "%" + std::to_string(k); };
  std::string s;
  switch (i.kind) {
    case InstrKind::Load:
      s = "load b" + std::to_string(i.buffer) + text(i.map);
      break;
    case InstrKind::Const:
      s = "const " + (is_float(i.dtype) ? number(i.fvalue) : std::to_string(i.ivalue));
      break;
    case InstrKind::Arg:
      s = "arg " + std::to_string(i.slot);
      break;
    case InstrKind::Index:
      s = "index " + text(i.map);
      break;
    case InstrKind::InBounds:
      s = "inbounds";
      break;
    case InstrKind::Random:
      s = "random " + std::to_string(i.slot) + text(i.map) + " + " + std::to_string(i.ivalue);
      break;
    case InstrKind::Compute:
    case InstrKind::Reduce:
      s = (i.kind == InstrKind::Reduce ? "reduce " : "") + std::string(info(i.op).name);
      for (int a : i.arg)
        if (a >= 0) s += " " + v(a);
      break;
  }
  if (i.indirect >= 0)
    s += " + " + v(i.indirect) + "*" + std::to_string(i.indirect_stride) + " of " +
         std::to_string(i.indirect_extent);
  for (const Bound& b : i.bounds) s += " if 0<=" + text(b.at) + "<" + std::to_string(b.extent);
  if (i.kind == InstrKind::Load && !i.bounds.empty())
    s += " else " + (is_float(i.dtype) ? number(i.fvalue) : std::to_string(i.ivalue));
  return s + " : " + std::string(name_of(i.dtype)) + (i.level == Level::Outer ? " outer" : "");
}

std::string to_string(const KernelSpec& k) {
  std::string s = "kernel " + k.label + " (";
  for (int a = 0; a < k.n_axes(); ++a) {
    if (a)
      s += a == k.n_outer ? " | " : ", ";
    else if (k.n_outer == 0)
      s += "| ";
    s += std::to_string(k.extent[a]);
  }
  s += ")\n";
  for (size_t b = 0; b < k.buffers.size(); ++b)
    s += "  b" + std::to_string(b) + ": " + std::string(name_of(k.buffers[b].dtype)) + " x " +
         std::to_string(k.buffers[b].numel) + (k.buffers[b].written ? " written" : "") +
         (k.buffers[b].may_alias ? " aliased" : "") + "\n";
  for (size_t n = 0; n < k.instrs.size(); ++n)
    s += "  %" + std::to_string(n) + " = " + text(k.instrs[n]) + "\n";
  for (const Store& t : k.stores)
    s += "  b" + std::to_string(t.buffer) + text(t.map) + " = %" + std::to_string(t.value) +
         (t.predicated ? " if ok" : "") + "\n";
  return s;
}

int axis_of(const LibrarySpec& l) {
  switch (l.op) {
    case Op::Scatter:
      return l.attrs.as<ScatterAttrs>().axis;
    case Op::Scan:
      return l.attrs.as<ScanAttrs>().axis;
    case Op::Sort:
      return l.attrs.as<SortAttrs>().axis;
    default:
      return l.attrs.as<IndexAttrs>().axis;
  }
}

std::string to_string(Epilogues all) {
  static const char* const names[kEpilogues] = {"+bias", "+add",       "+relu",      "+gelu",
                                                "",      "+gelu_grad", "+relu_grad", "+bias_grad"};
  std::string s;
  for (int e = 0; e < kEpilogues; ++e)
    if (all.has(static_cast<Epilogue>(e))) s += names[e];
  return s;
}

std::string to_string(const LibrarySpec& l) {
  std::string s = std::string("library ") + info(l.op).name + to_string(l.epilogues);
  for (const OperandSpec& o : l.operands)
    s += " " + std::string(name_of(o.dtype)) + to_string(o.shape) + "/" + to_string(o.stride) +
         (o.offset ? "+" + std::to_string(o.offset) : "");
  if (!l.attrs.empty()) s += " " + l.attrs.text();
  if (l.accumulate) s += " accumulate";
  return s;
}

namespace {

struct Verifier {
  const KernelSpec& k;

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::Internal, "kernel", what + " in\n" + to_string(k));
  }
  void check(bool ok, const char* what, size_t n) const {
    if (!ok) fail(std::string(what) + " (instruction or store " + std::to_string(n) + ")");
  }
  /// Smallest and largest position the map reaches.
  void reach(const Affine& m, int64_t& lo, int64_t& hi) const {
    lo = hi = m.offset;
    for (int a = 0; a < k.n_axes(); ++a)
      (m.stride[a] < 0 ? lo : hi) += m.stride[a] * (k.extent[a] - 1);
  }
  void map(const Affine& m, Level level, size_t n) const {
    check(static_cast<int>(m.stride.size()) == k.n_axes(), "a map has not one stride per axis", n);
    if (level == Level::Outer)
      for (int a = k.n_outer; a < k.n_axes(); ++a)
        check(m.stride[a] == 0, "an outer map has an inner stride", n);
  }
  void instr(const Instr& i, size_t n) const {
    const int self = static_cast<int>(n);
    for (int a : i.arg) check(a < self, "an operand comes later", n);
    check(i.indirect < self, "an index comes later", n);
    if (i.kind == InstrKind::Load) {
      check(i.buffer >= 0 && i.buffer < static_cast<int>(k.buffers.size()), "no such buffer", n);
      check(k.buffers[i.buffer].dtype == i.dtype, "a load has another type than its buffer", n);
      int64_t lo, hi;
      map(i.map, i.level, n);
      reach(i.map, lo, hi);
      if (i.bounds.empty() && i.indirect < 0)
        check(lo >= 0 && hi < k.buffers[i.buffer].numel, "a load leaves its buffer", n);
    }
    if (i.kind == InstrKind::Index || i.kind == InstrKind::Random) map(i.map, i.level, n);
    for (const Bound& b : i.bounds) map(b.at, i.level, n);
    if (i.kind == InstrKind::Compute)
      check(is_elementwise(i.op) && i.arg[0] >= 0, "a compute is not elementwise", n);
    if (i.kind == InstrKind::Reduce)
      check(is_reduce(i.op) && i.arg[0] >= 0 && i.level == Level::Outer, "a reduce is malformed",
            n);
    if (i.level == Level::Outer && i.kind != InstrKind::Reduce)
      for (int a : i.arg)
        if (a >= 0)
          check(k.instrs[a].level == Level::Outer, "an outer value depends on an element", n);
    if (i.level == Level::Outer && i.indirect >= 0)
      check(k.instrs[i.indirect].level == Level::Outer, "an outer load is indexed by an element",
            n);
  }
};

}  // namespace

void verify(const KernelSpec& k) {
  Verifier v{k};
  if (k.n_axes() > kMaxAxes || k.n_outer < 0 || k.n_outer > k.n_axes()) v.fail("bad axes");
  for (int64_t e : k.extent)
    if (e <= 0) v.fail("an extent is not positive");
  for (size_t n = 0; n < k.instrs.size(); ++n) v.instr(k.instrs[n], n);
  for (size_t n = 0; n < k.stores.size(); ++n) {
    const Store& s = k.stores[n];
    v.check(s.value >= 0 && s.value < static_cast<int>(k.instrs.size()), "no such value to store",
            n);
    v.check(s.buffer >= 0 && s.buffer < static_cast<int>(k.buffers.size()),
            "no such buffer to store to", n);
    v.check(k.buffers[s.buffer].dtype == k.instrs[s.value].dtype,
            "a store has another type than its buffer", n);
    v.check(k.buffers[s.buffer].written, "a store goes to a buffer that is not marked written", n);
    v.map(s.map, k.instrs[s.value].level, n);
    int64_t lo, hi;
    v.reach(s.map, lo, hi);
    v.check(lo >= 0 && hi < k.buffers[s.buffer].numel, "a store leaves its buffer", n);
  }
}

}  // namespace ingot
