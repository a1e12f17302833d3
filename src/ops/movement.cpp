// Movement ops: index arithmetic that adds no work to a kernel. A view's cell names the base it was
// taken from, so that writing to it writes through. Where PyTorch copies (flip, and a reshape that
// strides cannot express) the result is recorded in the same way, but has no base. cat and repeat
// make new values.
#include <utility>

#include "ops/common.h"

namespace ingot {
namespace {

// Works out a -1.
Dims known_shape(const NodeRef& x, const Dims& shape, const SourceLoc& loc) {
  Dims out = shape;
  int free = -1;
  int64_t rest = 1;
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1 && free < 0) {
      free = i;
    } else if (shape[i] < 0) {
      fail(ErrorKind::Shape, "reshape", "shape " + to_string(shape) + " has a negative size", loc,
           "at most one size may be -1, the others must be 0 or more");
    } else {
      rest *= shape[i];
    }
  }
  if (free < 0) return out;
  if (rest == 0)
    fail(ErrorKind::Shape, "reshape",
         "in " + to_string(shape) + " the -1 could be anything: " + describe(*x), loc,
         "write the size in its place");
  if (x->numel() % rest != 0)
    fail(ErrorKind::Shape, "reshape",
         describe(*x) + " has " + std::to_string(x->numel()) + " elements, which " +
             to_string(shape) + " cannot hold: they are no multiple of " + std::to_string(rest),
         loc, "the sizes besides -1 must divide " + std::to_string(x->numel()));
  out[free] = x->numel() / rest;
  return out;
}

Tensor viewed(const Tensor& x, const Dims& shape, const SourceLoc& loc) {
  NodeRef n = x.cell()->current();
  return n->shape == shape ? x : view_of(x, n, reshape_to(n, shape, loc));
}

Tensor reshaped(const Tensor& x, const Dims& shape, const SourceLoc& loc) {
  NodeRef n = x.cell()->current();
  if (n->shape == shape || reshaped_strides(n->shape, x.cell()->strides(), shape))
    return viewed(x, shape, loc);
  return tensor_of(reshape_to(n, shape, loc));
}

// One Slice over all dims with one of them cut.
NodeRef sliced(const NodeRef& n, int dim, int64_t start, int64_t step, int64_t size,
               const SourceLoc& loc) {
  SliceAttrs a{Dims::filled(n->rank(), 0), Dims::filled(n->rank(), 1)};
  Dims shape = n->shape;
  a.start[dim] = start;
  a.step[dim] = step;
  shape[dim] = size;
  return record(Op::Slice, {n}, {a, shape}, loc);
}

NodeRef with_dims(const Tensor& x, const char* op, const SourceLoc& loc) {
  NodeRef n = node_of(x, op, loc);
  if (n->rank() == 0)
    fail(ErrorKind::Dim, op, "a 0-d tensor has no dims to cut: " + describe(x), loc,
         "use x.reshape({1}) first");
  return n;
}

}  // namespace

Tensor reshape(const Tensor& x, const Dims& shape, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  return reshaped(x, known_shape(node_of(x, "reshape", loc), shape, loc), loc);
}

Tensor Tensor::view(const Dims& shape, SourceLoc where) const {
  SourceLoc loc = user_loc(where);
  return viewed(*this, known_shape(node_of(*this, "view", loc), shape, loc), loc);
}

Tensor Tensor::contiguous(SourceLoc where) const {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(*this, "contiguous", loc);
  return is_row_major(n->shape, cell_->strides()) ? *this : tensor_of(std::move(n));
}
bool Tensor::is_contiguous(SourceLoc where) const {
  NodeRef n = node_of(*this, "is_contiguous", user_loc(where));
  return is_row_major(n->shape, cell_->strides());
}

Tensor flatten(const Tensor& x, int64_t start_dim, int64_t end_dim, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "flatten", loc);
  int s = wrap_dim(start_dim, n, "flatten", loc), e = wrap_dim(end_dim, n, "flatten", loc);
  if (s > e)
    fail(ErrorKind::Dim, "flatten",
         "start_dim " + std::to_string(start_dim) + " comes after end_dim " +
             std::to_string(end_dim) + " in " + describe(x),
         loc, "swap them");
  if (n->rank() == 0) return reshaped(x, {1}, loc);
  Dims d;
  int64_t merged = 1;
  for (int i = 0; i < n->rank(); ++i) {
    if (i >= s && i <= e) merged *= n->shape[i];
    if (i < s || i > e) d.push_back(n->shape[i]);
    if (i == e) d.push_back(merged);
  }
  return reshaped(x, d, loc);
}

