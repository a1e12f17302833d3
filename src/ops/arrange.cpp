// Movement composed from the views of movement.cpp: splitting, moving, turning, diagonals, joining,
// padding by what is there.
#include <algorithm>

#include "ingot/movement.h"
#include "ops/common.h"

namespace ingot {

// ---- Views

Tensor unflatten(const Tensor& x, int64_t dim, const Dims& sizes, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "unflatten", loc);
  int d = wrap_dim(dim, n, "unflatten", loc);
  int64_t size = n->rank() ? n->shape[d] : 1, rest = 1;
  int free = -1;
  bool ok = !sizes.empty();
  for (int i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1 && free < 0)
      free = i;
    else if (sizes[i] < 0)
      ok = false;
    else
      rest *= sizes[i];
  }
  ok = ok && (free < 0 ? rest == size : rest > 0 && size % rest == 0);
  if (!ok)
    fail(ErrorKind::Shape, "unflatten",
         "sizes " + to_string(sizes) + " do not make up dim " + std::to_string(d) + " of " +
             describe(x) + ", which has " + std::to_string(size) + " elements",
         loc, "their product must be " + std::to_string(size) + "; one of them may be -1");
  Dims shape;
  for (int i = 0; i < d; ++i) shape.push_back(n->shape[i]);
  for (int i = 0; i < sizes.size(); ++i) shape.push_back(i == free ? size / rest : sizes[i]);
  for (int i = d + 1; i < n->rank(); ++i) shape.push_back(n->shape[i]);
  return x.view(shape, loc);
}

Tensor Tensor::unfold(int64_t dim, int64_t size, int64_t step, SourceLoc where) const {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(*this, "unfold", loc);
  if (n->rank() == 0) return view({1}, loc).unfold(dim, size, step, loc).select(0, 0, loc);
  const int d = wrap_dim(dim, n, "unfold", loc), last = n->rank() - 1;
  if (size < 0 || size > n->shape[d] || step < 1)
    fail(ErrorKind::Value, "unfold",
         "windows of " + std::to_string(size) + " elements every " + std::to_string(step) +
             " do not fit into dim " + std::to_string(d) + " of " + describe(*this),
         loc, "size must be 0 to " + std::to_string(n->shape[d]) + " and step 1 or more");
  const Tensor moved = d == last ? *this : ingot::movedim(*this, d, last, loc);
  n = node_of(moved, "unfold", loc);
  Dims shape = n->shape;
  shape[last] = (shape[last] - size) / step + 1;
  shape.push_back(size);
  if (size == 0) return tensor_of(expand_to(constant(0, n->dtype, n->device, loc), shape, loc));
  NodeRef windows = record(Op::Window, {n}, {WindowAttrs{{step}, {1}}, shape}, loc);
  const Tensor view = view_of(moved, std::move(n), std::move(windows));
  return d == last ? view : ingot::movedim(view, last, d, loc);
}

Tensor movedim(const Tensor& x, const Dims& source, const Dims& destination, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "movedim", loc);
  if (source.size() != destination.size())
    fail(ErrorKind::Dim, "movedim",
         "source " + to_string(source) + " and destination " + to_string(destination) +
             " differ in length",
         loc);
  if (n->rank() == 0) {
    for (int64_t d : source) wrap_dim(d, n, "movedim", loc);
    return x;
  }
  Dims order = Dims::filled(n->rank(), -1);
  uint32_t taken = 0;
  for (int i = 0; i < source.size(); ++i) {
    int from = wrap_dim(source[i], n, "movedim", loc),
        to = wrap_dim(destination[i], n, "movedim", loc);
    if ((taken >> from & 1) || order[to] >= 0)
      fail(ErrorKind::Dim, "movedim",
           "a dim is named twice in " + to_string(source) + " or " + to_string(destination), loc,
           "name each dim once");
    taken |= 1u << from;
    order[to] = from;
  }
  int next = 0;
  for (int i = 0; i < n->rank(); ++i) {
    if (order[i] >= 0) continue;
    while (taken >> next & 1) ++next;
    order[i] = next++;
  }
  return permute(x, order, loc);
}
Tensor movedim(const Tensor& x, int64_t source, int64_t destination, SourceLoc loc) {
  return movedim(x, Dims{source}, Dims{destination}, loc);
}

