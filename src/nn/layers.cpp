// The layers: each holds its parameters and calls one function of ops/.
#include <cmath>

#include "ingot/nn.h"
#include "ops/common.h"

namespace ingot::nn {
namespace {

void check_size(int64_t n, const char* what, const char* op, const SourceLoc& loc) {
  if (n < 1) fail(ErrorKind::Value, op, std::string(what) + " must be at least 1, not " + std::to_string(n), loc);
}

template <class O>
Options where_of(const O& o) {
  Options made;
  made.dtype = o.dtype;
  made.device = o.device;
  return made;
}

}  // namespace

Linear::Linear(int64_t in_features, int64_t out_features, const LinearOptions& options, SourceLoc where)
    : has_bias_(options.bias) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  check_size(in_features, "in_features", "Linear", loc);
  check_size(out_features, "out_features", "Linear", loc);
  // kaiming_uniform with a = sqrt(5) is uniform within 1 / sqrt(fan-in), and so is the bias.
  const double bound = 1 / std::sqrt(static_cast<double>(in_features));
  const auto made = [&](const Dims& shape) { return rand(shape, where_of(options)) * (2 * bound) - bound; };
  register_parameter("weight", made({out_features, in_features}), loc);
  if (has_bias_) register_parameter("bias", made({out_features}), loc);
}

Tensor Linear::forward(Tensor x) { return linear(x, own(0), has_bias_ ? own(1) : Tensor()); }
Tensor Linear::bias() const { return has_bias_ ? own(1) : Tensor(); }

Embedding::Embedding(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingOptions& options, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  check_size(num_embeddings, "num_embeddings", "Embedding", loc);
  check_size(embedding_dim, "embedding_dim", "Embedding", loc);
  register_parameter("weight", randn({num_embeddings, embedding_dim}, where_of(options)), loc);
}

Tensor Embedding::forward(Tensor index) { return embedding(own(0), index); }

namespace {

void check_norm(const Dims& shape, const char* op, const SourceLoc& loc) {
  if (shape.empty()) fail(ErrorKind::Value, op, "normalized_shape is empty", loc, "give the sizes of the last dims");
  for (int64_t n : shape) check_size(n, "each size", op, loc);
}

}  // namespace

LayerNorm::LayerNorm(const Dims& normalized_shape, const LayerNormOptions& options, SourceLoc where)
    : shape_(normalized_shape),
      eps_(options.eps),
      has_weight_(options.elementwise_affine),
      has_bias_(options.elementwise_affine && options.bias) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  check_norm(shape_, "LayerNorm", loc);
  if (has_weight_) register_parameter("weight", ones(shape_, where_of(options)), loc);
  if (has_bias_) register_parameter("bias", zeros(shape_, where_of(options)), loc);
}

Tensor LayerNorm::forward(Tensor x) { return layer_norm(x, shape_, weight(), bias(), eps_); }
Tensor LayerNorm::weight() const { return has_weight_ ? own(0) : Tensor(); }
Tensor LayerNorm::bias() const { return has_bias_ ? own(1) : Tensor(); }

RMSNorm::RMSNorm(const Dims& normalized_shape, const RMSNormOptions& options, SourceLoc where)
    : shape_(normalized_shape), eps_(options.eps), has_weight_(options.elementwise_affine) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  check_norm(shape_, "RMSNorm", loc);
  if (has_weight_) register_parameter("weight", ones(shape_, where_of(options)), loc);
}

Tensor RMSNorm::forward(Tensor x) { return rms_norm(x, shape_, weight(), eps_); }
Tensor RMSNorm::weight() const { return has_weight_ ? own(0) : Tensor(); }

Dropout::Dropout(double p, SourceLoc loc) : p_(p) {
  if (!(p >= 0 && p <= 1))
    fail(ErrorKind::Value, "Dropout", "p is a probability, between 0 and 1, not " + text_of(p), user_loc(loc));
}

Tensor Dropout::forward(Tensor x) { return dropout(x, p_, is_training()); }

Tensor ReLU::forward(Tensor x) { return relu(x); }
Tensor Tanh::forward(Tensor x) { return tanh(x); }
Tensor Sigmoid::forward(Tensor x) { return sigmoid(x); }
Tensor SiLU::forward(Tensor x) { return silu(x); }
Tensor GELU::forward(Tensor x) { return gelu(x, approximate_); }
Tensor Flatten::forward(Tensor x) { return flatten(x, 1); }

void Sequential::append(std::shared_ptr<Module> layer) {
  register_module(std::to_string(layers_.size()), *layer);
  layers_.push_back(std::move(layer));
}

Tensor Sequential::forward(Tensor x) {
  for (const auto& layer : layers_) x = (*layer)(std::move(x));
  return x;
}

}  // namespace ingot::nn
