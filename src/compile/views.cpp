// Views become index maps. Where none fits, the view is carried out as a copy (and `explain` says
// so); where a library result is only looked at through a permutation, it is written in that order
// in the first place.
#include <algorithm>

#include "compile/group.h"

namespace ingot {
namespace {

// Walks from operand u down to what it is a view of, over the given space; positions end up linear
// in the buffer.
Fitting walk(const Graph& g, int u, const Space& s, Index idx, int& producer, Lin& at,
             bool& padded) {
  std::vector<Limit> limits;
  while (g.vals[u].view()) {
    if (g.vals[u].op == Op::Reshape) {  // reshapes down to a buffer need no division
      int p = u;
      while (g.vals[p].view() && (g.vals[p].op == Op::Reshape || g.vals[p].op == Op::Alias))
        p = g.vals[p].in[0];
      const Val& base = g.vals[p];
      if (!base.view() && (base.stride.empty() || base.stride == row_major(base.shape))) {
        at = flatten(idx, g.vals[u].shape);
        producer = p;
        padded = !limits.empty();
        return {};
      }
    }
    Fitting f = through(g, u, s, idx, limits);
    if (f.fit != Fit::Ok) return f;
    u = g.vals[u].in[0];
  }
  producer = u;
  at = dot_index(idx, g.vals[u].stride.empty() ? row_major(g.vals[u].shape) : g.vals[u].stride);
  padded = !limits.empty();
  return {};
}

// A buffer before reshape r: its input is copied, or given a buffer.
void give_buffer(Graph& g, int r) {
  int u = g.vals[r].op == Op::Reshape ? g.vals[r].in[0] : r;
  if (g.vals[u].view())
    g.vals[u].copied = true;
  else
    g.vals[u].material = true;
}

// The result of a matmul that is only read through one permutation before a reshape is stored
// permuted.
bool choose_layout(Graph& g, int r) {
  if (g.vals[r].op != Op::Reshape) return false;
  int perm = g.vals[r].in[0];
  if (g.vals[perm].op != Op::Permute || g.vals[perm].copied) return false;
  Val& p = g.vals[g.vals[perm].in[0]];
  if ((p.op != Op::Matmul && p.op != Op::Attention) || p.output || p.history || !p.stride.empty() ||
      !p.epilogues.within({Epilogue::Bias, Epilogue::Residual, Epilogue::Relu}))
    return false;
  const Dims& order = g.vals[perm].attrs.as<PermuteAttrs>().order;
  Dims packed = row_major(g.vals[perm].shape);
  Dims stride = Dims::filled(order.size(), 0);
  for (int i = 0; i < order.size(); ++i) stride[static_cast<int>(order[i])] = packed[i];
  p.stride = stride;
  return true;
}

// Strides of dims of size 1 do not matter.
bool is_row_major(const Dims& stride, const Dims& shape) {
  Dims packed = row_major(shape);
  for (int d = 0; d < shape.size(); ++d)
    if (shape[d] != 1 && stride[d] != packed[d]) return false;
  return true;
}

// What recurrent steps read: steps and rows may be anywhere, but each row is dense.
bool dense_steps(const Dims& stride, const Dims& shape) {
  if (shape.size() < 3) return is_row_major(stride, shape);
  return (stride[2] == 1 || shape[2] == 1) && stride[0] >= 0 && stride[1] >= 0;
}

bool settle_library(Graph& g, int v) {
  bool laid_out = false;
  for (int k = 0; k < g.vals[v].n_in; ++k) {
    int u = g.vals[v].in[k];
    for (int tries = 0; tries < 8; ++tries) {
      int producer, at = -1;
      Dims stride;
      int64_t offset;
      bool ok = strided_view(g, u, producer, stride, offset, &at);
      if (ok && g.vals[producer].source()) ok = false;
      if (ok && g.vals[v].op == Op::ToDevice)
        ok = offset == 0 && is_row_major(stride, g.vals[u].shape) &&
             g.vals[producer].numel() == g.vals[u].numel();
      if (ok && is_recurrent(g.vals[v].op)) ok = dense_steps(stride, g.vals[u].shape);
      if (ok && g.vals[v].op == Op::Cat) ok = is_row_major(stride, g.vals[u].shape);
      if (ok) break;
      if (at >= 0 && choose_layout(g, at)) {
        laid_out = true;
        continue;
      }
      if (at >= 0 && g.vals[at].op == Op::Reshape && g.vals[g.vals[at].in[0]].view() && at != u)
        give_buffer(g, at);
      else
        g.vals[u].copied = true;
    }
  }
  return laid_out;
}

// What Assign and SliceAssign begin from is a whole buffer.
void settle_base(Graph& g, int v) {
  Edge e = edge_of(g, v, 0);
  if (!e.direct || g.vals[e.producer].source()) g.vals[g.vals[v].in[0]].copied = true;
}

void settle_generated(Graph& g, int v) {
  const Val& val = g.vals[v];
  if (val.op == Op::Assign || val.op == Op::SliceAssign) settle_base(g, v);
  for (int k = 0; k < val.n_in; ++k) {
    int u = val.in[k];
    if (!g.vals[u].view() && !val.copied) continue;
    const Dims& shape = g.vals[u].shape;
    for (int tries = 0; tries < 3 * kMaxAxes; ++tries) {
      Space s = Space::of(shape, 0);
      Fitting f;
      for (;;) {
        Index idx;
        f = unflatten(s, s.flat(), shape, idx);
        int producer;
        Lin at;
        bool padded;
        if (f.fit == Fit::Ok) f = walk(g, u, s, std::move(idx), producer, at, padded);
        if (f.fit != Fit::Split || s.size() >= kMaxAxes - 2) break;
        s.split(f.axis, f.inner);
      }
      if (f.fit == Fit::Ok) break;
      give_buffer(g, f.val >= 0 ? f.val : u);
      if (!g.vals[u].view()) break;
    }
  }
}

}  // namespace

bool strided_view(const Graph& g, int u, int& producer, Dims& stride, int64_t& offset,
                  int* failed_at) {
  const Dims& shape = g.vals[u].shape;
  Space s = Space::of(shape, 0);
  Lin at;
  bool padded = false;
  Fitting f;
  if (failed_at) *failed_at = -1;
  for (;;) {
    Index idx;
    f = unflatten(s, s.flat(), shape, idx);
    if (f.fit == Fit::Ok) f = walk(g, u, s, std::move(idx), producer, at, padded);
    if (failed_at && f.val >= 0) *failed_at = f.val;  // the last reshape that asked for a division
    if (f.fit != Fit::Split || s.size() >= kMaxAxes - 1) break;
    s.split(f.axis, f.inner);
  }
  if (f.fit != Fit::Ok || padded) return false;
  // Axes that were split must step through memory as one again.
  stride = Dims::filled(shape.size(), 0);
  int k = 0;
  for (int d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    int64_t covered = s.axes[k].extent;
    while (covered < shape[d]) {
      if (at.c[k] != at.c[k + 1] * s.axes[k + 1].extent) return false;
      covered *= s.axes[++k].extent;
    }
    stride[d] = at.c[k++];
  }
  offset = at.off;
  return true;
}

void settle_views(Graph& g) {
  int n = static_cast<int>(g.vals.size());
  bool again = true;
  while (again) {  // a layout chosen late changes what earlier readers see
    again = false;
    for (int v = 0; v < n; ++v) {
      if (g.users[v] == 0 || g.vals[v].view() || g.vals[v].numel() == 0) continue;
      if (is_library(g.vals[v].op) && g.vals[v].op != Op::SliceAssign)
        again = settle_library(g, v) || again;
      else if (g.vals[v].n_in)
        settle_generated(g, v);
    }
  }
}

}  // namespace ingot
