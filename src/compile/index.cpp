#include "compile/index.h"

#include <algorithm>

namespace ingot {

Space Space::of(const Dims& shape, uint32_t inner_mask) {
  Space s;
  int64_t flat = 1, sub[2] = {1, 1};
  for (int d = shape.size() - 1; d >= 0; --d) {
    bool inner = inner_mask >> d & 1;
    if (shape[d] != 1) s.axes.insert(s.axes.begin(), SpaceAxis{shape[d], inner, flat, sub[inner]});
    flat *= shape[d];
    sub[inner] *= shape[d];
  }
  return s;
}

void Space::split(int k, int64_t n) {
  SpaceAxis a = axes[k];
  axes[k] = SpaceAxis{a.extent / n, a.inner, a.flat * n, a.sub * n};
  axes.insert(axes.begin() + k + 1, SpaceAxis{n, a.inner, a.flat, a.sub});
}

Lin Space::flat() const {
  Lin l;
  for (int k = 0; k < size(); ++k) l.c[k] = axes[k].flat;
  return l;
}

Lin Space::outer() const {
  Lin l;
  for (int k = 0; k < size(); ++k)
    if (!axes[k].inner) l.c[k] = axes[k].sub;
  return l;
}

void range_of(const Space& s, const Lin& l, int64_t& lo, int64_t& hi) {
  lo = hi = l.off;
  for (int k = 0; k <= kMaxAxes; ++k) {
    if (!l.c[k]) continue;
    int64_t reach = l.c[k] * (s.extent(k) - 1);
    (reach < 0 ? lo : hi) += reach;
  }
}

Lin flatten(const Index& idx, const Dims& shape) { return dot_index(idx, row_major(shape)); }

Lin dot_index(const Index& idx, const Dims& stride) {
  Lin l;
  for (int d = 0; d < stride.size(); ++d) {
    l.off += idx[d].off * stride[d];
    for (int k = 0; k <= kMaxAxes; ++k) l.c[k] += idx[d].c[k] * stride[d];
  }
  return l;
}

namespace {

// l = q * n + r with 0 <= r < n for every point of the space; or says which axis crosses the
// boundary.
Fitting divide(const Space& s, const Lin& l, int64_t n, Lin& q, Lin& r) {
  q = r = Lin{};
  if (n <= 0) return {};  // an empty value: never read
  q.off = l.off >= 0 ? l.off / n : -((-l.off + n - 1) / n);
  r.off = l.off - q.off * n;
  for (int k = 0; k <= kMaxAxes; ++k) {
    if (!l.c[k]) continue;
    (l.c[k] % n == 0 ? q.c[k] : r.c[k]) = l.c[k] % n == 0 ? l.c[k] / n : l.c[k];
  }
  int64_t lo, hi;
  range_of(s, r, lo, hi);
  if (lo >= 0 && hi < n) return {};
  for (int k = 0; k < s.size(); ++k) {
    int64_t c = r.c[k];
    if (c <= 0 || n % c) continue;
    int64_t part = n / c;
    if (part < s.extent(k) && s.extent(k) % part == 0 && part > 1) return {Fit::Split, k, part, -1};
  }
  return {Fit::Fail, -1, 0, -1};
}

// Positions in the dims [b, e) of shape of a linear position inside their product.
Fitting unflatten_part(const Space& s, Lin flat, const Dims& shape, int b, int e, Index& out) {
  int64_t inside = 1;
  for (int d = b; d < e; ++d) inside *= shape[d];
  for (int d = e - 1; d >= b; --d) {
    inside /= std::max<int64_t>(shape[d], 1);
    if (inside == 1) {  // the outermost dim that counts takes what is left
      out[d] = flat;
      for (int r = d - 1; r >= b; --r) out[r] = Lin{};
      return {};
    }
    if (shape[d] == 1) {
      out[d] = Lin{};
      continue;
    }
    Lin q;
    Fitting f = divide(s, flat, shape[d], q, out[d]);
    if (f.fit != Fit::Ok) return f;
    flat = q;
  }
  return {};
}

}  // namespace

Fitting unflatten(const Space& s, const Lin& flat, const Dims& shape, Index& out) {
  out.assign(shape.size(), Lin{});
  return unflatten_part(s, flat, shape, 0, shape.size(), out);
}

namespace {

// Reshape: group the dims of both sides into runs of equal size; a run of one dim on each side
// passes straight.
Fitting through_reshape(const Graph& g, int v, const Space& s, Index& idx) {
  const Dims& to = g.vals[v].shape;
  const Dims& from = g.vals[g.vals[v].in[0]].shape;
  Index res(from.size());
  int i = 0, o = 0;
  while (i < from.size() || o < to.size()) {
    int ib = i, ob = o;
    int64_t pi = 1, po = 1;
    if (i < from.size()) pi *= from[i++];
    if (o < to.size()) po *= to[o++];
    while (pi != po) {
      if (pi < po && i < from.size())
        pi *= from[i++];
      else if (o < to.size())
        po *= to[o++];
      else if (i < from.size())
        pi *= from[i++];
      else
        break;
    }
    Lin flat;
    int64_t stride = 1;
    for (int d = o - 1; d >= ob; --d) {
      for (int k = 0; k <= kMaxAxes; ++k) flat.c[k] += idx[d].c[k] * stride;
      flat.off += idx[d].off * stride;
      stride *= to[d];
    }
    Fitting f = unflatten_part(s, flat, from, ib, i, res);
    if (f.fit != Fit::Ok) {
      f.val = v;
      return f;
    }
  }
  idx = std::move(res);
  return {};
}

}  // namespace

Fitting through(const Graph& g, int v, const Space& s, Index& idx, std::vector<Limit>& limits) {
  const Val& val = g.vals[v];
  const Dims& from = g.vals[val.in[0]].shape;
  switch (val.op) {
    case Op::Alias:
    case Op::Fence:
      return {};
    case Op::Reshape:
      return through_reshape(g, v, s, idx);
    case Op::Permute: {
      Index res(idx.size());
      for (size_t i = 0; i < idx.size(); ++i)
        res[val.attrs.as<PermuteAttrs>().order[static_cast<int>(i)]] = idx[i];
      idx = std::move(res);
      return {};
    }
    case Op::Expand:
      for (int d = 0; d < from.size(); ++d)
        if (from[d] == 1) idx[d] = Lin{};
      return {};
    case Op::Slice: {
      const auto& [start, step] = val.attrs.as<SliceAttrs>();
      for (int d = 0; d < from.size(); ++d) {
        for (int64_t& c : idx[d].c) c *= step[d];
        idx[d].off = idx[d].off * step[d] + start[d];
      }
      return {};
    }
    case Op::Window: {
      const auto& [stride, dilation] = val.attrs.as<WindowAttrs>();
      const int n = stride.size(), lead = from.size() - n;
      Index res(from.size());
      for (int d = 0; d < lead; ++d) res[d] = idx[d];
      for (int d = 0; d < n; ++d) {
        const Lin &o = idx[lead + d], &k = idx[lead + n + d];
        Lin& at = res[lead + d];
        at.off = o.off * stride[d] + k.off * dilation[d];
        for (int c = 0; c <= kMaxAxes; ++c) at.c[c] = o.c[c] * stride[d] + k.c[c] * dilation[d];
      }
      idx = std::move(res);
      return {};
    }
    case Op::Pad: {
      const Dims& front = val.attrs.as<PadAttrs>().front;
      for (int d = 0; d < from.size(); ++d) {
        idx[d].off -= front[d];
        int64_t lo, hi;
        range_of(s, idx[d], lo, hi);
        if (lo >= 0 && hi < from[d]) continue;
        if (idx[d].c[kIndirect])
          return {Fit::Fail, -1, 0, v};  // a bound is over axes, not over gathered indices
        limits.push_back({idx[d], from[d]});
      }
      return {};
    }
    default:
      return {Fit::Fail, -1, 0, v};
  }
}

Index broadcast_index(const Index& idx, const Dims& shape) {
  Index res(shape.size());
  int shift = static_cast<int>(idx.size()) - shape.size();
  for (int d = 0; d < shape.size(); ++d)
    if (shape[d] != 1) res[d] = idx[d + shift];
  return res;
}

}  // namespace ingot
