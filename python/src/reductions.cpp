// Reductions, products, and gathering by index.
#include "bind.h"

namespace ingot_python {
namespace {

using T = const Tensor&;
using L = SourceLoc;
using OptType = std::optional<DType>;
using OptDim = std::optional<int64_t>;

Tensor as(T x, const OptType& t, const SourceLoc& loc) { return t ? x.to(*t, loc) : x; }

// A 0-d tensor counts as one of a single element.
Tensor at_least_1d(T x, const SourceLoc& loc) { return x.dim() ? x : x.reshape({1}, loc); }

void bind_sums(Table& t) {
#define REDUCE(name)                                                    \
  t.both(                                                               \
      #name,                                                            \
      [](T x, const Axes& dim, bool keep, const OptType& type, L loc) { \
        return name(as(x, type, loc), dim, keep, loc);                  \
      },                                                                \
      "dim"_a.none() = nb::none(), "keepdim"_a = false, nb::kw_only(),  \
      "dtype"_a.none() = nb::none())
  REDUCE(sum);
  REDUCE(mean);
  REDUCE(prod);
  REDUCE(nansum);
  REDUCE(nanmean);
#undef REDUCE
#define REDUCE(name)                                                                         \
  t.both(                                                                                    \
      #name, [](T x, const Axes& dim, bool keep, L loc) { return name(x, dim, keep, loc); }, \
      "dim"_a.none() = nb::none(), "keepdim"_a = false)
  REDUCE(amax);
  REDUCE(amin);
  REDUCE(any);
  REDUCE(all);
#undef REDUCE
  t.both(
      "logsumexp",
      [](T x, const Axes& dim, bool keep, L loc) { return logsumexp(x, dim, keep, loc); }, "dim"_a,
      "keepdim"_a = false);
#define SPREAD(name)                                                                               \
  t.both(                                                                                          \
      #name,                                                                                       \
      [](T x, const Axes& dim, std::optional<double> correction, bool keep, L loc) {               \
        return ingot::name(x, dim, correction.value_or(1), keep, loc);                             \
      },                                                                                           \
      "dim"_a.none() = nb::none(), nb::kw_only(), "correction"_a.none() = 1, "keepdim"_a = false); \
  t.both(                                                                                          \
      #name,                                                                                       \
      [](T x, const Axes& dim, bool unbiased, bool keep, L loc) {                                  \
        return ingot::name(x, dim, unbiased ? 1 : 0, keep, loc);                                   \
      },                                                                                           \
      "dim"_a.none(), "unbiased"_a = true, "keepdim"_a = false);                                   \
  t.both(                                                                                          \
      #name,                                                                                       \
      [](T x, bool unbiased, L loc) { return ingot::name(x, {}, unbiased ? 1 : 0, false, loc); },  \
      "unbiased"_a)
  SPREAD(var);
  SPREAD(std);
#undef SPREAD
#define PLACE(name)                                                                              \
  t.both(                                                                                        \
      #name,                                                                                     \
      [](T x, std::optional<int64_t> dim, bool keep, L loc) { return name(x, dim, keep, loc); }, \
      "dim"_a.none() = nb::none(), "keepdim"_a = false)
  PLACE(argmax);
  PLACE(argmin);
#undef PLACE
}

// max(x), max(x, dim), max(x, other).
void bind_extremes(Table& t) {
#define EXTREME(name)                                                                         \
  t.both(#name, [](T x, L loc) { return name(x, loc); });                                     \
  t.both(                                                                                     \
      #name, [](T a, T b, L loc) { return name(a, b, loc); }, "other"_a);                     \
  t.both(                                                                                     \
      #name, [](T x, int64_t d, bool keep, L loc) { return name(x, d, keep, loc); }, "dim"_a, \
      "keepdim"_a = false)
  EXTREME(max);
  EXTREME(min);
#undef EXTREME
}

void bind_pairs_and_norms(Table& t) {
#define SPREAD(name)                                                                               \
  t.both(                                                                                          \
      #name,                                                                                       \
      [](T x, const Axes& d, std::optional<double> c, bool keep, L loc) {                          \
        return name(x, d, c.value_or(1), keep, loc);                                               \
      },                                                                                           \
      "dim"_a.none() = nb::none(), nb::kw_only(), "correction"_a.none() = 1, "keepdim"_a = false); \
  t.both(                                                                                          \
      #name,                                                                                       \
      [](T x, const Axes& d, bool unbiased, bool keep, L loc) {                                    \
        return name(x, d, unbiased, keep, loc);                                                    \
      },                                                                                           \
      "dim"_a.none(), "unbiased"_a = true, "keepdim"_a = false);                                   \
  t.both(                                                                                          \
      #name, [](T x, bool unbiased, L loc) { return name(x, {}, unbiased, false, loc); },          \
      "unbiased"_a)
  SPREAD(var_mean);
  SPREAD(std_mean);
#undef SPREAD
  t.function(
      "aminmax_pair",
      [](T x, OptDim d, bool keep, L loc) {
        MinMax m = aminmax(x, d, keep, loc);
        return std::make_pair(m.min, m.max);
      },
      "input"_a, nb::kw_only(), "dim"_a.none() = nb::none(), "keepdim"_a = false);
  t.function(
      "vector_norm",
      [](T x, double p, const Axes& d, bool keep, L loc) {
        return vector_norm(x, p, d, keep, loc);
      },
      "x"_a, "ord"_a = 2.0, "dim"_a.none() = nb::none(), "keepdim"_a = false);
  t.both(
      "count_nonzero", [](T x, const Axes& d, L loc) { return count_nonzero(x, d, loc); },
      "dim"_a.none() = nb::none());
}

void bind_statistics(Table& t) {
  t.both(
      "cov", [](T x, int64_t correction, T f, T a, L loc) { return cov(x, correction, f, a, loc); },
      nb::kw_only(), "correction"_a = 1, "fweights"_a.none() = nb::none(),
      "aweights"_a.none() = nb::none());
  t.both("corrcoef", [](T x, L loc) { return corrcoef(x, loc); });
#define QUANTILE(name)                                                                \
  t.both(                                                                             \
      #name,                                                                          \
      [](T x, const Operand& q, OptDim d, bool keep, const std::string& how, L loc) { \
        return name(x, q, d, keep, how, loc);                                         \
      },                                                                              \
      "q"_a, "dim"_a.none() = nb::none(), "keepdim"_a = false, nb::kw_only(),         \
      "interpolation"_a = "linear")
  QUANTILE(quantile);
  QUANTILE(nanquantile);
#undef QUANTILE
}

void bind_products(Table& t) {
  t.both(
      "matmul", [](T a, T b, L loc) { return matmul(a, b, loc); }, "other"_a);
  t.both(
      "gather",
      [](T x, int64_t dim, T index, L loc) {
        if (index.defined() && !index.numel())
          return zeros(index.shape(), Options(x.dtype(), x.device()), loc);  // of any integer type
        if (x.dim() && index.dim()) return gather(x, dim, index, loc);
        return gather(at_least_1d(x, loc), dim, at_least_1d(index, loc), loc)
            .reshape(index.shape(), loc);
      },
      "dim"_a, "index"_a);
  t.both(
      "index_select",
      [](T x, int64_t dim, T index, L loc) {
        return x.dim() ? index_select(x, dim, at_least_1d(index, loc), loc)
                       : index_select(at_least_1d(x, loc), dim, at_least_1d(index, loc), loc)
                             .reshape({}, loc);
      },
      "dim"_a, "index"_a);
  // x[index] and x[index] = values for python/ingot/_indexing.py: negative indices count from the
  // end.
  t.function(
      "pick_rows", [](T x, T index, L loc) { return Tensor(x[Indices(index, loc)]); }, "x"_a,
      "index"_a);
  t.function(
      "put_rows",
      [](T x, T index, T values, L loc) {
        return index_put(x, Indices(index, loc), Operand(values, loc), false, loc);
      },
      "x"_a, "index"_a, "values"_a);
}

}  // namespace

void bind_reductions(Table& t) {
  bind_sums(t);
  bind_extremes(t);
  bind_pairs_and_norms(t);
  bind_statistics(t);
  bind_products(t);
}

}  // namespace ingot_python