Tensor mT(const Tensor& x, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  if (node_of(x, "mT", loc)->rank() < 2)
    fail(ErrorKind::Dim, "mT", "takes a matrix or a batch of them, not " + describe(x), loc);
  return transpose(x, -2, -1, loc);
}

Tensor squeeze(const Tensor& x, const Dims& dims, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "squeeze", loc);
  uint32_t mask = dims.empty() ? 0 : axes_mask(Axes(dims), n, "squeeze", loc);
  Dims s;
  for (int i = 0; i < n->rank(); ++i)
    if (n->shape[i] != 1 || !(mask >> i & 1)) s.push_back(n->shape[i]);
  return x.view(s, loc);
}

namespace {

Tensor flip_dim(const Tensor& x, int64_t dim, const char* op, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  if (node_of(x, op, loc)->rank() <= dim)
    fail(ErrorKind::Dim, op,
         "needs at least " + std::to_string(dim + 1) + " dims, not " + describe(x), loc);
  return flip(x, dim, loc);
}

}  // namespace

Tensor fliplr(const Tensor& x, SourceLoc loc) { return flip_dim(x, 1, "fliplr", loc); }
Tensor flipud(const Tensor& x, SourceLoc loc) { return flip_dim(x, 0, "flipud", loc); }

Tensor rot90(const Tensor& x, int64_t k, const Dims& dims, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "rot90", loc);
  if (dims.size() != 2 || n->rank() < 2)
    fail(ErrorKind::Dim, "rot90",
         "turns in the plane of two dims, not " + to_string(dims) + " of " + describe(x), loc);
  int a = wrap_dim(dims[0], n, "rot90", loc), b = wrap_dim(dims[1], n, "rot90", loc);
  if (a == b)
    fail(ErrorKind::Dim, "rot90", "dims " + to_string(dims) + " are the same", loc,
         "name two different ones");
  switch (((k % 4) + 4) % 4) {
    case 1:
      return transpose(flip(x, b, loc), a, b, loc);  // a view of the flipped copy, not of x
    case 2:
      return flip(x, Axes{a, b}, loc);
    case 3:
      return flip(transpose(x, a, b, loc), b, loc);
    default:
      return x.clone(loc);
  }
}

std::vector<Tensor> unbind(const Tensor& x, int64_t dim, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "unbind", loc);
  if (n->rank() == 0)
    fail(ErrorKind::Dim, "unbind", "a 0-d tensor has no dims to take apart: " + describe(x), loc);
  int d = wrap_dim(dim, n, "unbind", loc);
  std::vector<Tensor> out;
  for (int64_t i = 0; i < n->shape[d]; ++i) out.push_back(select(x, d, i, loc));
  return out;
}

std::vector<Tensor> tensor_split(const Tensor& x, const std::vector<int64_t>& indices, int64_t dim,
                                 SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "tensor_split", loc);
  if (n->rank() == 0)
    fail(ErrorKind::Dim, "tensor_split", "a 0-d tensor has no dims to cut: " + describe(x), loc);
  int d = wrap_dim(dim, n, "tensor_split", loc);
  int64_t size = n->shape[d], start = 0;
  std::vector<Tensor> out;
  auto place = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  for (size_t i = 0; i <= indices.size(); ++i) {
    int64_t stop = i < indices.size() ? place(indices[i]) : size;
    out.push_back(narrow(x, d, start, std::max<int64_t>(0, stop - start), loc));
    start = stop;
  }
  return out;
}

std::vector<Tensor> tensor_split(const Tensor& x, int64_t sections, int64_t dim, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "tensor_split", loc);
  if (sections < 1)
    fail(ErrorKind::Value, "tensor_split",
         "needs at least 1 section, not " + std::to_string(sections), loc);
  int d = wrap_dim(dim, n, "tensor_split", loc);
  int64_t size = n->rank() ? n->shape[d] : 0;
  const int64_t most = std::max<int64_t>(size, 1 << 16);  // beyond the elements all are empty
  if (sections > most)
    fail(ErrorKind::Value, "tensor_split",
         std::to_string(sections) + " sections of dim " + std::to_string(d) + " of " + describe(x) +
             ", which has " + std::to_string(size) + " elements: at most " + std::to_string(most),
         loc);
  std::vector<int64_t> at;
  for (int64_t i = 1; i < sections; ++i)
    at.push_back(i * (size / sections) + std::min(i, size % sections));
  return tensor_split(x, at, dim, loc);
}

