// Neural networks: Module with named parameters, the layers, initialisers. A network is plain C++:
//
//   struct Net : nn::Module {
//     nn::Linear fc1 = add("fc1", nn::Linear(784, 256));
//     nn::Linear fc2 = add("fc2", nn::Linear(256, 10));
//     Tensor forward(Tensor x) override { return fc2(relu(fc1(x))); }
//   };
//   Net net;
//   Tensor y = net(x);
//
// A module is a handle, as a Tensor is: a copy names the same layers and the same parameters.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ingot/random.h"
#include "ingot/tensor.h"

namespace ingot::nn {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// Parameters, buffers and other modules under names. Parameters are computed when they are registered; errors and plans
/// show them by their path ("fc1.weight").
class Module {
 public:
  Module();
  Module(const Module&) = default;
  Module& operator=(const Module&) = default;
  virtual ~Module();

  /// What the module computes. Throws Error(State) in a module that does not define it.
  virtual Tensor forward(Tensor x);
  /// forward(x); errors in library layers name the caller's line.
  Tensor operator()(Tensor x, SourceLoc loc = SourceLoc::current());

  /// Makes `layer` a part of this module and returns it. Throws Error(Value) for a name that is empty, has a dot or is
  /// taken, and for a module inside itself; so do the three below.
  template <class M>
    requires std::is_base_of_v<Module, M>
  M add(std::string name, M layer, SourceLoc loc = SourceLoc::current()) {
    register_module(std::move(name), layer, loc);
    return layer;
  }
  void register_module(std::string name, const Module& layer, SourceLoc loc = SourceLoc::current());
  /// Makes t a parameter (it requires gradients from now on) and returns it. Two modules may share one tensor. Throws
  /// Error(DType) unless its type is floating, Error(Autograd) when it is a result with history.
  Tensor register_parameter(std::string name, const Tensor& t, SourceLoc loc = SourceLoc::current());
  /// A tensor that moves with the module but is not trained.
  Tensor register_buffer(std::string name, const Tensor& t, SourceLoc loc = SourceLoc::current());

  /// Every parameter once, in the order of registration, those of this module before those of its parts.
  std::vector<Tensor> parameters() const;
  NamedTensors named_parameters() const;
  NamedTensors named_buffers() const;
  /// One parameter or buffer by its path. Throws Error(Value) for a path that is not there.
  Tensor parameter(std::string_view path, SourceLoc loc = SourceLoc::current()) const;
  /// Puts another tensor in a parameter's place: net.set_parameter("head.weight", net.embedding.weight()) ties the two.
  /// Throws Error(Value) for a path that is not there, Error(Shape) for another shape, and as register_parameter does.
  void set_parameter(std::string_view path, const Tensor& t, SourceLoc loc = SourceLoc::current());
  /// Elements of all parameters.
  int64_t parameter_count() const;

  /// Moves parameters, their gradients and buffers. An optimiser made before keeps its state where it was: make it after.
  Module& to(const Device& device, SourceLoc loc = SourceLoc::current());
  Module& to(const char* device, SourceLoc loc = SourceLoc::current()) { return to(Device(device), loc); }
  /// Converts floating parameters, gradients and buffers. Throws Error(DType) unless the type is floating.
  Module& to(DType dtype, SourceLoc loc = SourceLoc::current());
  /// Training or not, for this module and all its parts: dropout looks at it.
  Module& train(bool on = true);
  Module& eval() { return train(false); }
  bool is_training() const;
  /// Clears the gradients of all parameters.
  void zero_grad();
  /// Freezes all parameters, or has them trained again.
  Module& requires_grad_(bool on = true);

 protected:
  struct State;
  /// A parameter or buffer of this very module (no path), by the order of registration: what layers use in forward().
  const Tensor& own(size_t index) const;

 private:
  void name_parameters() const;
  std::shared_ptr<State> state_;
};

/// Modules of one kind in a list, named "0", "1", ...
template <class M>
class ModuleList : public Module {
 public:
  /// Returns the module in the list.
  M& push_back(M layer, SourceLoc loc = SourceLoc::current()) {
    register_module(std::to_string(items_->size()), layer, loc);
    items_->push_back(std::move(layer));
    return items_->back();
  }
  size_t size() const { return items_->size(); }
  M& operator[](size_t i) { return (*items_)[i]; }
  auto begin() { return items_->begin(); }
  auto end() { return items_->end(); }

 private:
  std::shared_ptr<std::vector<M>> items_ = std::make_shared<std::vector<M>>();
};

/// Modules called one after the other, named "0", "1", ...: nn::Sequential(nn::Linear(2, 8), nn::ReLU(), nn::Linear(8, 1)).
class Sequential : public Module {
 public:
  template <class... M>
    requires(sizeof...(M) > 0 && (std::is_base_of_v<Module, M> && ...))
  explicit Sequential(M... layers) {
    (append(std::make_shared<M>(std::move(layers))), ...);
  }
  Tensor forward(Tensor x) override;

 private:
  void append(std::shared_ptr<Module> layer);
  std::vector<std::shared_ptr<Module>> layers_;
};

// ---- Layers. Sizes below 1 throw Error(Value). Parameters are made on the default device in float32 unless said otherwise,
// with PyTorch's initial values.

struct LinearOptions {
  bool bias = true;
  std::optional<DType> dtype{};
  std::optional<Device> device{};
};
/// x @ weight^T + bias over the last dim. Throws as linear() does.
class Linear : public Module {
 public:
  Linear(int64_t in_features, int64_t out_features, const LinearOptions& options = {},
         SourceLoc loc = SourceLoc::current());
  Tensor forward(Tensor x) override;
  Tensor weight() const { return own(0); }  ///< [out, in]
  Tensor bias() const;                      ///< [out], or undefined

