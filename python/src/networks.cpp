// The functions of networks; python/ingot/nn/functional.py gives them PyTorch's signatures where
// that needs more than a line.
#include "bind.h"

namespace ingot_python {

using T = const Tensor&;
using L = SourceLoc;
using OptType = std::optional<DType>;

static Tensor as(T x, const OptType& t, const SourceLoc& loc) { return t ? x.to(*t, loc) : x; }

void bind_networks(Table& t) {
  t.both(
      "softmax",
      [](T x, int64_t d, const OptType& type, L loc) { return softmax(as(x, type, loc), d, loc); },
      "dim"_a, "dtype"_a.none() = nb::none());
  t.both(
      "log_softmax",
      [](T x, int64_t d, const OptType& type, L loc) {
        return log_softmax(as(x, type, loc), d, loc);
      },
      "dim"_a, "dtype"_a.none() = nb::none());
  t.function(
      "gelu", [](T x, std::string_view a, L loc) { return gelu(x, a, loc); }, "input"_a,
      "approximate"_a = "none");
  t.function(
      "silu", [](T x, L loc) { return silu(x, loc); }, "input"_a);
  t.function(
      "softplus",
      [](T x, double beta, double threshold, L loc) { return softplus(x, beta, threshold, loc); },
      "input"_a, "beta"_a = 1.0, "threshold"_a = 20.0);
  t.function(
      "leaky_relu", [](T x, double s, L loc) { return leaky_relu(x, s, loc); }, "input"_a,
      "negative_slope"_a = 0.01);
  t.function(
      "linear", [](T x, T w, T b, L loc) { return linear(x, w, b, loc); }, "input"_a, "weight"_a,
      "bias"_a.none() = nb::none());
  t.function(
      "embedding", [](T index, T w, L loc) { return embedding(w, index, loc); }, "input"_a,
      "weight"_a);
  t.function(
      "one_hot", [](T x, int64_t n, L loc) { return one_hot(x, n, loc); }, "tensor"_a,
      "num_classes"_a);
  t.function(
      "layer_norm",
      [](T x, const Dims& s, T w, T b, double eps, L loc) {
        return layer_norm(x, s, w, b, eps, loc);
      },
      "input"_a, "normalized_shape"_a, "weight"_a.none() = nb::none(), "bias"_a.none() = nb::none(),
      "eps"_a = 1e-5);
  t.function(
      "rms_norm",
      [](T x, const Dims& s, T w, std::optional<double> eps, L loc) {
        return rms_norm(x, s, w, eps, loc);
      },
      "input"_a, "normalized_shape"_a, "weight"_a.none() = nb::none(), "eps"_a.none() = nb::none());
  t.function(
      "dropout",
      [](T x, double p, bool train, L loc) {
        return dropout(x, p, train, default_generator(), loc);
      },
      "input"_a, "p"_a = 0.5, "training"_a = true);
  t.function(
      "pad_constant", [](T x, const Dims& p, const Scalar& v, L loc) { return pad(x, p, v, loc); },
      "input"_a, "pad"_a, "value"_a = 0.0);
  t.function(
      "scaled_dot_product_attention",
      [](T q, T k, T v, T mask, double p, bool causal, std::optional<double> scale, L loc) {
        AttentionOptions o;
        o.mask = mask;
        o.dropout_p = p;
        o.is_causal = causal;
        o.scale = scale;
        return scaled_dot_product_attention(q, k, v, o, loc);
      },
      "query"_a, "key"_a, "value"_a, "attn_mask"_a.none() = nb::none(), "dropout_p"_a = 0.0,
      "is_causal"_a = false, "scale"_a.none() = nb::none());
  auto entropy = [](T weight, int64_t ignore, std::string_view reduction, double smoothing) {
    CrossEntropyOptions o;
    o.weight = weight;
    o.ignore_index = ignore;
    o.reduction = reduction;
    o.label_smoothing = smoothing;
    return o;
  };
  t.function(
      "cross_entropy",
      [entropy](T x, T y, T w, int64_t ignore, std::string_view r, double s, L loc) {
        return cross_entropy(x, y, entropy(w, ignore, r, s), loc);
      },
      "input"_a, "target"_a, "weight"_a.none() = nb::none(), "ignore_index"_a = -100,
      "reduction"_a = "mean", "label_smoothing"_a = 0.0);
  t.function(
      "nll_loss",
      [entropy](T x, T y, T w, int64_t ignore, std::string_view r, L loc) {
        return nll_loss(x, y, entropy(w, ignore, r, 0), loc);
      },
      "input"_a, "target"_a, "weight"_a.none() = nb::none(), "ignore_index"_a = -100,
      "reduction"_a = "mean");
  t.function(
      "mse_loss", [](T x, T y, std::string_view r, L loc) { return mse_loss(x, y, r, loc); },
      "input"_a, "target"_a, "reduction"_a = "mean");
  t.function(
      "_recurrent",
      [](std::string_view kind, T x, T h0, T c0, const std::vector<Tensor>& weights, bool bias,
         int64_t layers, double dropout, bool training, bool both, bool batch_first,
         const std::vector<int64_t>& lengths, L loc) {
        RnnOptions o;
        o.num_layers = layers;
        o.dropout = dropout;
        o.training = training;
        o.bidirectional = both;
        o.batch_first = batch_first;
        o.lengths = lengths;
        if (kind != "lstm" && kind != "gru") o.nonlinearity = kind;
        RnnResult r = kind == "lstm"  ? lstm(x, h0, c0, weights, bias, o, loc)
                      : kind == "gru" ? gru(x, h0, weights, bias, o, loc)
                                      : rnn(x, h0, weights, bias, o, loc);
        return std::make_tuple(r.output, r.h, r.c.defined() ? std::optional(r.c) : std::nullopt);
      },
      "kind"_a, "input"_a, "h0"_a.none(), "c0"_a.none(), "weights"_a, "bias"_a, "num_layers"_a,
      "dropout"_a, "training"_a, "bidirectional"_a, "batch_first"_a, "lengths"_a);
}

}  // namespace ingot_python