Tensor squeeze(const Tensor& x, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  Dims d;
  const NodeRef n = node_of(x, "squeeze", loc);
  for (int64_t s : n->shape)
    if (s != 1) d.push_back(s);
  return viewed(x, d, loc);
}

Tensor squeeze(const Tensor& x, int64_t dim, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "squeeze", loc);
  int d = wrap_dim(dim, n, "squeeze", loc);
  if (n->rank() == 0 || n->shape[d] != 1) return x;
  Dims s = n->shape;
  s.erase(d);
  return viewed(x, s, loc);
}

Tensor unsqueeze(const Tensor& x, int64_t dim, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "unsqueeze", loc);
  Dims s = n->shape;
  int d = wrap_dim_of(dim, n->rank() + 1, n, "unsqueeze", loc);
  if (n->rank() == kMaxDims)
    fail(ErrorKind::Shape, "unsqueeze", describe(x) + " has the most dims a tensor can have", loc);
  s.insert(d, 1);
  return viewed(x, s, loc);
}

Tensor permute(const Tensor& x, const Dims& dims, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "permute", loc);
  PermuteAttrs a;
  bool same = true;
  for (int i = 0; i < dims.size(); ++i) {
    a.order.push_back(wrap_dim(dims[i], n, "permute", loc));
    same = same && a.order[i] == i;
  }
  if (same && dims.size() == n->rank()) return x;
  return view_of(x, n, record(Op::Permute, {n}, {a}, loc));
}

Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "transpose", loc);
  int i = wrap_dim(dim0, n, "transpose", loc), j = wrap_dim(dim1, n, "transpose", loc);
  if (i == j) return x;
  PermuteAttrs a;
  for (int k = 0; k < n->rank(); ++k) a.order.push_back(k == i ? j : k == j ? i : k);
  return view_of(x, n, record(Op::Permute, {n}, {a}, loc));
}

Tensor t(const Tensor& x, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "t", loc);
  if (n->rank() < 2) return x;
  if (n->rank() > 2)
    fail(ErrorKind::Dim, "t", "takes a matrix, not " + describe(x), loc, "use x.transpose(-1, -2)");
  return transpose(x, 0, 1, loc);
}

Tensor expand(const Tensor& x, const Dims& shape, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "expand", loc);
  Dims full = shape;
  int extra = shape.size() - n->rank();
  bool ok = extra >= 0;
  for (int i = 0; ok && i < shape.size(); ++i) {
    int64_t have = i < extra ? -1 : n->shape[i - extra];
    if (full[i] == -1 && have >= 0) full[i] = have;
    ok = full[i] >= 0 && (have == -1 || have == 1 || have == full[i]);
  }
  if (!ok)
    fail(ErrorKind::Shape, "expand", "cannot expand " + describe(x) + " to " + to_string(shape),
         loc, "only dims of size 1, and new leading dims, can be repeated");
  return full == n->shape ? x : view_of(x, n, expand_to(n, full, loc));
}
Tensor broadcast_to(const Tensor& x, const Dims& shape, SourceLoc loc) {
  return expand(x, shape, loc);
}

Tensor repeat(const Tensor& x, const Dims& times, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "repeat", loc);
  if (times.size() < n->rank())
    fail(ErrorKind::Shape, "repeat",
         to_string(times) + " has fewer numbers than " + describe(x) + " has dims", loc,
         "give one number for each dim");
  for (int64_t k : times)
    if (k < 0)
      fail(ErrorKind::Value, "repeat",
           "cannot repeat a negative number of times: " + to_string(times), loc);
  Dims full = Dims::filled(times.size(), 1);
  for (int i = 0; i < n->rank(); ++i) full[times.size() - n->rank() + i] = n->shape[i];
  n = reshape_to(n.get(), full, loc);
  for (int i = 0; i < times.size(); ++i) {
    if (times[i] == 1) continue;
    // [.., s, ..] -> [outer, 1, s * inner] -> [outer, k, s * inner] -> [.., k * s, ..]
    int64_t outer = 1, inner = 1;
    for (int k = 0; k < i; ++k) outer *= full[k];
    for (int k = i; k < full.size(); ++k) inner *= full[k];
    NodeRef split = reshape_to(n.get(), {outer, 1, inner}, loc);
    NodeRef wide = expand_to(split.get(), {outer, times[i], inner}, loc);
    full[i] *= times[i];
    n = reshape_to(wide.get(), full, loc);
  }
  return tensor_of(n);
}

Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = with_dims(x, "narrow", loc);
  int d = wrap_dim(dim, n, "narrow", loc);
  int64_t size = n->shape[d], s = start < 0 ? start + size : start;
  if (s < 0 || s > size || length < 0 || length > size - s)
    fail(ErrorKind::Index, "narrow",
         "start " + std::to_string(start) + " and length " + std::to_string(length) +
             " leave dim " + std::to_string(d) + " of " + describe(x) + ", which has " +
             std::to_string(size) + " elements",
         loc, "start + length must be at most " + std::to_string(size));
  return view_of(x, n, sliced(n, d, s, 1, length, loc));
}

