// Networks for images, [N, channels, height, width] in, logits out, with torchvision's names for
// parameters where torchvision has the model, so that its weights load by name.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ingot/nn.h"

namespace ingot::models {

struct MLPOptions {
  std::vector<int64_t> hidden{256};
  std::string activation = "relu";  ///< or "gelu", "tanh"; Error(Value) for another word
  double dropout = 0;               ///< after each activation
};
/// Linear layers with activations between; everything after the batch is one dim. Names are those
/// of a Sequential: "0.weight", "2.weight".
class MLP : public nn::Module {
 public:
  MLP(int64_t in_features, int64_t out_features, const MLPOptions& options = {},
      SourceLoc loc = SourceLoc::current());
  Tensor forward(Tensor x) override;

 private:
  std::string activation_;
  nn::Dropout drop_;
  std::vector<nn::Linear> layers_;
};

/// LeNet-5 with relu and max pooling, for images of 28 x 28.
class LeNet : public nn::Module {
 public:
  explicit LeNet(int64_t in_channels = 1, int64_t num_classes = 10,
                 SourceLoc loc = SourceLoc::current());
  Tensor forward(Tensor x) override;

 private:
  nn::Conv2d conv1_, conv2_;
  nn::Linear fc1_, fc2_, fc3_;
};

/// A block of ResNet: two 3 x 3 convolutions, or 1 x 1, 3 x 3, 1 x 1 with four times as many
/// channels out (bottleneck).
class ResNetBlock : public nn::Module {
 public:
  ResNetBlock(int64_t in_channels, int64_t channels, int64_t stride, bool bottleneck,
              SourceLoc loc = SourceLoc::current());
  Tensor forward(Tensor x) override;

 private:
  std::vector<nn::Conv2d> conv_;
  std::vector<nn::BatchNorm2d> norm_;
  std::optional<nn::Sequential> downsample_;
};

struct ResNetOptions {
  int64_t num_classes = 1000;
  int64_t in_channels = 3;
  bool small_input =
      false;  ///< for 32 x 32: the first convolution is 3 x 3 with stride 1 and no pooling follows
};
class ResNet : public nn::Module {
 public:
  /// layers: blocks in each of the four stages. Throws Error(Value) unless there are four, all at
  /// least 1.
  ResNet(const std::vector<int64_t>& layers, bool bottleneck, const ResNetOptions& options = {},
         SourceLoc loc = SourceLoc::current());
  Tensor forward(Tensor x) override;

 private:
  bool small_;
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  std::vector<nn::Sequential> stages_;
  nn::Linear fc_;
};
ResNet resnet18(const ResNetOptions& options = {}, SourceLoc loc = SourceLoc::current());
ResNet resnet34(const ResNetOptions& options = {}, SourceLoc loc = SourceLoc::current());
ResNet resnet50(const ResNetOptions& options = {}, SourceLoc loc = SourceLoc::current());

struct UNetOptions {
  int64_t width = 64;  ///< channels of the first stage, doubled at each of the others
  int64_t depth = 4;   ///< how often it halves the image, whose sides must be multiples of 2^depth
};
/// An image in, an image of logits of the same size out.
class UNet : public nn::Module {
 public:
  UNet(int64_t in_channels, int64_t out_channels, const UNetOptions& options = {},
       SourceLoc loc = SourceLoc::current());
  /// Throws Error(Shape) for sides that are not multiples of 2^depth.
  Tensor forward(Tensor x) override;

 private:
  int64_t depth_;
  nn::ModuleList<nn::Sequential> down_, up_;
  nn::ModuleList<nn::ConvTranspose2d> grow_;
  nn::Conv2d out_;
};

struct ViTOptions {
  int64_t image_size = 224;
  int64_t patch_size = 16;
  int64_t num_layers = 12;
  int64_t num_heads = 3;
  int64_t hidden_dim = 192;
  int64_t mlp_dim = 768;
  double dropout = 0;
  double attention_dropout = 0;
  int64_t num_classes = 1000;
  int64_t in_channels = 3;
};
/// Vision Transformer. The defaults are ViT-tiny; vit_b_16() is torchvision's base model.
class ViT : public nn::Module {
 public:
  /// Throws Error(Value) unless image_size is a multiple of patch_size and hidden_dim one of
  /// num_heads.
  explicit ViT(const ViTOptions& options = {}, SourceLoc loc = SourceLoc::current());
  /// Throws Error(Shape) for images of another size.
  Tensor forward(Tensor x) override;

 private:
  ViTOptions o_;
  nn::Conv2d patches_;
  nn::Parameter class_token_, positions_;
  nn::Dropout drop_;
  std::vector<nn::LayerNorm> norm1_, norm2_;
  std::vector<nn::MultiheadAttention> attention_;
  std::vector<nn::Sequential> mlp_;
  nn::LayerNorm norm_;
  nn::Linear head_;
};
ViT vit_tiny(ViTOptions options = {}, SourceLoc loc = SourceLoc::current());
ViT vit_b_16(ViTOptions options = {},
             SourceLoc loc = SourceLoc::current());  ///< sizes of the network are set, others kept

}  // namespace ingot::models
