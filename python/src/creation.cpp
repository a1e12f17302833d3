// Creation and random numbers.
#include "bind.h"

namespace ingot_python {
namespace {

using T = const Tensor&;
using Many = const std::vector<Tensor>&;
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

void bind_sequences(Table& t) {
  t.function(
      "logspace",
      [](double a, double b, int64_t n, double base, const OptType& type, const OptDevice& d,
         L loc) { return logspace(a, b, n, base, options_of(type, d), loc); },
      "start"_a, "end"_a, "steps"_a, "base"_a = 10.0, nb::kw_only(), "dtype"_a.none() = nb::none(),
      "device"_a.none() = nb::none());
#define TRIANGLE(name)                                                                      \
  t.function(                                                                               \
      #name,                                                                                \
      [](int64_t r, int64_t c, int64_t o, const OptType& type, const OptDevice& d, L loc) { \
        return name(r, c, o, options_of(type, d), loc);                                     \
      },                                                                                    \
      "row"_a, "col"_a, "offset"_a = 0, nb::kw_only(), "dtype"_a.none() = nb::none(),       \
      "device"_a.none() = nb::none())
  TRIANGLE(tril_indices);
  TRIANGLE(triu_indices);
#undef TRIANGLE
  t.function(
      "randint_like",
      [](T x, int64_t lo, int64_t hi, const OptType& type, const OptDevice& d, L loc) {
        return randint_like(x, lo, hi, options_of(type, d), default_generator(), loc);
      },
      "input"_a, "low"_a, "high"_a, nb::kw_only(), "dtype"_a.none() = nb::none(),
      "device"_a.none() = nb::none());
  t.function(
      "meshgrid_list", [](Many x, std::string_view i, L loc) { return meshgrid(x, i, loc); },
      "tensors"_a, "indexing"_a = "ij");
}

}  // namespace

void bind_creation(nb::module_& m, Table& t) {
  bind_random(m);
  bind_sized(m);
  bind_filled(m);
  bind_sequences(t);
}

}  // namespace ingot_python
