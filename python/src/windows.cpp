// Convolutions, pooling and batch normalisation.
#include "bind.h"

namespace ingot_python {

// One number for every dim, or a sequence of one each.
struct PerDimIn {
  PerDim value;
};
struct PaddingIn {
  ConvPadding value;
};

}  // namespace ingot_python

namespace nanobind::detail {

template <>
struct type_caster<ingot_python::PerDimIn> {
  NB_TYPE_CASTER(ingot_python::PerDimIn, const_name("int | Sequence[int]"))
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept {
    if (src.is_none()) return true;
    ingot::Dims d;
    if (PyTuple_Check(src.ptr()) || PyList_Check(src.ptr())) {
      // adaptive pooling's None keeps a size
      Py_ssize_t n = PySequence_Fast_GET_SIZE(src.ptr());
      if (n > ingot::kMaxDims) return false;
      for (Py_ssize_t i = 0; i < n; ++i) {
        handle h = PySequence_Fast_GET_ITEM(src.ptr(), i);
        ingot::Dims one;
        if (h.is_none())
          one.push_back(-1);
        else if (!ingot_python::read_dims(h, one) || one.size() != 1)
          return false;
        d.push_back(one[0]);
      }
    } else if (!ingot_python::read_dims(src, d)) {
      return false;
    }
    value.value = ingot::PerDim(d);
    return true;
  }
};
template <>
struct type_caster<ingot_python::PaddingIn> {
  NB_TYPE_CASTER(ingot_python::PaddingIn, const_name("int | Sequence[int] | str"))
  bool from_python(handle src, uint32_t flags, cleanup_list* cleanup) noexcept {
    if (PyUnicode_Check(src.ptr())) {
      const char* word = PyUnicode_AsUTF8(src.ptr());
      if (!word) return false;
      value.value = ingot::ConvPadding(std::string_view(word));
      return true;
    }
    make_caster<ingot_python::PerDimIn> numbers;
    if (!numbers.from_python(src, flags, cleanup)) return false;
    value.value = ingot::ConvPadding(numbers.value.value);
    return true;
  }
};

}  // namespace nanobind::detail

