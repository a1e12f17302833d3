// Networks for images. Parts that torchvision names one by one (conv1, conv2, ...) are registered
// under those names and also kept in lists.
#include "ingot/models/vision.h"

#include <array>
#include <cmath>

#include "nn/layer_common.h"

namespace ingot::models {
namespace {

nn::Conv2d conv(int64_t in, int64_t out, int64_t kernel, int64_t stride, const SourceLoc& loc) {
  nn::Conv2d c(in, out,
               {.kernel_size = kernel, .stride = stride, .padding = kernel / 2, .bias = false},
               loc);
  nn::init::kaiming_normal_(c.weight(), {.mode = "fan_out", .nonlinearity = "relu"});
  return c;
}

}  // namespace

// ---- MLP and LeNet

MLP::MLP(int64_t in_features, int64_t out_features, const MLPOptions& o, SourceLoc where)
    : activation_(o.activation), drop_(o.dropout, where) {
  SourceLoc loc = user_loc(where);
  if (o.activation != "relu" && o.activation != "gelu" && o.activation != "tanh")
    fail(ErrorKind::Value, "MLP", "activation is \"" + o.activation + "\"", loc,
         "use \"relu\", \"gelu\" or \"tanh\"");
  std::vector<int64_t> sizes{in_features};
  sizes.insert(sizes.end(), o.hidden.begin(), o.hidden.end());
  sizes.push_back(out_features);
  const size_t step =
      o.dropout > 0 ? 3 : 2;  // in a Sequential, activations and dropouts are numbered too
  for (size_t i = 0; i + 1 < sizes.size(); ++i)
    layers_.push_back(add(std::to_string(i * step), nn::Linear(sizes[i], sizes[i + 1], {}, loc)));
  register_module("drop", drop_);
}

Tensor MLP::forward(Tensor x) {
  if (x.dim() > 2) x = x.flatten(1);
  for (size_t i = 0; i < layers_.size(); ++i) {
    x = layers_[i](x);
    if (i + 1 < layers_.size())
      x = drop_(activation_ == "relu" ? relu(x) : activation_ == "gelu" ? gelu(x) : tanh(x));
  }
  return x;
}

LeNet::LeNet(int64_t in_channels, int64_t num_classes, SourceLoc loc)
    : conv1_(add("conv1", nn::Conv2d(in_channels, 6, {.kernel_size = 5, .padding = 2}, loc))),
      conv2_(add("conv2", nn::Conv2d(6, 16, {.kernel_size = 5}, loc))),
      fc1_(add("fc1", nn::Linear(400, 120, {}, loc))),
      fc2_(add("fc2", nn::Linear(120, 84, {}, loc))),
      fc3_(add("fc3", nn::Linear(84, num_classes, {}, loc))) {}

Tensor LeNet::forward(Tensor x) {
  x = max_pool2d(relu(conv1_(x)), 2);
  x = max_pool2d(relu(conv2_(x)), 2);
  return fc3_(relu(fc2_(relu(fc1_(x.flatten(1))))));
}

// ---- ResNet

ResNetBlock::ResNetBlock(int64_t in, int64_t channels, int64_t stride, bool bottleneck,
                         SourceLoc where) {
  SourceLoc loc = user_loc(where);
  const int64_t out = bottleneck ? 4 * channels : channels;
  std::vector<std::array<int64_t, 4>> shapes;  // in, out, kernel, stride
  if (bottleneck)
    shapes = {{in, channels, 1, 1}, {channels, channels, 3, stride}, {channels, out, 1, 1}};
  else
    shapes = {{in, channels, 3, stride}, {channels, channels, 3, 1}};
  for (size_t i = 0; i < shapes.size(); ++i) {
    const auto& [a, b, kernel, s] = shapes[i];
    conv_.push_back(add("conv" + std::to_string(i + 1), conv(a, b, kernel, s, loc)));
    norm_.push_back(add("bn" + std::to_string(i + 1), nn::BatchNorm2d(b, {}, loc)));
  }
  if (stride != 1 || in != out)
    downsample_ = add("downsample",
                      nn::Sequential(conv(in, out, 1, stride, loc), nn::BatchNorm2d(out, {}, loc)));
}

Tensor ResNetBlock::forward(Tensor x) {
  Tensor y = x;
  for (size_t i = 0; i < conv_.size(); ++i) {
    y = norm_[i](conv_[i](y));
    if (i + 1 < conv_.size()) y = relu(y);
  }
  return relu(y + (downsample_ ? (*downsample_)(x) : x));
}

ResNet::ResNet(const std::vector<int64_t>& layers, bool bottleneck, const ResNetOptions& o,
               SourceLoc where)
    : small_(o.small_input),
      conv1_(add("conv1", o.small_input ? conv(o.in_channels, 64, 3, 1, user_loc(where))
                                        : conv(o.in_channels, 64, 7, 2, user_loc(where)))),
      bn1_(add("bn1", nn::BatchNorm2d(64, {}, where))),
      fc_(bottleneck ? 2048 : 512, o.num_classes, {}, where) {
  SourceLoc loc = user_loc(where);
  if (layers.size() != 4)
    fail(ErrorKind::Value, "ResNet",
         "needs the number of blocks of each of 4 stages, not " + std::to_string(layers.size()),
         loc);
  int64_t in = 64;
  for (size_t s = 0; s < 4; ++s) {
    nn::check_size(layers[s], "blocks of a stage", "ResNet", loc);
    const int64_t channels = int64_t{64} << s;
    nn::Sequential stage;
    for (int64_t b = 0; b < layers[s]; ++b) {
      stage.push_back(ResNetBlock(in, channels, b == 0 && s > 0 ? 2 : 1, bottleneck, loc));
      in = bottleneck ? 4 * channels : channels;
    }
    stages_.push_back(add("layer" + std::to_string(s + 1), stage));
  }
  register_module("fc", fc_);
}

Tensor ResNet::forward(Tensor x) {
  x = relu(bn1_(conv1_(x)));
  if (!small_) x = max_pool2d(x, 3, 2, 1);
  for (nn::Sequential& stage : stages_) x = stage(x);
  return fc_(adaptive_avg_pool2d(x, 1).flatten(1));
}

ResNet resnet18(const ResNetOptions& o, SourceLoc loc) {
  return ResNet({2, 2, 2, 2}, false, o, loc);
}
ResNet resnet34(const ResNetOptions& o, SourceLoc loc) {
  return ResNet({3, 4, 6, 3}, false, o, loc);
}
ResNet resnet50(const ResNetOptions& o, SourceLoc loc) {
  return ResNet({3, 4, 6, 3}, true, o, loc);
}

// ---- UNet

static nn::Sequential two_convolutions(int64_t in, int64_t out, const SourceLoc& loc) {
  nn::Sequential s;
  for (int64_t c : {in, out}) {
    s.push_back(conv(c, out, 3, 1, loc));
    s.push_back(nn::BatchNorm2d(out, {}, loc));
    s.push_back(nn::ReLU());
  }
  return s;
}

UNet::UNet(int64_t in_channels, int64_t out_channels, const UNetOptions& o, SourceLoc where)
    : depth_(o.depth),
      down_(add("down", nn::ModuleList<nn::Sequential>())),
      up_(add("up", nn::ModuleList<nn::Sequential>())),
      grow_(add("grow", nn::ModuleList<nn::ConvTranspose2d>())),
      out_(add("out", nn::Conv2d(o.width, out_channels, {.kernel_size = 1}, where))) {
  SourceLoc loc = user_loc(where);
  nn::check_size(o.depth, "depth", "UNet", loc);
  for (int64_t i = 0; i <= o.depth; ++i)
    down_.push_back(two_convolutions(i == 0 ? in_channels : o.width << (i - 1), o.width << i, loc));
  for (int64_t i = o.depth; i > 0; --i) {
    grow_.push_back(nn::ConvTranspose2d(o.width << i, o.width << (i - 1),
                                        {.kernel_size = 2, .stride = 2}, loc));
    up_.push_back(two_convolutions(o.width << i, o.width << (i - 1), loc));
  }
}

Tensor UNet::forward(Tensor x) {
  const int64_t step = int64_t{1} << depth_;
  if (x.dim() != 4 || x.size(2) % step != 0 || x.size(3) % step != 0)
    fail(ErrorKind::Shape, "UNet",
         "expects [N, C, H, W] with sides that are multiples of " + std::to_string(step) +
             ", not " + describe(x),
         user_loc(SourceLoc::current()), "pad the images");
  std::vector<Tensor> kept;
  for (size_t i = 0; i < down_.size(); ++i) {
    if (i > 0) x = max_pool2d(x, 2);
    x = down_[i](x);
    kept.push_back(x);
  }
  for (size_t i = 0; i < up_.size(); ++i)
    x = up_[i](cat({kept[kept.size() - 2 - i], grow_[i](x)}, 1));
  return out_(x);
}

// ---- ViT

static ViTOptions checked(const ViTOptions& o, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  if (o.patch_size < 1 || o.image_size % o.patch_size != 0)
    fail(ErrorKind::Value, "ViT",
         "image_size " + std::to_string(o.image_size) + " is not a multiple of patch_size " +
             std::to_string(o.patch_size),
         loc);
  nn::check_size(o.num_layers, "num_layers", "ViT", loc);
  return o;
}

// torchvision's tree: encoder.layers.encoder_layer_N.{ln_1, self_attention, ln_2, mlp}, encoder.ln,
// heads.head.
ViT::ViT(const ViTOptions& options, SourceLoc where)
    : o_(checked(options, where)),
      patches_(o_.in_channels, o_.hidden_dim,
               {.kernel_size = o_.patch_size, .stride = o_.patch_size}, where),
      drop_(o_.dropout, where),
      norm_(Dims{o_.hidden_dim}, {.eps = 1e-6}, where),
      head_(o_.hidden_dim, o_.num_classes, {}, where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  const int64_t side = o_.image_size / o_.patch_size, d = o_.hidden_dim;
  class_token_ = register_parameter("class_token", zeros({1, 1, d}));
  register_module("conv_proj", patches_);
  nn::init::trunc_normal_(
      patches_.weight(), 0,
      std::sqrt(1.0 / static_cast<double>(o_.in_channels * o_.patch_size * o_.patch_size)));
  nn::init::zeros_(patches_.bias());
  nn::Module encoder, layers, heads;
  positions_ = encoder.register_parameter("pos_embedding", randn({1, side * side + 1, d}) * 0.02);
  encoder.register_module("dropout", drop_);
  for (int64_t i = 0; i < o_.num_layers; ++i) {
    nn::Module block;
    norm1_.push_back(block.add("ln_1", nn::LayerNorm(Dims{d}, {.eps = 1e-6}, loc)));
    attention_.push_back(block.add(
        "self_attention",
        nn::MultiheadAttention(d, o_.num_heads,
                               {.dropout = o_.attention_dropout, .batch_first = true}, loc)));
    block.register_module("dropout", nn::Dropout(o_.dropout, loc));
    norm2_.push_back(block.add("ln_2", nn::LayerNorm(Dims{d}, {.eps = 1e-6}, loc)));
    nn::Linear up(d, o_.mlp_dim, {}, loc), down(o_.mlp_dim, d, {}, loc);
    for (const nn::Linear& l : {up, down}) {
      nn::init::xavier_uniform_(l.weight());
      nn::init::normal_(l.bias(), 0, 1e-6);
    }
    mlp_.push_back(block.add("mlp", nn::Sequential(up, nn::GELU(), nn::Dropout(o_.dropout, loc),
                                                   down, nn::Dropout(o_.dropout, loc))));
    layers.register_module("encoder_layer_" + std::to_string(i), block);
  }
  encoder.register_module("layers", layers);
  encoder.register_module("ln", norm_);
  register_module("encoder", encoder);
  nn::init::zeros_(head_.weight());
  nn::init::zeros_(head_.bias());
  heads.register_module("head", head_);
  register_module("heads", heads);
}

Tensor ViT::forward(Tensor x) {
  if (x.dim() != 4 || x.size(2) != o_.image_size || x.size(3) != o_.image_size)
    fail(ErrorKind::Shape, "ViT",
         "expects [N, " + std::to_string(o_.in_channels) + ", " + std::to_string(o_.image_size) +
             ", " + std::to_string(o_.image_size) + "], not " + describe(x),
         user_loc(SourceLoc::current()), "resize the images");
  const int64_t n = x.size(0), d = o_.hidden_dim;
  Tensor tokens = patches_(x).flatten(2).transpose(1, 2);
  x = cat({class_token_.expand({n, 1, d}).to(tokens.dtype()), tokens}, 1);
  x = drop_(x + positions_);
  for (size_t i = 0; i < mlp_.size(); ++i) {
    const Tensor h = norm1_[i](x);
    x = x + drop_(attention_[i](h, h, h, {.need_weights = false}).output);
    x = x + mlp_[i](norm2_[i](x));
  }
  return head_(norm_(x).select(1, 0));
}

ViT vit_tiny(ViTOptions o, SourceLoc loc) {
  o.patch_size = 16, o.num_layers = 12, o.num_heads = 3, o.hidden_dim = 192, o.mlp_dim = 768;
  return ViT(o, loc);
}
ViT vit_b_16(ViTOptions o, SourceLoc loc) {
  o.patch_size = 16, o.num_layers = 12, o.num_heads = 12, o.hidden_dim = 768, o.mlp_dim = 3072;
  return ViT(o, loc);
}

}  // namespace ingot::models
