#include "models.h"

#include <memory>

#include <ingot/models.h>

#include "cli.h"

namespace ingot::cli {

// Pixels 0..255 to about -2..2.
static Tensor to_unit(const Tensor& x) {
  return x.dtype() == uint8 ? (x.to(float32) - 127.5f) * (1.0f / 64) : x;
}

static nn::Conv2d conv(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1) {
  return nn::Conv2d(
      in, out, {.kernel_size = kernel, .stride = stride, .padding = kernel / 2, .bias = false});
}

// One block after the other; with `recompute`, values inside the blocks are not kept for the
// gradients.
static Tensor through(nn::Sequential& blocks, Tensor x, bool recompute) {
  for (size_t i = 0; i < blocks.size(); ++i)
    x = recompute
            ? checkpoint(
                  [blocks, i](const std::vector<Tensor>& in) mutable { return blocks[i](in[0]); },
                  {x})
            : blocks[i](x);
  return x;
}

bool can_recompute(const Recipe& r) {
  const std::string model = r.text("model");
  return model == "gpt" || model == "resnet" || model == "cnn";
}

// The features of a flattened image. Both sizes may come from files.
static int64_t flattened(int64_t channels, int64_t side) {
  int64_t n = channels;
  if (__builtin_mul_overflow(n, side, &n) || __builtin_mul_overflow(n, side, &n))
    throw Failure(kUsage, "images of side " + std::to_string(side) + " are too large",
                  "Set image_size or width lower.");
  return n;
}

// Stages of convolution, batch norm, relu and pooling; two linear layers.
class Cnn : public nn::Module {
 public:
  Cnn(const Recipe& r, const ModelShape& shape)
      : drop_(r.number("dropout")), recompute_(r.integer("recompute") > 0) {
    int64_t in = shape.channels, out = r.integer("width"), side = shape.side;
    nn::Sequential stages;
    for (int64_t i = 0; i < r.integer("layers"); ++i, in = out, out *= 2, side /= 2) {
      if (side < 2)
        throw Failure(
            kUsage,
            format("%lld stages are too many for images of side %lld",
                   static_cast<long long>(r.integer("layers")), static_cast<long long>(shape.side)),
            "Set layers lower.");
      stages.push_back(
          nn::Sequential(conv(in, out, 3), nn::BatchNorm2d(out), nn::ReLU(), nn::MaxPool2d(2)));
    }
    stages_ = add("stages", stages);
    hidden_ = std::make_unique<nn::Linear>(add("hidden", nn::Linear(flattened(in, side), 128)));
    head_ = std::make_unique<nn::Linear>(add("head", nn::Linear(128, shape.classes)));
    add("drop", drop_);
  }
  Tensor forward(Tensor x) override {
    const Tensor y = through(stages_, to_unit(x), recompute_ && is_training());
    return (*head_)(drop_(relu((*hidden_)(y.flatten(1)))));
  }

 private:
  nn::Sequential stages_;
  nn::Dropout drop_;
  bool recompute_;
  std::unique_ptr<nn::Linear> hidden_, head_;
};

// ResNet for small images: three stages of blocks (He et al. 2015, section 4.2).
class ResNet : public nn::Module {
 public:
  ResNet(const Recipe& r, const ModelShape& shape) : recompute_(r.integer("recompute") > 0) {
    const int64_t width = r.integer("width");
    nn::Sequential body(conv(shape.channels, width, 3), nn::BatchNorm2d(width), nn::ReLU());
    int64_t in = width;
    for (int64_t stage = 0; stage < 3; ++stage)
      for (int64_t i = 0; i < r.integer("layers"); ++i) {
        const int64_t out = width << stage;
        body.push_back(models::ResNetBlock(in, out, stage > 0 && i == 0 ? 2 : 1, false));
        in = out;
      }
    body_ = add("body", body);
    head_ = std::make_unique<nn::Linear>(add("head", nn::Linear(in, shape.classes)));
  }
  Tensor forward(Tensor x) override {
    return (*head_)(through(body_, to_unit(x), recompute_ && is_training()).mean({2, 3}));
  }

 private:
  nn::Sequential body_;
  bool recompute_;
  std::unique_ptr<nn::Linear> head_;
};

class Mlp : public nn::Module {
 public:
  Mlp(const Recipe& r, int64_t in, int64_t classes) {
    nn::Sequential body;
    for (int64_t i = 0; i < r.integer("layers"); ++i, in = r.integer("width"))
      body.push_back(nn::Linear(in, r.integer("width"))).push_back(nn::Tanh());
    body_ = add("body", body);
    head_ = std::make_unique<nn::Linear>(add("head", nn::Linear(in, classes)));
  }
  Tensor forward(Tensor x) override { return (*head_)(body_(to_unit(x).flatten(1))); }

 private:
  nn::Sequential body_;
  std::unique_ptr<nn::Linear> head_;
};

std::shared_ptr<nn::Module> make_model(const Recipe& r, const ModelShape& shape) {
  const std::string task = r.text("task"), model = r.text("model");
  if (r.integer("recompute") > 0 && !can_recompute(r))
    throw Failure(kUsage, "a " + model + " has no blocks to recompute", "Set recompute to 0.");
  if (task == "text") {
    if (model == "lstm")
      return std::make_shared<models::CharLSTM>(
          r.integer("vocabulary"), models::CharLSTMOptions{.embedding = r.integer("width"),
                                                           .hidden = r.integer("width"),
                                                           .num_layers = r.integer("layers"),
                                                           .dropout = r.number("dropout")});
    if (model == "gpt") {
      if (r.integer("width") % r.integer("heads") != 0)
        throw Failure(kUsage,
                      "width " + std::to_string(r.integer("width")) +
                          " is not a multiple of heads " + std::to_string(r.integer("heads")),
                      "Change one of them.");
      if (r.integer("context") < 2)
        throw Failure(kUsage, "a gpt needs a context of at least 2", "Set context higher.");
      return std::make_shared<models::GPT>(
          models::GPTConfig{.layers = r.integer("layers"),
                            .heads = r.integer("heads"),
                            .width = r.integer("width"),
                            .context = r.integer("context"),
                            .vocabulary = r.integer("vocabulary"),
                            .dropout = r.number("dropout"),
                            .recompute = r.integer("recompute") > 0});
    }
    throw Failure(kUsage, "there is no model \"" + model + "\" for text",
                  "Set model to gpt or lstm.");
  }
  if (task == "points") {
    if (model != "mlp")
      throw Failure(kUsage, "there is no model \"" + model + "\" for points", "Set model to mlp.");
    return std::make_shared<Mlp>(r, 2, shape.classes);
  }
  if (model == "cnn") return std::make_shared<Cnn>(r, shape);
  if (model == "resnet") return std::make_shared<ResNet>(r, shape);
  if (model == "mlp")
    return std::make_shared<Mlp>(r, flattened(shape.channels, shape.side), shape.classes);
  throw Failure(kUsage, "there is no model \"" + model + "\" for images",
                "Set model to cnn, resnet or mlp.");
}

}  // namespace ingot::cli