namespace ingot_python {

using T = const Tensor&;
using L = SourceLoc;
using P = const PerDimIn&;

static void bind_convolutions(Table& t) {
#define CONV(name)                                                                          \
  t.function(                                                                               \
      #name,                                                                                \
      [](T x, T w, T b, P s, const PaddingIn& p, P d, int64_t g, L loc) {                   \
        return name(x, w, b, s.value, p.value, d.value, g, loc);                            \
      },                                                                                    \
      "input"_a, "weight"_a, "bias"_a.none() = nb::none(), "stride"_a = 1, "padding"_a = 0, \
      "dilation"_a = 1, "groups"_a = 1)
  CONV(conv1d);
  CONV(conv2d);
  CONV(conv3d);
#undef CONV
#define CONV(name)                                                                          \
  t.function(                                                                               \
      #name,                                                                                \
      [](T x, T w, T b, P s, P p, P o, int64_t g, P d, L loc) {                             \
        return name(x, w, b, s.value, p.value, o.value, g, d.value, loc);                   \
      },                                                                                    \
      "input"_a, "weight"_a, "bias"_a.none() = nb::none(), "stride"_a = 1, "padding"_a = 0, \
      "output_padding"_a = 0, "groups"_a = 1, "dilation"_a = 1)
  CONV(conv_transpose1d);
  CONV(conv_transpose2d);
  CONV(conv_transpose3d);
#undef CONV
}

static void bind_pools(Table& t) {
#define POOL(name)                                                                               \
  t.function(                                                                                    \
      #name,                                                                                     \
      [](T x, P k, P s, P p, P d, bool ceil, L loc) {                                            \
        return name(x, k.value, s.value, p.value, d.value, ceil, loc);                           \
      },                                                                                         \
      "input"_a, "kernel_size"_a, "stride"_a.none() = nb::none(), "padding"_a = 0,               \
      "dilation"_a = 1, "ceil_mode"_a = false);                                                  \
  t.function(                                                                                    \
      #name "_with_indices",                                                                     \
      [](T x, P k, P s, P p, P d, bool ceil, L loc) {                                            \
        ValuesIndices v = name##_with_indices(x, k.value, s.value, p.value, d.value, ceil, loc); \
        return std::make_pair(v.values, v.indices);                                              \
      },                                                                                         \
      "input"_a, "kernel_size"_a, "stride"_a.none() = nb::none(), "padding"_a = 0,               \
      "dilation"_a = 1, "ceil_mode"_a = false)
  POOL(max_pool1d);
  POOL(max_pool2d);
  POOL(max_pool3d);
#undef POOL
  t.function(
      "avg_pool1d",
      [](T x, P k, P s, P p, bool ceil, bool include, L loc) {
        return avg_pool1d(x, k.value, s.value, p.value, ceil, include, loc);
      },
      "input"_a, "kernel_size"_a, "stride"_a.none() = nb::none(), "padding"_a = 0,
      "ceil_mode"_a = false, "count_include_pad"_a = true);
#define POOL(name)                                                                             \
  t.function(                                                                                  \
      #name,                                                                                   \
      [](T x, P k, P s, P p, bool ceil, bool include, std::optional<int64_t> divisor, L loc) { \
        return name(x, k.value, s.value, p.value, ceil, include, divisor, loc);                \
      },                                                                                       \
      "input"_a, "kernel_size"_a, "stride"_a.none() = nb::none(), "padding"_a = 0,             \
      "ceil_mode"_a = false, "count_include_pad"_a = true,                                     \
      "divisor_override"_a.none() = nb::none())
  POOL(avg_pool2d);
  POOL(avg_pool3d);
#undef POOL
#define POOL(name)                                                               \
  t.function(                                                                    \
      #name,                                                                     \
      [](T x, double n, P k, P s, bool ceil, L loc) {                            \
        return name(x, n, k.value, s.value, ceil, loc);                          \
      },                                                                         \
      "input"_a, "norm_type"_a, "kernel_size"_a, "stride"_a.none() = nb::none(), \
      "ceil_mode"_a = false)
  POOL(lp_pool1d);
  POOL(lp_pool2d);
  POOL(lp_pool3d);
#undef POOL
#define POOL(name) \
  t.function(      \
      #name, [](T x, P n, L loc) { return name(x, n.value, loc); }, "input"_a, "output_size"_a)
  POOL(adaptive_avg_pool1d);
  POOL(adaptive_avg_pool2d);
  POOL(adaptive_avg_pool3d);
  POOL(adaptive_max_pool1d);
  POOL(adaptive_max_pool2d);
  POOL(adaptive_max_pool3d);
#undef POOL
}

static void bind_columns(Table& t) {
  t.function(
      "_unfold",
      [](T x, P k, P d, P p, P s, L loc) {
        return unfold(x, k.value, d.value, p.value, s.value, loc);
      },
      "input"_a, "kernel_size"_a, "dilation"_a = 1, "padding"_a = 0, "stride"_a = 1);
  t.function(
      "_fold",
      [](T x, P size, P k, P d, P p, P s, L loc) {
        return fold(x, size.value, k.value, d.value, p.value, s.value, loc);
      },
      "input"_a, "output_size"_a, "kernel_size"_a, "dilation"_a = 1, "padding"_a = 0,
      "stride"_a = 1);
}

void bind_windows(Table& t) {
  t.function(
      "_instance_norm",
      [](T x, T mean, T var, T w, T b, bool input_stats, double momentum, double eps, L loc) {
        return instance_norm(x, mean, var, w, b, input_stats, momentum, eps, loc);
      },
      "input"_a, "running_mean"_a.none() = nb::none(), "running_var"_a.none() = nb::none(),
      "weight"_a.none() = nb::none(), "bias"_a.none() = nb::none(), "use_input_stats"_a = true,
      "momentum"_a = 0.1, "eps"_a = 1e-5);
  t.function(
      "_interpolate",
      [](T x, P size, const std::vector<double>& scale, std::string_view mode, bool align,
         bool recompute, L loc) {
        InterpolateOptions o;
        o.size = size.value, o.scale_factor = scale, o.mode = mode;
        o.align_corners = align, o.recompute_scale_factor = recompute;
        return interpolate(x, o, loc);
      },
      "input"_a, "size"_a.none(), "scale_factor"_a, "mode"_a, "align_corners"_a,
      "recompute_scale_factor"_a);
  bind_convolutions(t);
  bind_pools(t);
  bind_columns(t);
  t.function(
      "batch_norm",
      [](T x, T mean, T var, T w, T b, bool training, double momentum, double eps, L loc) {
        return batch_norm(x, mean, var, w, b, training, momentum, eps, loc);
      },
      "input"_a, "running_mean"_a.none(), "running_var"_a.none(), "weight"_a.none() = nb::none(),
      "bias"_a.none() = nb::none(), "training"_a = false, "momentum"_a = 0.1, "eps"_a = 1e-5);
}

}  // namespace ingot_python
