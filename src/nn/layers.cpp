// The layers: each holds its parameters and calls one function of ops/.
#include <cmath>

#include "ingot/autograd.h"
#include "ingot/nn.h"
#include "ingot/runtime.h"
#include "nn/layer_common.h"
#include "nn/module_state.h"
#include "ops/common.h"

namespace ingot::nn {
Linear::Linear(int64_t in_features, int64_t out_features, const LinearOptions& options,
               SourceLoc where)
    : has_bias_(options.bias) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  check_size(in_features, "in_features", "Linear", loc);
  check_size(out_features, "out_features", "Linear", loc);
  // kaiming_uniform with a = sqrt(5) is uniform within 1 / sqrt(fan-in), and so is the bias.
  const double bound = 1 / std::sqrt(static_cast<double>(in_features));
  const auto made = [&](const Dims& shape) {
    return rand(shape, where_of(options)) * (2 * bound) - bound;
  };
  register_parameter("weight", made({out_features, in_features}), loc);
  if (has_bias_) register_parameter("bias", made({out_features}), loc);
}

Tensor Linear::forward(Tensor x) {
  const size_t base = has_bias_ ? 2 : 1;
  Tensor y = linear(x, own(0), has_bias_ ? own(1) : Tensor());
  if (own_count() == base) return y;
  return y + linear(linear(x, own(base)), own(base + 1)) * own(base + 2).to(y.dtype());
}
Tensor Linear::bias() const { return has_bias_ ? own(1) : Tensor(); }
std::string Linear::description() const {
  return "Linear(in_features=" + std::to_string(own(0).size(1)) +
         ", out_features=" + std::to_string(own(0).size(0)) + ", bias=" + yes_no(has_bias_) + ")";
}

// ---- LoRA

namespace {

template <class F>
void each_linear(Module& module, F&& f) {
  for (const auto& [path, m] : module.named_modules())
    if (auto* layer = dynamic_cast<Linear*>(m.get())) f(path, *layer);
}

bool has_lora(const Linear& layer) {
  for (const auto& [name, t] : layer.named_parameters())
    if (name == "lora_A") return true;
  return false;
}

}  // namespace

int64_t add_lora(Module& module, std::string_view pattern, const LoRAOptions& options,
                 SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  check_size(options.r, "r", "add_lora", loc);
  std::vector<Linear> found;
  std::string known;
  each_linear(module, [&](const std::string& path, const Linear& layer) {
    known += (known.empty() ? "" : ", ") + path;
    if (!path_matches(pattern, path)) return;
    if (has_lora(layer))
      fail(ErrorKind::State, "add_lora", path + " has lora_A and lora_B already", loc,
           "call merge_lora() first");
    found.push_back(layer);
  });
  if (found.empty())
    fail(ErrorKind::Value, "add_lora", "no Linear is named \"" + std::string(pattern) + "\"", loc,
         known.empty() ? "this module has none" : "there are: " + known);
  module.requires_grad_(false);
  for (Linear& layer : found) {
    const Tensor w = layer.weight();
    const Options like{w.dtype(), w.device()};
    // As in PEFT: kaiming_uniform with a = sqrt(5) for A, zeros for B.
    const double bound = 1 / std::sqrt(static_cast<double>(w.size(1)));
    layer.register_parameter("lora_A", rand({options.r, w.size(1)}, like) * (2 * bound) - bound,
                             loc);
    layer.register_parameter("lora_B", zeros({w.size(0), options.r}, like), loc);
    layer.register_buffer("lora_scale",
                          full({}, options.lora_alpha / static_cast<double>(options.r), like), true,
                          loc);
  }
  return static_cast<int64_t>(found.size());
}

void merge_lora(Module& module, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  NoGrad guard;
  each_linear(module, [&](const std::string&, Linear& layer) {
    if (!has_lora(layer)) return;
    const auto get = [&](const char* name) { return layer.parameter(name, loc); };
    Tensor w = layer.weight();
    w.add_(matmul(get("lora_B"), get("lora_A")) * get("lora_scale"), loc);
    w.eval_(loc);
    drop_tensors(layer, "lora_");
  });
}