Tensor atleast_1d(const Tensor& x, SourceLoc loc) { return x.dim(loc) == 0 ? x.view({1}, loc) : x; }
Tensor atleast_2d(const Tensor& x, SourceLoc loc) {
  return x.dim(loc) < 2 ? x.view({1, x.numel(loc)}, loc) : x;
}
Tensor atleast_3d(const Tensor& x, SourceLoc loc) {
  if (x.dim(loc) < 2) return x.view({1, x.numel(loc), 1}, loc);
  return x.dim(loc) == 2 ? unsqueeze(x, 2, loc) : x;
}

std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  Dims shape;
  for (const Tensor& x : tensors) {
    Dims before = shape;
    if (!broadcast_shapes(before, node_of(x, "broadcast_tensors", loc)->shape, shape))
      fail(ErrorKind::Shape, "broadcast_tensors",
           describe(x) + " does not broadcast with " + to_string(before), loc,
           "sizes must be equal or 1, counted from the last dim");
  }
  std::vector<Tensor> out;
  for (const Tensor& x : tensors) out.push_back(expand(x, shape, loc));
  return out;
}

// ---- Diagonals

// Element i is at i * (columns + 1) of the flattened matrix, so that the diagonal is one strided
// slice.
Tensor diagonal(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "diagonal", loc);
  int a = wrap_dim(dim1, n, "diagonal", loc), b = wrap_dim(dim2, n, "diagonal", loc);
  if (a == b || n->rank() < 2)
    fail(ErrorKind::Dim, "diagonal",
         "needs two different dims, not " + std::to_string(dim1) + " and " + std::to_string(dim2) +
             " of " + describe(x),
         loc);
  Tensor last = movedim(x, Dims{a, b}, Dims{-2, -1}, loc);
  int r = n->rank();
  Dims shape = last.shape();
  int64_t rows = shape[r - 2], cols = shape[r - 1];
  int64_t start = offset >= 0 ? offset : -offset * cols;
  int64_t size = std::max<int64_t>(
      0, offset >= 0 ? std::min(rows, cols - offset) : std::min(rows + offset, cols));
  shape.resize(r - 1);
  shape[r - 2] = rows * cols;
  Tensor flat = last.view(shape, loc);
  if (size == 0) return narrow(flat, -1, 0, 0, loc);
  return slice(flat, -1, Slice{start, start + (size - 1) * (cols + 1) + 1, cols + 1}, loc);
}

Tensor diag_embed(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  NodeRef n = node_of(x, "diag_embed", loc);
  int r = n->rank() + 1;
  int a = wrap_dim_of(dim1, r, n, "diag_embed", loc),
      b = wrap_dim_of(dim2, r, n, "diag_embed", loc);
  if (n->rank() == 0 || a == b)
    fail(ErrorKind::Dim, "diag_embed",
         "needs a vector and two different dims, not " + std::to_string(dim1) + " and " +
             std::to_string(dim2) + " of " + describe(x),
         loc);
  int64_t up = std::max<int64_t>(0, offset), down = std::max<int64_t>(0, -offset),
          size = n->shape.back() + up + down;
  Tensor rows = pad(x, {down, up}).unsqueeze(-1);
  Tensor row = tensor_of(iota_along(size, r - 2, r, n->device, loc)),
         col = tensor_of(iota_along(size, r - 1, r, n->device, loc));
  Tensor zero = tensor_of(constant(0, n->dtype, n->device, loc));
  return movedim(where(col - row == offset, rows, zero), Dims{-2, -1}, Dims{a, b}, loc);
}

Tensor diag(const Tensor& x, int64_t offset, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "diag", loc);
  if (n->rank() == 1) return diag_embed(x, offset, 0, 1, loc);
  if (n->rank() == 2) return diagonal(x, offset, 0, 1, loc).clone(loc);
  fail(ErrorKind::Dim, "diag", "takes a vector or a matrix, not " + describe(x), loc,
       "use diagonal() or diag_embed() for batches");
}
Tensor diagflat(const Tensor& x, int64_t offset, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  return diag_embed(flatten(x, 0, -1, loc), offset, 0, 1, loc);
}

// ---- Joining