Tensor select(const Tensor& x, int64_t dim, int64_t index, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = with_dims(x, "select", loc);
  int d = wrap_dim(dim, n, "select", loc);
  int64_t size = n->shape[d], i = index < 0 ? index + size : index;
  if (i < 0 || i >= size)
    fail(ErrorKind::Index, "select",
         "index " + std::to_string(index) + " is outside dim " + std::to_string(d) + " of " +
             describe(x) + ", which has " + std::to_string(size) + " elements",
         loc);
  NodeRef cut = sliced(n, d, i, 1, 1, loc);
  Dims s = n->shape;
  s.erase(d);
  return view_of(x, std::move(n), reshape_to(std::move(cut), s, loc));
}

Tensor slice(const Tensor& x, int64_t dim, const Slice& range, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = with_dims(x, "slice", loc);
  int d = wrap_dim(dim, n, "slice", loc);
  std::vector<IndexItem> items(static_cast<size_t>(d), IndexItem(Slice{}));
  items.emplace_back(range);
  return x[Indices(items, loc)];
}

Tensor flip(const Tensor& x, const Axes& dims, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "flip", loc);
  uint32_t mask = axes_mask(dims, n, "flip", loc);
  if (!mask || n->numel() == 0) return x.clone(loc);
  SliceAttrs a;
  for (int i = 0; i < n->rank(); ++i) {
    bool back = mask >> i & 1;
    a.start.push_back(back ? n->shape[i] - 1 : 0);
    a.step.push_back(back ? -1 : 1);
  }
  return tensor_of(record(Op::Slice, {n}, {a, n->shape}, loc));
}

Tensor roll(const Tensor& x, int64_t shift, int64_t dim, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = with_dims(x, "roll", loc);
  int d = wrap_dim(dim, n, "roll", loc);
  int64_t size = n->shape[d];
  int64_t k = size ? ((shift % size) + size) % size : 0;
  if (k == 0) return x.clone(loc);
  return cat({narrow(x, d, size - k, k, loc), narrow(x, d, 0, size - k, loc)}, d, loc);
}

Tensor pad(const Tensor& x, const Dims& padding, const Scalar& value, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "pad", loc);
  if (padding.size() % 2 || padding.size() / 2 > n->rank())
    fail(ErrorKind::Value, "pad",
         "padding " + to_string(padding) + " must hold {before, after} for at most the " +
             std::to_string(n->rank()) + " dims of " + describe(x),
         loc, "for the last dim only: {before, after}");
  SliceAttrs cut{Dims::filled(n->rank(), 0), Dims::filled(n->rank(), 1)};
  PadAttrs add{Dims::filled(n->rank(), 0), value.to<double>()};
  Dims kept = n->shape;
  bool cuts = false;
  for (int k = 0; k < padding.size() / 2; ++k) {
    int i = n->rank() - 1 - k;
    int64_t front = padding[2 * k], behind = padding[2 * k + 1];
    constexpr int64_t most = int64_t{1} << 60;
    if (front > most || behind > most || front < -most || behind < -most)
      fail(ErrorKind::Shape, "pad", "padding " + to_string(padding) + " is more than 2^60 elements",
           loc);
    cut.start[i] = std::max<int64_t>(0, -front);
    kept[i] += std::min<int64_t>(0, front) + std::min<int64_t>(0, behind);
    cuts = cuts || front < 0 || behind < 0;
    if (kept[i] < 0)
      fail(ErrorKind::Shape, "pad",
           "padding " + to_string(padding) + " cuts more than " + describe(x) + " has", loc);
  }
  NodeRef inner = cuts ? record(Op::Slice, {n}, {cut, kept}, loc) : NodeRef(n);
  Dims shape = kept;
  for (int k = 0; k < padding.size() / 2; ++k) {
    int i = n->rank() - 1 - k;
    add.front[i] = std::max<int64_t>(0, padding[2 * k]);
    shape[i] += add.front[i] + std::max<int64_t>(0, padding[2 * k + 1]);
  }
  check_fits(value, n->dtype, "pad", loc);
  return tensor_of(inner->shape == shape ? inner
                                         : record(Op::Pad, {inner.get()}, {add, shape}, loc));
}

