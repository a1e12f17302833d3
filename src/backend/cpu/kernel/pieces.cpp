// A bound that depends on one axis only is true on one range of it and false before and
// after. Cut there, the pieces of a Map kernel need no test: padding, cat() and the
// gradients of slices become plain loads. Axes that are contiguous in a piece are merged, so
// that rows are as long as possible.
#include "backend/cpu/kernel/pieces.h"

#include <algorithm>
#include <functional>

namespace ingot::cpu {

namespace {
constexpr size_t kMostPieces = 16;

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

struct Range {
  int64_t lo, hi;
};

/// The smallest and largest position of the bound, over all axes but one.
Range reach(const KernelSpec& k, const Bound& b, size_t without) {
  Range r{b.at.offset, b.at.offset};
  for (size_t a = 0; a < k.extent.size(); ++a)
    if (a != without) (b.at.stride[a] < 0 ? r.lo : r.hi) += b.at.stride[a] * (k.extent[a] - 1);
  return r;
}

/// Where along `axis` the bound holds, if it holds or fails for all points of the other axes
/// together.
bool decided_by(const KernelSpec& k, const Bound& b, size_t axis, Range& in) {
  const auto [least, most] = reach(k, b, axis);
  const int64_t s = b.at.stride[axis], n = k.extent[axis];
  if (s <= 0) return false;
  // The first i with s i >= v.
  auto first_from = [s, n](int64_t v) { return std::clamp<int64_t>(-floor_div(-v, s), 0, n); };
  // Where it begins to hold (somewhere, everywhere), and where that ends.
  const int64_t some = first_from(-most), all = first_from(-least);
  const int64_t not_all = first_from(b.extent - most), none = first_from(b.extent - least);
  in = {all, not_all};
  return some == all && not_all == none;
}

/// The axis that decides the bound, or -1.
int deciding_axis(const KernelSpec& k, const Bound& b, int64_t least_row, Range& in) {
  for (size_t a = 0; a < k.extent.size(); ++a)
    if (decided_by(k, b, a, in)) {
      const bool fastest = a + 1 == k.extent.size();
      auto fits = [&](int64_t length) { return length <= 0 || length >= least_row; };
      if (!fastest || (fits(in.lo) && fits(in.hi - in.lo) && fits(k.extent[a] - in.hi)))
        return static_cast<int>(a);
    }
  return -1;
}

void for_each_affine(KernelSpec& k, const std::function<void(Affine&)>& fn) {
  for (Instr& i : k.instrs) {
    if (!i.map.stride.empty()) fn(i.map);
    for (Bound& b : i.bounds) fn(b.at);
  }
  for (Store& s : k.stores) fn(s.map);
}

/// Takes decided bounds out of an instruction; a constant where one fails everywhere.
void decide(const KernelSpec& k, Instr& i) {
  bool fails = false;
  auto holds = [&](const Bound& b) {
    const Range at = reach(k, b, k.extent.size());
    fails |= at.hi < 0 || at.lo >= b.extent;
    return at.lo >= 0 && at.hi < b.extent;
  };
  const bool had = !i.bounds.empty();
  std::erase_if(i.bounds, holds);
  if (!had || (!fails && (i.kind == InstrKind::Load || !i.bounds.empty()))) return;
  Instr value;  // of kind Const
  value.dtype = i.dtype;
  value.level = i.level;
  value.fvalue = i.fvalue, value.ivalue = i.ivalue;
  if (i.kind == InstrKind::InBounds) value.ivalue = !fails;
  i = value;
}

void drop_axis(KernelSpec& k, size_t axis) {
  for_each_affine(
      k, [&](Affine& a) { a.stride.erase(a.stride.begin() + static_cast<ptrdiff_t>(axis)); });
  k.extent.erase(k.extent.begin() + static_cast<ptrdiff_t>(axis));
  --k.n_outer;
}

/// Drops axes of size 1 and merges neighbours that every access traverses as one.
void merge_axes(KernelSpec& k) {
  for (size_t a = k.extent.size(); a-- > 0 && k.extent.size() > 1;)
    if (k.extent[a] == 1) drop_axis(k, a);
  for (size_t a = k.extent.size() - 1; a-- > 0;) {
    bool one = true;
    for_each_affine(k, [&](Affine& f) { one &= f.stride[a] == f.stride[a + 1] * k.extent[a + 1]; });
    if (!one) continue;
    k.extent[a + 1] *= k.extent[a];
    drop_axis(k, a);
  }
}

}  // namespace

std::vector<KernelSpec> pieces_of(const KernelSpec& spec, int64_t least_work, int64_t least_row) {
  std::vector<KernelSpec> pieces{spec};
  if (spec.n_inner() != 0 || spec.outer_size() < least_work) return pieces;
  std::vector<std::vector<int64_t>> cuts(spec.extent.size());
  size_t count = 1;
  for (const Instr& i : spec.instrs) {
    for (const Bound& b : i.bounds) {
      Range in{};
      const int axis = deciding_axis(spec, b, least_row, in);
      if (axis < 0) continue;
      std::vector<int64_t>& c = cuts[static_cast<size_t>(axis)];
      for (int64_t at : {in.lo, in.hi})
        if (at > 0 && at < spec.extent[static_cast<size_t>(axis)] &&
            std::find(c.begin(), c.end(), at) == c.end()) {
          count = count / (c.size() + 1) * (c.size() + 2);
          c.push_back(at);
        }
    }
  }
  if (count == 1 || count > kMostPieces) return pieces;
  for (size_t a = 0; a < cuts.size(); ++a) {
    if (cuts[a].empty()) continue;
    std::sort(cuts[a].begin(), cuts[a].end());
    cuts[a].push_back(spec.extent[a]);
    std::vector<KernelSpec> finer;
    for (const KernelSpec& piece : pieces) {
      int64_t lo = 0;
      for (int64_t hi : cuts[a]) {
        KernelSpec& k = finer.emplace_back(piece);
        k.extent[a] = hi - lo;
        for_each_affine(k, [&](Affine& f) { f.offset += f.stride[a] * lo; });
        lo = hi;
      }
    }
    pieces = std::move(finer);
  }
  for (KernelSpec& k : pieces) {
    for (Instr& i : k.instrs) decide(k, i);
    merge_axes(k);
    verify(k);
  }
  return pieces;
}

}  // namespace ingot::cpu