namespace {

std::vector<Tensor> each_of(const std::vector<Tensor>& tensors,
                            Tensor (*f)(const Tensor&, SourceLoc), const SourceLoc& loc) {
  std::vector<Tensor> out;
  for (const Tensor& x : tensors) out.push_back(f(x, loc));
  return out;
}

void need_some(const std::vector<Tensor>& tensors, const char* op, const SourceLoc& loc) {
  if (tensors.empty()) fail(ErrorKind::Value, op, "was given no tensors", loc, "give at least one");
  for (const Tensor& x : tensors) node_of(x, op, loc);
}

}  // namespace

Tensor hstack(const std::vector<Tensor>& tensors, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  need_some(tensors, "hstack", loc);
  std::vector<Tensor> parts = each_of(tensors, atleast_1d, loc);
  return cat(parts, parts[0].dim() == 1 ? 0 : 1, loc);
}
Tensor vstack(const std::vector<Tensor>& tensors, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  need_some(tensors, "vstack", loc);
  return cat(each_of(tensors, atleast_2d, loc), 0, loc);
}
Tensor dstack(const std::vector<Tensor>& tensors, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  need_some(tensors, "dstack", loc);
  return cat(each_of(tensors, atleast_3d, loc), 2, loc);
}
Tensor column_stack(const std::vector<Tensor>& tensors, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  need_some(tensors, "column_stack", loc);
  std::vector<Tensor> parts;
  for (const Tensor& x : tensors)
    parts.push_back(x.dim() < 2 ? reshape(x, {x.numel(), 1}, loc) : x);
  return cat(parts, 1, loc);
}

Tensor block_diag(const std::vector<Tensor>& tensors, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  need_some(tensors, "block_diag", loc);
  int64_t cols = 0, at = 0;
  std::vector<Tensor> rows;
  for (const Tensor& x : tensors) {
    if (x.dim() > 2)
      fail(ErrorKind::Dim, "block_diag",
           "takes matrices, vectors and 0-d tensors, not " + describe(x), loc);
    cols += atleast_2d(x, loc).size(1);
  }
  for (const Tensor& x : tensors) {
    Tensor m = atleast_2d(x, loc);
    rows.push_back(pad(m, {at, cols - at - m.size(1)}, 0, loc));
    at += m.size(1);
  }
  return cat(rows, 0, loc);
}

// ---- Repeating

Tensor tile(const Tensor& x, const Dims& dims, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  Dims times = Dims::filled(std::max(0, node_of(x, "tile", loc)->rank() - dims.size()), 1);
  for (int64_t k : dims) times.push_back(k);
  return repeat(x, times, loc);
}

Tensor repeat_interleave(const Tensor& x, int64_t repeats, std::optional<int64_t> dim,
                         SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "repeat_interleave", loc);
  if (repeats < 0)
    fail(ErrorKind::Value, "repeat_interleave",
         "cannot repeat a negative number of times: " + std::to_string(repeats), loc);
  if (!dim || n->rank() == 0) {
    Tensor flat = reshape(x, {-1, 1}, loc);
    return reshape(expand(flat, {-1, repeats}, loc), {n->numel() * repeats}, loc).clone(loc);
  }
  int d = wrap_dim(*dim, n, "repeat_interleave", loc);
  Dims wide = n->shape, out = n->shape;
  wide.insert(d + 1, repeats);
  out[d] *= repeats;
  return reshape(expand(unsqueeze(x, d + 1, loc), wide, loc), out, loc).clone(loc);
}

Tensor repeat_interleave(const Tensor& x, const Tensor& repeats, std::optional<int64_t> dim,
                         SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "repeat_interleave", loc), k = node_of(repeats, "repeat_interleave", loc);
  if (!dim || n->rank() == 0) {
    if (n->rank() != 1) return repeat_interleave(reshape(x, {-1}, loc), repeats, 0, loc);
    return repeat_interleave(x, repeats, 0, loc);
  }
  int d = wrap_dim(*dim, n, "repeat_interleave", loc);
  if (!is_integer(k->dtype) || k->rank() > 1 || (k->numel() != 1 && k->numel() != n->shape[d]))
    fail(is_integer(k->dtype) ? ErrorKind::Shape : ErrorKind::DType, "repeat_interleave",
         "repeats must be one integer for each of the " + std::to_string(n->shape[d]) +
             " slices of dim " + std::to_string(d) + " of " + describe(x) + ", not " +
             describe(repeats),
         loc);
  std::vector<int64_t> counts = repeats.to_vector<int64_t>(loc), index;
  for (int64_t i = 0; i < n->shape[d]; ++i) {
    int64_t c = counts[counts.size() == 1 ? 0 : static_cast<size_t>(i)];
    if (c < 0)
      fail(ErrorKind::Value, "repeat_interleave",
           "cannot repeat a negative number of times: " + std::to_string(c), loc);
    index.insert(index.end(), static_cast<size_t>(c), i);
  }
  return index_select(x, d, tensor(index, n->device, loc), loc);
}