 private:
  bool has_bias_;
};

struct EmbeddingOptions {
  std::optional<DType> dtype{};
  std::optional<Device> device{};
};
/// Rows of a table by number: indices of any shape in, one more dim out. Throws as embedding() does.
class Embedding : public Module {
 public:
  Embedding(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingOptions& options = {},
            SourceLoc loc = SourceLoc::current());
  Tensor forward(Tensor index) override;
  Tensor weight() const { return own(0); }  ///< [num_embeddings, embedding_dim]
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;  ///< false: neither weight nor bias
  bool bias = true;
  std::optional<DType> dtype{};
  std::optional<Device> device{};
};
/// Mean 0 and variance 1 over the last dims, then weight and bias. Throws as layer_norm() does.
class LayerNorm : public Module {
 public:
  explicit LayerNorm(const Dims& normalized_shape, const LayerNormOptions& options = {},
                     SourceLoc loc = SourceLoc::current());
  explicit LayerNorm(int64_t size, const LayerNormOptions& options = {}, SourceLoc loc = SourceLoc::current())
      : LayerNorm(Dims{size}, options, loc) {}
  Tensor forward(Tensor x) override;
  Tensor weight() const;  ///< or undefined
  Tensor bias() const;    ///< or undefined

 private:
  Dims shape_;
  double eps_;
  bool has_weight_, has_bias_;
};

struct RMSNormOptions {
  std::optional<double> eps{};  ///< as rms_norm()'s default when not given
  bool elementwise_affine = true;
  std::optional<DType> dtype{};
  std::optional<Device> device{};
};
/// x / sqrt(mean(x^2) + eps) over the last dims, times weight. Throws as rms_norm() does.
class RMSNorm : public Module {
 public:
  explicit RMSNorm(const Dims& normalized_shape, const RMSNormOptions& options = {},
                   SourceLoc loc = SourceLoc::current());
  explicit RMSNorm(int64_t size, const RMSNormOptions& options = {}, SourceLoc loc = SourceLoc::current())
      : RMSNorm(Dims{size}, options, loc) {}
  Tensor forward(Tensor x) override;
  Tensor weight() const;  ///< or undefined

 private:
  Dims shape_;
  std::optional<double> eps_;
  bool has_weight_;
};

/// Zeroes elements with probability p while training. Throws Error(Value) unless 0 <= p <= 1.
class Dropout : public Module {
 public:
  explicit Dropout(double p = 0.5, SourceLoc loc = SourceLoc::current());
  Tensor forward(Tensor x) override;

 private:
  double p_;
};

// Functions as modules, for Sequential.
class ReLU : public Module {
 public:
  Tensor forward(Tensor x) override;
};
class Tanh : public Module {
 public:
  Tensor forward(Tensor x) override;
};
class Sigmoid : public Module {
 public:
  Tensor forward(Tensor x) override;
};
class SiLU : public Module {
 public:
  Tensor forward(Tensor x) override;
};
class GELU : public Module {
 public:
  /// approximate: "none" or "tanh"; forward() throws Error(Value) for another word.
  explicit GELU(std::string approximate = "none") : approximate_(std::move(approximate)) {}
  Tensor forward(Tensor x) override;

 private:
  std::string approximate_;
};
class Flatten : public Module {
 public:
  Tensor forward(Tensor x) override;  ///< all dims but the first made one
};

}  // namespace ingot::nn

// ---- Initial values, written into an existing tensor at once. t must be floating: Error(DType) otherwise. The functions that
// look at fan-in and fan-out throw Error(Shape) for fewer than two dims.
namespace ingot::nn::init {

Tensor uniform_(Tensor t, double low = 0, double high = 1, const Generator& generator = default_generator(),
                SourceLoc loc = SourceLoc::current());
Tensor normal_(Tensor t, double mean = 0, double std = 1, const Generator& generator = default_generator(),
               SourceLoc loc = SourceLoc::current());
Tensor constant_(Tensor t, double value, SourceLoc loc = SourceLoc::current());
Tensor zeros_(Tensor t, SourceLoc loc = SourceLoc::current());
Tensor ones_(Tensor t, SourceLoc loc = SourceLoc::current());
Tensor xavier_uniform_(Tensor t, double gain = 1, const Generator& generator = default_generator(),
                       SourceLoc loc = SourceLoc::current());
Tensor xavier_normal_(Tensor t, double gain = 1, const Generator& generator = default_generator(),
                      SourceLoc loc = SourceLoc::current());

struct KaimingOptions {
  double a = 0;                                  ///< slope of leaky_relu below 0
  std::string_view mode = "fan_in";              ///< or "fan_out"
  std::string_view nonlinearity = "leaky_relu";  ///< as in calculate_gain
};
/// Throw Error(Value) for another mode or nonlinearity.
Tensor kaiming_uniform_(Tensor t, const KaimingOptions& options = {}, const Generator& generator = default_generator(),
                        SourceLoc loc = SourceLoc::current());
Tensor kaiming_normal_(Tensor t, const KaimingOptions& options = {}, const Generator& generator = default_generator(),
                       SourceLoc loc = SourceLoc::current());
/// PyTorch's gains: linear, sigmoid, tanh, relu, leaky_relu (param: its slope, 0.01 when not given), selu.
double calculate_gain(std::string_view nonlinearity, std::optional<double> param = {},
                      SourceLoc loc = SourceLoc::current());

}  // namespace ingot::nn::init
