// Running values, sorting, searching, writing by index.
#include <tuple>

#include "bind.h"

namespace ingot_python {
namespace {

using T = const Tensor&;
using O = const Operand&;
using L = SourceLoc;
using OptType = std::optional<DType>;
using OptDim = std::optional<int64_t>;

void bind_order(Table& t) {
  t.both(
      "cumsum", [](T x, int64_t d, const OptType& type, L loc) { return cumsum(x, d, type, loc); },
      "dim"_a, nb::kw_only(), "dtype"_a.none() = nb::none());
  t.both(
      "cumprod",
      [](T x, int64_t d, const OptType& type, L loc) { return cumprod(x, d, type, loc); }, "dim"_a,
      nb::kw_only(), "dtype"_a.none() = nb::none());
  t.both(
      "logcumsumexp", [](T x, int64_t d, L loc) { return logcumsumexp(x, d, loc); }, "dim"_a);
  t.both(
      "cummax", [](T x, int64_t d, L loc) { return cummax(x, d, loc); }, "dim"_a);
  t.both(
      "cummin", [](T x, int64_t d, L loc) { return cummin(x, d, loc); }, "dim"_a);
  t.both(
      "sort", [](T x, int64_t d, bool down, bool, L loc) { return sort(x, d, down, loc); },
      "dim"_a = -1, "descending"_a = false, "stable"_a = false);
  t.both(
      "argsort",
      [](T x, int64_t d, bool down, bool stable, L loc) {
        return argsort(x, d, down, stable, loc);
      },
      "dim"_a = -1, "descending"_a = false, "stable"_a = false);
  t.both("msort", [](T x, L loc) { return msort(x, loc); });
  t.both(
      "topk",
      [](T x, int64_t k, int64_t d, bool largest, bool sorted, L loc) {
        return topk(x, k, d, largest, sorted, loc);
      },
      "k"_a, "dim"_a = -1, "largest"_a = true, "sorted"_a = true);
  t.both(
      "kthvalue",
      [](T x, int64_t k, int64_t d, bool keep, L loc) { return kthvalue(x, k, d, keep, loc); },
      "k"_a, "dim"_a = -1, "keepdim"_a = false);
  t.both("median", [](T x, L loc) { return median(x, loc); });
  t.both(
      "median", [](T x, int64_t d, bool keep, L loc) { return median(x, d, keep, loc); }, "dim"_a,
      "keepdim"_a = false);
  t.both("nanmedian", [](T x, L loc) { return nanmedian(x, loc); });
  t.both(
      "nanmedian", [](T x, int64_t d, bool keep, L loc) { return nanmedian(x, d, keep, loc); },
      "dim"_a, "keepdim"_a = false);
  auto is_right = [](bool right, const std::optional<std::string>& side, const SourceLoc& loc) {
    if (!side) return right;
    if (*side != "left" && *side != "right")
      throw Error(ErrorKind::Value, "searchsorted",
                  "side is 'left' or 'right', not '" + *side + "'", loc);
    if (right && *side == "left")
      throw Error(ErrorKind::Value, "searchsorted", "right=True contradicts side='left'", loc,
                  "give one of them");
    return *side == "right";
  };
  t.function(
      "searchsorted",
      [is_right](T given, O v, bool small, bool right, const std::optional<std::string>& side,
                 T sorter, L loc) {
        Tensor s = sorter.defined() ? gather(given, -1, sorter, loc) : given;
        const bool behind = is_right(right, side, loc);
        Tensor at = v.tensor ? searchsorted(s, *v.tensor, behind, loc)
                             : searchsorted(s, v.scalar, behind, loc);
        return small ? at.to(DType::Int32, loc) : at;
      },
      "sorted_sequence"_a, "input"_a, nb::kw_only(), "out_int32"_a = false, "right"_a = false,
      "side"_a.none() = nb::none(), "sorter"_a.none() = nb::none());
  t.function(
      "bucketize",
      [](T x, T b, bool small, bool right, L loc) {
        Tensor at = bucketize(x, b, right, loc);
        return small ? at.to(DType::Int32, loc) : at;
      },
      "input"_a, "boundaries"_a, nb::kw_only(), "out_int32"_a = false, "right"_a = false);
  t.function(
      "unique_parts",
      [](T x, L loc) {
        Unique u = unique(x, loc);
        return std::make_tuple(u.values, u.inverse, u.counts);
      },
      "input"_a);
  t.both(
      "bincount", [](T x, T w, int64_t n, L loc) { return bincount(x, w, n, loc); },
      "weights"_a.none() = nb::none(), "minlength"_a = 0);
  t.both(
      "histc", [](T x, int64_t n, double lo, double hi, L loc) { return histc(x, n, lo, hi, loc); },
      "bins"_a = 100, "min"_a = 0.0, "max"_a = 0.0);
}

void bind_writing(Table& t) {
  t.function(
      "scatter_set", [](T x, int64_t d, T i, O src, L loc) { return scatter(x, d, i, src, loc); },
      "input"_a, "dim"_a, "index"_a, "src"_a);
  t.both(
      "scatter_add",
      [](T x, int64_t d, T i, T src, L loc) { return scatter_add(x, d, i, src, loc); }, "dim"_a,
      "index"_a, "src"_a);
  t.both(
      "scatter_reduce",
      [](T x, int64_t d, T i, T src, std::string_view r, bool self, L loc) {
        return scatter_reduce(x, d, i, src, r, self, loc);
      },
      "dim"_a, "index"_a, "src"_a, "reduce"_a, nb::kw_only(), "include_self"_a = true);
  t.both(
      "index_add",
      [](T x, int64_t d, T i, T s, const Scalar& alpha, L loc) {
        return index_add(x, d, i, s, alpha, loc);
      },
      "dim"_a, "index"_a, "source"_a, nb::kw_only(), "alpha"_a = 1);
  t.both(
      "index_copy", [](T x, int64_t d, T i, T s, L loc) { return index_copy(x, d, i, s, loc); },
      "dim"_a, "index"_a, "source"_a);
  t.both(
      "index_fill", [](T x, int64_t d, T i, O v, L loc) { return index_fill(x, d, i, v, loc); },
      "dim"_a, "index"_a, "value"_a);
  t.both(
      "take_along_dim", [](T x, T i, OptDim d, L loc) { return take_along_dim(x, i, d, loc); },
      "indices"_a, "dim"_a.none() = nb::none());
  t.both(
      "take", [](T x, T i, L loc) { return take(x, i, loc); }, "index"_a);
  t.both(
      "put", [](T x, T i, T s, bool add, L loc) { return put(x, i, s, add, loc); }, "index"_a,
      "source"_a, "accumulate"_a = false);
  t.both(
      "masked_select", [](T x, T m, L loc) { return masked_select(x, m, loc); }, "mask"_a);
  t.both(
      "masked_scatter", [](T x, T m, T s, L loc) { return masked_scatter(x, m, s, loc); }, "mask"_a,
      "source"_a);
  t.function(
      "nonzero_rows", [](T x, L loc) { return nonzero(x, loc); }, "input"_a);
  t.both("argwhere", [](T x, L loc) { return argwhere(x, loc); });
  t.function(
      "where", [](T c, L loc) { return where(c, loc); }, "condition"_a);
  t.function(
      "one_hot", [](T x, L loc) { return one_hot(x, loc); }, "tensor"_a);
  t.function(
      "embedding",
      [](T index, T w, int64_t padding, L loc) { return embedding(w, index, padding, loc); },
      "input"_a, "weight"_a, "padding_idx"_a);
}

}  // namespace

void bind_sorting(Table& t) {
  bind_order(t);
  bind_writing(t);
}

}  // namespace ingot_python
