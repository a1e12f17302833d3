// Creation, random numbers, and movement: shapes, pieces, joins.
#include <algorithm>

#include "bind.h"

namespace ingot_python {
namespace {

using T = const Tensor&;
using L = SourceLoc;
using OptType = std::optional<DType>;
using OptDevice = std::optional<DeviceIn>;

Tensor finish(Tensor t, bool requires_grad, const SourceLoc& loc) {
  if (requires_grad) t.requires_grad_(true, loc);
  return t;
}

#define MAKER_ARGS                                                              \
  nb::kw_only(), "dtype"_a.none() = nb::none(), "device"_a.none() = nb::none(), \
                 "requires_grad"_a = false

// f(*size, dtype=, device=, requires_grad=) and f_like(input, ...).
void bind_sized(nb::module_& m) {
#define SIZED(name)                                                                                \
  def(                                                                                             \
      m, #name,                                                                                    \
      [](const nb::args& size, const OptType& t, const OptDevice& d, bool grad) {                  \
        SourceLoc loc = here();                                                                    \
        Dims shape = dims_of(size, #name);                                                         \
        return recorded([&] { return finish(name(shape, options_of(t, d), loc), grad, loc); });    \
      },                                                                                           \
      "size"_a, "dtype"_a.none() = nb::none(), "device"_a.none() = nb::none(),                     \
      "requires_grad"_a = false);                                                                  \
  def(                                                                                             \
      m, #name "_like",                                                                            \
      [](const TensorIn& x, const OptType& t, const OptDevice& d, bool grad, nb::handle) {         \
        SourceLoc loc = here();                                                                    \
        return recorded([&] { return finish(name##_like(x, options_of(t, d), loc), grad, loc); }); \
      },                                                                                           \
      "input"_a, MAKER_ARGS, "memory_format"_a.none() = nb::none());
  SIZED(empty)
  SIZED(zeros)
  SIZED(ones)
#undef SIZED
#define SIZED(name)                                                                             \
  def(                                                                                          \
      m, #name,                                                                                 \
      [](const nb::args& size, const OptType& t, const OptDevice& d, bool grad,                 \
         const std::optional<Generator>& g) {                                                   \
        SourceLoc loc = here();                                                                 \
        Dims shape = dims_of(size, #name);                                                      \
        return recorded([&] {                                                                   \
          return finish(name(shape, options_of(t, d), g ? *g : default_generator(), loc), grad, \
                        loc);                                                                   \
        });                                                                                     \
      },                                                                                        \
      "size"_a, "dtype"_a.none() = nb::none(), "device"_a.none() = nb::none(),                  \
      "requires_grad"_a = false, "generator"_a.none() = nb::none());                            \
  def(                                                                                          \
      m, #name "_like",                                                                         \
      [](const TensorIn& x, const OptType& t, const OptDevice& d, bool grad) {                  \
        SourceLoc loc = here();                                                                 \
        return recorded([&] {                                                                   \
          return finish(name##_like(x, options_of(t, d), default_generator(), loc), grad, loc); \
        });                                                                                     \
      },                                                                                        \
      "input"_a, MAKER_ARGS);
  SIZED(rand)
  SIZED(randn)
#undef SIZED
}

void bind_filled(nb::module_& m) {
  def(
      m, "full",
      [](const Dims& shape, const Scalar& v, const OptType& t, const OptDevice& d, bool grad) {
        SourceLoc loc = here();
        if (!t && is_huge(v)) check_fits(v, DType::Int64, "full", loc);
        return recorded([&] { return finish(full(shape, v, options_of(t, d), loc), grad, loc); });
      },
      "size"_a, "fill_value"_a, MAKER_ARGS);
  def(
      m, "full_like",
      [](const TensorIn& x, const Scalar& v, const OptType& t, const OptDevice& d, bool grad) {
        SourceLoc loc = here();
        return recorded([&] { return finish(full_like(x, v, options_of(t, d), loc), grad, loc); });
      },
      "input"_a, "fill_value"_a, MAKER_ARGS,
      "fill_value in the shape of input, with its type and device unless given.");
  auto range = [](const Scalar& start, const std::optional<Scalar>& end, const Scalar& step,
                  const OptType& t, const OptDevice& d, bool grad) {
    SourceLoc loc = here();
    return recorded([&] {
      return finish(end ? arange(start, *end, step, options_of(t, d), loc)
                        : arange(Scalar(0), start, step, options_of(t, d), loc),
                    grad, loc);
    });
  };
  def(m, "arange", range, "start"_a, "end"_a.none() = nb::none(), "step"_a = 1, MAKER_ARGS);
  def(
      m, "arange",
      [range](const Scalar& end, const OptType& t, const OptDevice& d, bool grad) {
        return range(end, std::nullopt, Scalar(1), t, d, grad);
      },
      nb::kw_only(), "end"_a, "dtype"_a.none() = nb::none(), "device"_a.none() = nb::none(),
      "requires_grad"_a = false);
  def(
      m, "linspace",
      [](double start, double end, int64_t steps, const OptType& t, const OptDevice& d, bool grad) {
        SourceLoc loc = here();
        return recorded(
            [&] { return finish(linspace(start, end, steps, options_of(t, d), loc), grad, loc); });
      },
      "start"_a, "end"_a, "steps"_a, MAKER_ARGS);
  def(
      m, "eye",
      [](int64_t n, std::optional<int64_t> k, const OptType& t, const OptDevice& d, bool grad) {
        SourceLoc loc = here();
        return recorded([&] { return finish(eye(n, k, options_of(t, d), loc), grad, loc); });
      },
      "n"_a, "m"_a.none() = nb::none(), MAKER_ARGS);
  def(
      m, "argument",
      [](double v, const OptType& t, const OptDevice& d) {
        return argument(v, options_of(t, d), here());
      },
      "value"_a, nb::kw_only(), "dtype"_a.none() = nb::none(), "device"_a.none() = nb::none(),
      "A 0-d number that may differ from run to run without another plan.");
}

void bind_random(nb::module_& m) {
  nb::class_<Generator>(m, "Generator", "A source of random numbers: a seed and a counter.")
      .def(
          "__init__",
          [](Generator* g, const std::optional<DeviceIn>& device) {
            if (device)
              device->get();  // an unknown one is an error; the values are the same on every device
            new (g) Generator(0);
          },
          "device"_a.none() = nb::none())
      .def(
          "manual_seed",
          [](const Generator& g, uint64_t seed) {
            g.manual_seed(seed);
            return g;
          },
          "seed"_a)
      .def("seed", &Generator::seed)
      .def("initial_seed", &Generator::seed)
      .def("offset", &Generator::offset)
      .def("set_offset", &Generator::set_offset, "offset"_a);
  def(m, "default_generator", [] { return default_generator(); });
  def(
      m, "manual_seed",
      [](uint64_t seed) {
        manual_seed(seed);
        return default_generator();
      },
      "seed"_a);
  auto ints = [](int64_t low, int64_t high, const Dims& size, const std::optional<Generator>& g,
                 const OptType& t, const OptDevice& d) {
    SourceLoc loc = here();
    return recorded([&] {
      return randint(low, high, size, options_of(t, d), g ? *g : default_generator(), loc);
    });
  };
  def(
      m, "bernoulli",
      [](const TensorIn& p, const std::optional<Generator>& g) {
        SourceLoc loc = here();
        return recorded([&] { return bernoulli(p, g ? *g : default_generator(), loc); });
      },
      "input"_a, "generator"_a.none() = nb::none());
  def(
      m, "normal",
      [](const TensorIn& mean, const TensorIn& std, const std::optional<Generator>& g) {
        SourceLoc loc = here();
        const Tensor& deviations = std;
        return recorded(
            [&] { return normal(mean, deviations, g ? *g : default_generator(), loc); });
      },
      "mean"_a, "std"_a, "generator"_a.none() = nb::none());
  def(m, "randint", ints, "low"_a, "high"_a, "size"_a, nb::kw_only(),
      "generator"_a.none() = nb::none(), "dtype"_a.none() = nb::none(),
      "device"_a.none() = nb::none());
  def(
      m, "randint",
      [ints](int64_t high, const Dims& size, const std::optional<Generator>& g, const OptType& t,
             const OptDevice& d) { return ints(0, high, size, g, t, d); },
      "high"_a, "size"_a, nb::kw_only(), "generator"_a.none() = nb::none(),
      "dtype"_a.none() = nb::none(), "device"_a.none() = nb::none());
}

// x.view(2, 3) and x.view((2, 3)).
template <class F>
void sized_method(Table& t, const char* name, const char* keyword, F f) {
  auto c = nb::borrow<nb::class_<Tensor>>(t.tensor());
  const char* doc = doc_of(std::string_view(name) == "view" ? "reshape" : name);
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
  using Many = const std::vector<Tensor>&;
  for (const char* name : {"cat", "concat", "concatenate"})
    t.function(
        name, [](Many x, int64_t dim, L loc) { return cat(x, dim, loc); }, "tensors"_a,
        "dim"_a = 0);
  t.function(
      "stack", [](Many x, int64_t dim, L loc) { return stack(x, dim, loc); }, "tensors"_a,
      "dim"_a = 0);
}

}  // namespace

void bind_creation(nb::module_& m) {
  bind_random(m);
  bind_sized(m);
  bind_filled(m);
}

void bind_movement(Table& t) {
  bind_shapes(t);
  bind_pieces(t);
}

}  // namespace ingot_python
