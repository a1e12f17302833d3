// The layers every network has: Linear, Embedding, norms over the last dims, dropouts, and those
// that only change the shape.
//
// Sizes below 1 throw Error(Value). Parameters are made on the default device in float32 unless
// said otherwise, with PyTorch's initial values. Options have PyTorch's names in PyTorch's order.
#pragma once
#include "ingot/nn/module.h"
#include "ingot/random.h"

namespace ingot::nn {

struct LinearOptions {
  bool bias = true;
  std::optional<Device> device{};
  std::optional<DType> dtype{};
};
/// x @ weight^T + bias over the last dim. Throws as linear() does.
class Linear : public Module {
 public:
  Linear(int64_t in_features, int64_t out_features, const LinearOptions& options = {},
         SourceLoc loc = SourceLoc::current());
  Tensor forward(Tensor x) override;
  Tensor weight() const { return own(0); }  ///< [out, in]
  Tensor bias() const;                      ///< [out], or undefined
  std::string description() const override;

 private:
  bool has_bias_;
};

struct LoRAOptions {
  int64_t r = 8;          ///< the rank of the update
  double lora_alpha = 8;  ///< the update is scaled by lora_alpha / r
};
/// Fine-tuning with few parameters: every Linear of the module whose path matches (as in
/// Module::place()) becomes weight + lora_alpha / r * lora_B @ lora_A, all parameters there were
/// are frozen, and lora_A [r, in] and lora_B [out, r] (0 at first) are trained. Returns how many
/// layers it found. Throws Error(Value) for none or r < 1, Error(State) for one that has it
/// already.
int64_t add_lora(Module& module, std::string_view pattern, const LoRAOptions& options = {},
                 SourceLoc loc = SourceLoc::current());
/// Adds the updates to the weights and removes lora_A and lora_B. Parameters stay frozen.
void merge_lora(Module& module, SourceLoc loc = SourceLoc::current());

struct EmbeddingOptions {
  std::optional<int64_t>
      padding_idx{};  ///< this row is 0 and gets no gradient; a negative one counts from the end
  std::optional<Device> device{};
  std::optional<DType> dtype{};
};
/// Rows of a table by index: indices of any shape in, one more dim out. Throws as embedding()
/// does.
class Embedding : public Module {
 public:
  Embedding(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingOptions& options = {},
            SourceLoc loc = SourceLoc::current());
  Tensor forward(Tensor index) override;
  Tensor weight() const { return own(0); }  ///< [num_embeddings, embedding_dim]
  std::string description() const override;

 private:
  std::optional<int64_t> padding_;
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;  ///< false: neither weight nor bias
  bool bias = true;
  std::optional<Device> device{};
  std::optional<DType> dtype{};
};
/// Mean 0 and variance 1 over the last dims, then weight and bias. Throws as layer_norm() does.
class LayerNorm : public Module {
 public:
  explicit LayerNorm(const Dims& normalized_shape, const LayerNormOptions& options = {},
                     SourceLoc loc = SourceLoc::current());
  explicit LayerNorm(int64_t size, const LayerNormOptions& options = {},
                     SourceLoc loc = SourceLoc::current())
      : LayerNorm(Dims{size}, options, loc) {}
  Tensor forward(Tensor x) override;
  Tensor weight() const;  ///< or undefined
  Tensor bias() const;    ///< or undefined
  std::string description() const override;

 private:
  Dims shape_;
  double eps_;
  bool has_weight_, has_bias_;
};

struct RMSNormOptions {
  std::optional<double> eps{};  ///< as rms_norm()'s default when not given
  bool elementwise_affine = true;
  std::optional<Device> device{};
  std::optional<DType> dtype{};
};
/// x / sqrt(mean(x^2) + eps) over the last dims, times weight. Throws as rms_norm() does.
class RMSNorm : public Module {
 public:
  explicit RMSNorm(const Dims& normalized_shape, const RMSNormOptions& options = {},
                   SourceLoc loc = SourceLoc::current());
  explicit RMSNorm(int64_t size, const RMSNormOptions& options = {},
                   SourceLoc loc = SourceLoc::current())
      : RMSNorm(Dims{size}, options, loc) {}
  Tensor forward(Tensor x) override;
  Tensor weight() const;  ///< or undefined
  std::string description() const override;

 private:
  Dims shape_;
  std::optional<double> eps_;
  bool has_weight_;
};

/// Zeroes elements with probability p while training. Throws Error(Value) unless 0 <= p <= 1, as
/// all of these do.
class Dropout : public Module {
 public:
  explicit Dropout(double p = 0.5, SourceLoc loc = SourceLoc::current());
  Tensor forward(Tensor x) override;
  std::string description() const override;

 protected:
  double p_;
};
/// Zeroes channels: [N, C, L] or [C, L] in. Throws Error(Shape) for other ranks, as the two
/// below.
class Dropout1d : public Dropout {
 public:
  using Dropout::Dropout;
  Tensor forward(Tensor x) override;
};
class Dropout2d : public Dropout {  ///< [N, C, H, W] or [C, H, W]
 public:
  using Dropout::Dropout;
  Tensor forward(Tensor x) override;
};
class Dropout3d : public Dropout {  ///< [N, C, D, H, W] or [C, D, H, W]
 public:
  using Dropout::Dropout;
  Tensor forward(Tensor x) override;
};
/// Sets elements to SELU's lower limit with probability p and keeps mean 0 and variance 1.
class AlphaDropout : public Dropout {
 public:
  using Dropout::Dropout;
  Tensor forward(Tensor x) override;
};

// ---- Shapes

class Identity : public Module {
 public:
  Tensor forward(Tensor x) override;
};
/// Merges dims start_dim to end_dim.
class Flatten : public Module {
 public:
  explicit Flatten(int64_t start_dim = 1, int64_t end_dim = -1)
      : start_(start_dim), end_(end_dim) {}
  Tensor forward(Tensor x) override;
  std::string description() const override;

 private:
  int64_t start_, end_;
};
/// Splits one dim. Throws as reshape() does.
class Unflatten : public Module {
 public:
  Unflatten(int64_t dim, const Dims& unflattened_size) : dim_(dim), size_(unflattened_size) {}
  Tensor forward(Tensor x) override;
  std::string description() const override;

 private:
  int64_t dim_;
  Dims size_;
};

}  // namespace ingot::nn
