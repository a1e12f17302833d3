// Movement: shapes, order, pieces, joins.
#include <algorithm>

#include "bind.h"

namespace ingot_python {
namespace {

using T = const Tensor&;
using L = SourceLoc;
using Many = const std::vector<Tensor>&;
using OptDim = std::optional<int64_t>;

// x.view(2, 3) and x.view((2, 3)).
template <class F>
void sized_method(Table& t, const char* name, const char* keyword, F f) {
  auto c = nb::borrow<nb::class_<Tensor>>(t.tensor());
  const char* doc =
      std::string_view(name) == "view" ? "reshape() whose result is always a view." : doc_of(name);
  c.def(
      name,
      [f, name](const Tensor& x, const nb::args& size) {
        SourceLoc loc = here();
        Dims d = dims_of(size, name);
        return recorded([&] { return f(x, d, loc); });
      },
      doc);
  c.def(
      name,
      [f](const Tensor& x, const Dims& d) {
        SourceLoc loc = here();
        return recorded([&] { return f(x, d, loc); });
      },
      nb::kw_only(), nb::arg(keyword), doc);
}

void bind_shapes(Table& t) {
  t.function(
      "reshape", [](T x, const Dims& s, L loc) { return reshape(x, s, loc); }, "input"_a,
      "shape"_a);
  sized_method(t, "reshape", "shape", [](T x, const Dims& s, L loc) { return reshape(x, s, loc); });
  auto c = nb::borrow<nb::class_<Tensor>>(t.tensor());
  sized_method(t, "view", "size", [](T x, const Dims& s, L loc) { return x.view(s, loc); });
  sized_method(t, "permute", "dims", [](T x, const Dims& s, L loc) { return permute(x, s, loc); });
  sized_method(t, "expand", "size", [](T x, const Dims& s, L loc) { return expand(x, s, loc); });
  sized_method(t, "repeat", "repeats", [](T x, const Dims& s, L loc) { return repeat(x, s, loc); });
  sized_method(t, "flip", "dims", [](T x, const Dims& s, L loc) {
    return s.empty() ? x.clone(loc) : flip(x, s, loc);
  });
  t.function(
      "permute", [](T x, const Dims& s, L loc) { return permute(x, s, loc); }, "input"_a, "dims"_a);
  t.function(
      "flip", [](T x, const Dims& s, L loc) { return s.empty() ? x.clone(loc) : flip(x, s, loc); },
      "input"_a, "dims"_a);
  t.method(
      "view_as", [](T x, T o, L loc) { return x.view_as(o, loc); }, "other"_a,
      "view(other.shape).");
  t.method(
      "unfold",
      [](T x, int64_t d, int64_t size, int64_t step, L loc) {
        return x.unfold(d, size, step, loc);
      },
      "dimension"_a, "size"_a, "step"_a,
      "Windows of one dim every step elements, as a last dim: a view. It can be written to where "
      "the windows do not overlap.");
  t.method(
      "reshape_as", [](T x, T o, L loc) { return x.reshape(o.shape(), loc); }, "other"_a,
      "reshape(other.shape).");
  t.method(
      "expand_as", [](T x, T o, L loc) { return x.expand_as(o, loc); }, "other"_a,
      "expand(other.shape).");
  t.both(
      "broadcast_to", [](T x, const Dims& s, L loc) { return broadcast_to(x, s, loc); }, "size"_a);
  t.both(
      "flatten", [](T x, int64_t a, int64_t b, L loc) { return flatten(x, a, b, loc); },
      "start_dim"_a = 0, "end_dim"_a = -1);
  t.both("squeeze", [](T x, L loc) { return squeeze(x, loc); });
  t.both(
      "squeeze",
      [](T x, const Dims& dims, L loc) {
        Dims wrapped = dims;
        for (int64_t& d : wrapped) {
          if (x.dim() || d < -1 || d > 0) x.size(d, loc);  // checks it; a 0-d tensor takes 0 and -1
          d = d < 0 ? d + std::max(x.dim(), 1) : d;
        }
        std::sort(wrapped.begin(), wrapped.end());
        Tensor y = x;
        for (int i = x.dim() ? wrapped.size() - 1 : -1; i >= 0; --i)
          y = squeeze(y, wrapped[i], loc);
        return y;
      },
      "dim"_a);
  t.both(
      "unsqueeze", [](T x, int64_t d, L loc) { return unsqueeze(x, d, loc); }, "dim"_a);
  for (const char* name : {"transpose", "swapaxes", "swapdims"})
    t.both(
        name, [](T x, int64_t a, int64_t b, L loc) { return transpose(x, a, b, loc); }, "dim0"_a,
        "dim1"_a);
  t.both("t", [](T x, L loc) { return ingot::t(x, loc); });
  c.def_prop_ro("T", [](const Tensor& x) {
    Dims order;
    for (int i = x.dim() - 1; i >= 0; --i) order.push_back(i);
    return permute(x, order, here());
  });
  c.def_prop_ro("mT", [](const Tensor& x) { return transpose(x, -2, -1, here()); });
}

void bind_pieces(Table& t) {
  t.both(
      "narrow",
      [](T x, int64_t dim, int64_t start, int64_t n, L loc) {
        return narrow(x, dim, start < 0 ? start + x.size(dim, loc) : start, n, loc);
      },
      "dim"_a, "start"_a, "length"_a);
  t.both(
      "select", [](T x, int64_t dim, int64_t i, L loc) { return select(x, dim, i, loc); }, "dim"_a,
      "index"_a);
  t.both(
      "split", [](T x, int64_t n, int64_t dim, L loc) { return split(x, n, dim, loc); },
      "split_size_or_sections"_a, "dim"_a = 0);
  t.both(
      "split",
      [](T x, const std::vector<int64_t>& n, int64_t dim, L loc) { return split(x, n, dim, loc); },
      "split_size_or_sections"_a, "dim"_a = 0);
  t.both(
      "chunk", [](T x, int64_t n, int64_t dim, L loc) { return chunk(x, n, dim, loc); }, "chunks"_a,
      "dim"_a = 0);
  t.both(
      "tril", [](T x, int64_t d, L loc) { return tril(x, d, loc); }, "diagonal"_a = 0);
  t.both(
      "triu", [](T x, int64_t d, L loc) { return triu(x, d, loc); }, "diagonal"_a = 0);
  for (const char* name : {"cat", "concat", "concatenate"})
    t.function(
        name, [](Many x, int64_t dim, L loc) { return cat(x, dim, loc); }, "tensors"_a,
        "dim"_a = 0);
  t.function(
      "stack", [](Many x, int64_t dim, L loc) { return stack(x, dim, loc); }, "tensors"_a,
      "dim"_a = 0);
}

void bind_arrangements(Table& t) {
  t.both(
      "unflatten", [](T x, int64_t d, const Dims& s, L loc) { return unflatten(x, d, s, loc); },
      "dim"_a, "sizes"_a);
  for (const char* name : {"movedim", "moveaxis"})
    t.both(
        name, [](T x, const Dims& a, const Dims& b, L loc) { return movedim(x, a, b, loc); },
        "source"_a, "destination"_a);
  t.both("ravel", [](T x, L loc) { return ravel(x, loc); });
  t.both("fliplr", [](T x, L loc) { return fliplr(x, loc); });
  t.both("flipud", [](T x, L loc) { return flipud(x, loc); });
  t.both(
      "rot90", [](T x, int64_t k, const Dims& d, L loc) { return rot90(x, k, d, loc); }, "k"_a = 1,
      "dims"_a = nb::make_tuple(0, 1));
  t.both(
      "unbind", [](T x, int64_t d, L loc) { return unbind(x, d, loc); }, "dim"_a = 0);
  t.both(
      "tensor_split", [](T x, int64_t n, int64_t d, L loc) { return tensor_split(x, n, d, loc); },
      "sections"_a, "dim"_a = 0);
  t.both(
      "tensor_split",
      [](T x, const std::vector<int64_t>& n, int64_t d, L loc) {
        return tensor_split(x, n, d, loc);
      },
      "indices"_a, "dim"_a = 0);
  t.both(
      "diagonal",
      [](T x, int64_t o, int64_t a, int64_t b, L loc) { return diagonal(x, o, a, b, loc); },
      "offset"_a = 0, "dim1"_a = 0, "dim2"_a = 1);
  t.both(
      "roll",
      [](T x, const Dims& s, const std::optional<Dims>& d, L loc) {
        return roll(x, s, d.value_or(Dims()), loc);
      },
      "shifts"_a, "dims"_a.none() = nb::none());
  t.function(
      "tile", [](T x, const Dims& d, L loc) { return tile(x, d, loc); }, "input"_a, "dims"_a);
  auto of_size = [](Tensor y, OptDim d, OptDim size, const SourceLoc& loc) {
    const int64_t n = y.size(d.value_or(0), loc);
    if (size && *size != n)
      throw Error(
          ErrorKind::Value, "repeat_interleave",
          "output_size is " + std::to_string(*size) + ", but the result has " + std::to_string(n),
          loc);
    return y;
  };
  t.both(
      "repeat_interleave",
      [of_size](T x, int64_t n, OptDim d, OptDim size, L loc) {
        return of_size(repeat_interleave(x, n, d, loc), d, size, loc);
      },
      "repeats"_a, "dim"_a.none() = nb::none(), nb::kw_only(), "output_size"_a.none() = nb::none());
  t.both(
      "repeat_interleave",
      [of_size](T x, T n, OptDim d, OptDim size, L loc) {
        return of_size(repeat_interleave(x, n, d, loc), d, size, loc);
      },
      "repeats"_a, "dim"_a.none() = nb::none(), nb::kw_only(), "output_size"_a.none() = nb::none());
  t.both(
      "diag", [](T x, int64_t d, L loc) { return diag(x, d, loc); }, "diagonal"_a = 0);
  t.both(
      "diag_embed",
      [](T x, int64_t o, int64_t a, int64_t b, L loc) { return diag_embed(x, o, a, b, loc); },
      "offset"_a = 0, "dim1"_a = -2, "dim2"_a = -1);
  t.both(
      "diagflat", [](T x, int64_t o, L loc) { return diagflat(x, o, loc); }, "offset"_a = 0);
#define JOIN(name) \
  t.function(      \
      #name, [](Many x, L loc) { return name(x, loc); }, "tensors"_a)
  JOIN(hstack);
  JOIN(vstack);
  JOIN(row_stack);
  JOIN(dstack);
  JOIN(column_stack);
#undef JOIN
  t.function(
      "block_diag_list", [](Many x, L loc) { return block_diag(x, loc); }, "tensors"_a);
  t.function(
      "broadcast_list", [](Many x, L loc) { return broadcast_tensors(x, loc); }, "tensors"_a);
  t.function(
      "pad_mode",
      [](T x, const Dims& p, std::string_view mode, L loc) {
        return pad(x, p, mode, Scalar(0.0), loc);
      },
      "input"_a, "pad"_a, "mode"_a);
  t.function(
      "atleast_1d", [](T x, L loc) { return atleast_1d(x, loc); }, "input"_a);
  t.function(
      "atleast_2d", [](T x, L loc) { return atleast_2d(x, loc); }, "input"_a);
  t.function(
      "atleast_3d", [](T x, L loc) { return atleast_3d(x, loc); }, "input"_a);
}

}  // namespace

void bind_movement(Table& t) {
  bind_shapes(t);
  bind_pieces(t);
  bind_arrangements(t);
}

}  // namespace ingot_python