// ---- Shifting and padding by what is there

Tensor roll(const Tensor& x, const Dims& shifts, const Dims& dims, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "roll", loc);
  if (dims.empty() && shifts.size() == 1)
    return reshape(roll(reshape(x, {-1}, loc), shifts[0], 0, loc), n->shape, loc);
  if (dims.size() != shifts.size() || shifts.empty())
    fail(ErrorKind::Value, "roll",
         "needs one shift per dim: " + to_string(shifts) + " for dims " + to_string(dims), loc);
  Tensor y = x;
  for (int i = 0; i < dims.size(); ++i) y = roll(y, shifts[i], dims[i], loc);
  return y;
}

namespace {

enum class Fill { Reflect, Replicate, Circular };

// The `count` elements before (or after) y along dim.
Tensor edge(const Tensor& y, int d, int64_t count, bool front, Fill how, const SourceLoc& loc) {
  int64_t size = y.size(d);
  Dims wide = Dims::filled(y.dim(), -1);
  wide[d] = count;
  switch (how) {
    case Fill::Reflect:
      return flip(narrow(y, d, front ? 1 : size - 1 - count, count, loc), d, loc);
    case Fill::Circular:
      return narrow(y, d, front ? size - count : 0, count, loc);
    default:
      return expand(narrow(y, d, front ? 0 : size - 1, 1, loc), wide, loc);
  }
}

}  // namespace

Tensor pad(const Tensor& x, const Dims& padding, std::string_view mode, const Scalar& value,
           SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "pad", loc);
  if (mode == "constant") return pad(x, padding, value, loc);
  bool known = mode == "reflect" || mode == "replicate" || mode == "circular";
  if (!known)
    fail(ErrorKind::Value, "pad", "mode is \"" + std::string(mode) + "\"", loc,
         "use \"constant\", \"reflect\", \"replicate\" or \"circular\"");
  if (padding.size() % 2 || padding.size() / 2 > n->rank())
    fail(ErrorKind::Value, "pad",
         "padding " + to_string(padding) + " must hold {before, after} for at most the " +
             std::to_string(n->rank()) + " dims of " + describe(x),
         loc, "for the last dim only: {before, after}");
  Fill how = mode == "reflect"     ? Fill::Reflect
             : mode == "replicate" ? Fill::Replicate
                                   : Fill::Circular;
  Dims cut = padding;
  for (int64_t& p : cut) p = std::min<int64_t>(p, 0);
  // The edge that "replicate" repeats is the input's, whatever is cut away.
  bool cut_first = how != Fill::Replicate;
  Tensor y = cut_first ? pad(x, cut, 0, loc) : x;
  for (int k = 0; k < padding.size() / 2; ++k) {
    int d = n->rank() - 1 - k;
    int64_t front = std::max<int64_t>(0, padding[2 * k]),
            behind = std::max<int64_t>(0, padding[2 * k + 1]), size = y.size(d);
    int64_t most = how == Fill::Reflect    ? size - 1
                   : how == Fill::Circular ? size
                   : size > 0              ? INT64_MAX
                                           : 0;
    if (front > most || behind > most)
      fail(ErrorKind::Value, "pad",
           "\"" + std::string(mode) + "\" cannot add " + std::to_string(std::max(front, behind)) +
               " to dim " + std::to_string(d) + " of " + describe(x) + ", which has " +
               std::to_string(size) + " elements",
           loc);
    std::vector<Tensor> parts;
    if (front) parts.push_back(edge(y, d, front, true, how, loc));
    parts.push_back(y);
    if (behind) parts.push_back(edge(y, d, behind, false, how, loc));
    if (parts.size() > 1) y = cat(parts, d, loc);
  }
  return cut_first ? y : pad(y, cut, 0, loc);
}

}  // namespace ingot