Embedding::Embedding(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingOptions& options,
                     SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  check_size(num_embeddings, "num_embeddings", "Embedding", loc);
  check_size(embedding_dim, "embedding_dim", "Embedding", loc);
  Tensor table = randn({num_embeddings, embedding_dim}, where_of(options));
  if (options.padding_idx) {
    padding_ = *options.padding_idx + (*options.padding_idx < 0 ? num_embeddings : 0);
    if (*padding_ < 0 || *padding_ >= num_embeddings)
      fail(ErrorKind::Value, "Embedding",
           "padding_idx " + std::to_string(*options.padding_idx) + " is outside the table", loc);
    Tensor rows = arange(num_embeddings, table.device()).unsqueeze(1);
    table = ingot::where(rows == *padding_, zeros_like(table), table);
  }
  register_parameter("weight", table, loc);
}

Tensor Embedding::forward(Tensor index) {
  Tensor rows = embedding(own(0), index);
  return padding_ ? where((index == *padding_).unsqueeze(-1), rows.detach(), rows) : rows;
}

std::string Embedding::description() const {
  return "Embedding(" + std::to_string(own(0).size(0)) + ", " + std::to_string(own(0).size(1)) +
         (padding_ ? ", padding_idx=" + std::to_string(*padding_) : "") + ")";
}

namespace {

void check_norm(const Dims& shape, const char* op, const SourceLoc& loc) {
  if (shape.empty())
    fail(ErrorKind::Value, op, "normalized_shape is empty", loc, "give the sizes of the last dims");
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

std::string LayerNorm::description() const {
  return "LayerNorm(" + ingot::to_string(shape_) + ", eps=" + text_of(eps_) +
         ", elementwise_affine=" + yes_no(has_weight_) + ")";
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

std::string RMSNorm::description() const {
  return "RMSNorm(" + ingot::to_string(shape_) + (eps_ ? ", eps=" + text_of(*eps_) : "") +
         ", elementwise_affine=" + yes_no(has_weight_) + ")";
}
Tensor RMSNorm::forward(Tensor x) { return rms_norm(x, shape_, weight(), eps_); }
Tensor RMSNorm::weight() const { return has_weight_ ? own(0) : Tensor(); }

Dropout::Dropout(double p, SourceLoc loc) : p_(p) {
  if (!(p >= 0 && p <= 1))
    fail(ErrorKind::Value, "Dropout", "p is a probability, between 0 and 1, not " + text_of(p),
         user_loc(loc));
}

Tensor Dropout::forward(Tensor x) { return dropout(x, p_, is_training()); }

std::string Dropout::description() const { return class_name(*this) + "(p=" + text_of(p_) + ")"; }

Tensor Dropout1d::forward(Tensor x) { return dropout1d(x, p_, is_training()); }
Tensor Dropout2d::forward(Tensor x) { return dropout2d(x, p_, is_training()); }
Tensor Dropout3d::forward(Tensor x) { return dropout3d(x, p_, is_training()); }
Tensor AlphaDropout::forward(Tensor x) { return alpha_dropout(x, p_, is_training()); }

Tensor Identity::forward(Tensor x) { return x; }
Tensor Flatten::forward(Tensor x) { return flatten(x, start_, end_); }
std::string Flatten::description() const {
  return "Flatten(start_dim=" + std::to_string(start_) + ", end_dim=" + std::to_string(end_) + ")";
}

Tensor Unflatten::forward(Tensor x) {
  const int64_t dim = dim_ < 0 ? dim_ + x.dim() : dim_;
  x.size(dim);  // throws for a dim out of range
  Dims shape;
  for (int i = 0; i < x.dim(); ++i) {
    if (i != dim)
      shape.push_back(x.size(i));
    else
      for (int64_t n : size_) shape.push_back(n);
  }
  return reshape(x, shape);
}
std::string Unflatten::description() const {
  return "Unflatten(dim=" + std::to_string(dim_) + ", unflattened_size=" + ingot::to_string(size_) +
         ")";
}

}  // namespace ingot::nn