// ---- Joining: every part is padded to the full size, and the position along dim chooses between
// them. The choice is a balanced tree, so that a value is reached in log(parts) steps and NaNs of
// one part never touch another.

namespace {

struct Parts {
  std::vector<NodeRef> padded;
  std::vector<int64_t> begin;  // where each starts
  NodeRef position;
  SourceLoc loc;
  NodeRef choose(size_t lo, size_t hi) const {
    if (hi - lo == 1) return padded[lo];
    size_t mid = (lo + hi) / 2;
    NodeRef a = choose(lo, mid), b = choose(mid, hi);
    NodeRef bound = constant(begin[mid], DType::Int64, position->device, loc);
    NodeRef first = record2(Op::Lt, position.get(), bound.get(), loc);
    return record(Op::Where, {first.get(), a.get(), b.get()}, kNoAttrs, loc);
  }
};

// PyTorch lets empty vectors pass whatever their other sizes.
bool skipped(const Node* n) { return n->rank() == 1 && n->shape[0] == 0; }

// Up to this many parts are chosen between by whoever reads the result, which costs nothing then;
// for more that would be work in all of them for each element.
constexpr size_t kFusedParts = 8;

// Many parts: copied side by side, kCatInputs at a time.
NodeRef join_parts(const std::vector<NodeRef>& nodes, int d, DType t, const SourceLoc& loc) {
  std::vector<NodeRef> parts, joined;
  for (const NodeRef& n : nodes)
    if (!skipped(n.get()) && n->shape[d] > 0) parts.push_back(cast_to(n.get(), t, loc));
  for (; parts.size() > 1; parts = std::exchange(joined, {})) {
    std::vector<NodeRef> some;
    for (size_t i = 0; i < parts.size(); ++i) {
      some.push_back(parts[i]);
      if (static_cast<int>(some.size()) < kCatInputs && i + 1 < parts.size()) continue;
      joined.push_back(some.size() == 1 ? parts[i]
                                        : record_taking(Op::Cat, some, {CatAttrs{d}}, loc));
      some.clear();
    }
  }
  return parts.empty() ? nullptr : parts[0];
}

NodeRef cat_nodes(const std::vector<NodeRef>& nodes, int64_t dim, const char* op,
                  const SourceLoc& loc) {
  const Node* like = nodes[0].get();
  for (const NodeRef& n : nodes)
    if (!skipped(n.get())) {
      like = n.get();
      break;
    }
  if (like->rank() == 0)
    fail(ErrorKind::Dim, op, "0-d tensors cannot be joined: " + describe(*like), loc,
         "use stack()");
  int d = wrap_dim(dim, like, op, loc);
  DType t = like->dtype;
  int64_t total = 0;
  for (const NodeRef& n : nodes) {
    t = n->dtype == t ? t : promote(t, n->dtype);
    if (skipped(n.get())) continue;
    bool ok = n->rank() == like->rank();
    for (int i = 0; ok && i < n->rank(); ++i) ok = i == d || n->shape[i] == like->shape[i];
    if (!ok)
      fail(ErrorKind::Shape, op,
           "sizes must agree but for dim " + std::to_string(d) + ": " + describe(*like) + " and " +
               describe(*n),
           loc);
    if (n->device != like->device)
      fail(ErrorKind::Device, op,
           "tensors are on different devices: " + describe(*like) + " and " + describe(*n), loc,
           "move one with .to(\"" + like->device.name() + "\")");
    total += n->shape[d];
  }
  if (nodes.size() > kFusedParts)
    if (NodeRef joined = join_parts(nodes, d, t, loc)) return joined;
  Parts parts{{}, {}, nullptr, loc};
  PadAttrs pad{Dims::filled(like->rank(), 0)};
  Dims full = like->shape;
  full[d] = total;
  int64_t at = 0;
  for (const NodeRef& n : nodes) {
    if (skipped(n.get()) || n->shape[d] == 0) continue;
    NodeRef x = cast_to(n.get(), t, loc);
    pad.front[d] = at;
    parts.padded.push_back(x->shape == full ? x : record(Op::Pad, {x.get()}, {pad, full}, loc));
    parts.begin.push_back(at);
    at += n->shape[d];
  }
  if (parts.padded.empty()) return cast_to(const_cast<Node*>(like), t, loc);
  if (parts.padded.size() > 1)
    parts.position = iota_along(total, d, like->rank(), like->device, loc);
  return parts.choose(0, parts.padded.size());
}

std::vector<NodeRef> nodes_of(const std::vector<Tensor>& tensors, const char* op,
                              const SourceLoc& loc) {
  if (tensors.empty()) fail(ErrorKind::Value, op, "was given no tensors", loc, "give at least one");
  std::vector<NodeRef> nodes;
  for (const Tensor& x : tensors) nodes.emplace_back(node_of(x, op, loc));
  return nodes;
}

}  // namespace

Tensor cat(const std::vector<Tensor>& tensors, int64_t dim, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  return tensor_of(cat_nodes(nodes_of(tensors, "cat", loc), dim, "cat", loc));
}

Tensor stack(const std::vector<Tensor>& tensors, int64_t dim, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  std::vector<NodeRef> nodes = nodes_of(tensors, "stack", loc);
  NodeRef first = nodes[0];
  int d = wrap_dim_of(dim, first->rank() + 1, first.get(), "stack", loc);
  for (NodeRef& n : nodes) {
    if (!(n->shape == first->shape))
      fail(ErrorKind::Shape, "stack",
           "tensors differ in shape: " + describe(*first) + " and " + describe(*n), loc);
    Dims s = n->shape;
    s.insert(d, 1);
    n = reshape_to(n.get(), s, loc);
  }
  return tensor_of(cat_nodes(nodes, d, "stack", loc));
}

std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int64_t dim,
                          SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = with_dims(x, "split", loc);
  int d = wrap_dim(dim, n, "split", loc);
  int64_t total = 0;
  for (int64_t s : sizes) total += s;
  if (total != n->shape[d])
    fail(ErrorKind::Value, "split",
         "the " + std::to_string(sizes.size()) + " sizes add up to " + std::to_string(total) +
             ", but dim " + std::to_string(d) + " of " + describe(x) + " has " +
             std::to_string(n->shape[d]),
         loc);
  std::vector<Tensor> out;
  int64_t at = 0;
  for (int64_t s : sizes) {
    out.push_back(narrow(x, d, at, s, loc));
    at += s;
  }
  return out;
}

std::vector<Tensor> split(const Tensor& x, int64_t size, int64_t dim, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = with_dims(x, "split", loc);
  int d = wrap_dim(dim, n, "split", loc);
  if (size < 1)
    fail(ErrorKind::Value, "split",
         "pieces must have at least 1 element, not " + std::to_string(size), loc);
  std::vector<Tensor> out;
  int64_t total = n->shape[d];
  for (int64_t at = 0; at < total || out.empty(); at += size)
    out.push_back(narrow(x, d, at, std::min(size, total - at), loc));
  return out;
}

std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = with_dims(x, "chunk", loc);
  int d = wrap_dim(dim, n, "chunk", loc);
  if (chunks < 1)
    fail(ErrorKind::Value, "chunk", "needs at least 1 chunk, not " + std::to_string(chunks), loc);
  return split(x, std::max<int64_t>(1, (n->shape[d] - 1) / chunks + 1), d, loc);
}

// ---- Triangles

namespace {

Tensor triangle(const Tensor& x, int64_t diagonal, bool lower, const char* op,
                const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, op, loc);
  int r = n->rank();
  if (r < 2) fail(ErrorKind::Dim, op, "takes a matrix or a batch of them, not " + describe(x), loc);
  NodeRef row = iota_along(n->shape[r - 2], r - 2, r, n->device, loc);
  NodeRef col = iota_along(n->shape[r - 1], r - 1, r, n->device, loc);
  diagonal = std::clamp(diagonal, -n->shape[r - 2], n->shape[r - 1]);  // past these nothing changes
  NodeRef k = constant(diagonal, DType::Int64, n->device, loc);
  NodeRef edge = record2(Op::Add, row.get(), k.get(), loc);
  NodeRef keep = record2(lower ? Op::Le : Op::Ge, col.get(), edge.get(), loc);
  NodeRef zero = constant(0, n->dtype, n->device, loc);
  return tensor_of(record(Op::Where, {keep.get(), n, zero.get()}, kNoAttrs, loc));
}

}  // namespace

Tensor tril(const Tensor& x, int64_t diagonal, SourceLoc loc) {
  return triangle(x, diagonal, true, "tril", loc);
}
Tensor triu(const Tensor& x, int64_t diagonal, SourceLoc loc) {
  return triangle(x, diagonal, false, "triu", loc);
}

}  // namespace ingot
