#include "models.h"

#include <memory>

#include "cli.h"

namespace ingot::cli {

// Pixels 0..255 to about -2..2.
static Tensor to_unit(const Tensor& x) {
  return x.dtype() == uint8 ? (x.to(float32) - 127.5f) * (1.0f / 64) : x;
}

static nn::Conv2d conv(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1) {
  return nn::Conv2d(in, out, {.kernel_size = kernel, .stride = stride, .padding = kernel / 2, .bias = false});
}

// Stages of convolution, batch norm, relu and pooling; two linear layers.
class Cnn : public nn::Module {
 public:
  Cnn(const Recipe& r, const Ends& ends) : drop_(r.number("dropout")) {
    int64_t in = ends.channels, out = r.integer("width"), side = ends.side;
    nn::Sequential stages;
    for (int64_t i = 0; i < r.integer("layers"); ++i, in = out, out *= 2, side /= 2) {
      if (side < 2)
        throw Failure(kUsage,
                      format("%lld stages are too many for pictures of side %lld",
                             static_cast<long long>(r.integer("layers")), static_cast<long long>(ends.side)),
                      "Set layers lower.");
      stages.push_back(nn::Sequential(conv(in, out, 3), nn::BatchNorm2d(out), nn::ReLU(), nn::MaxPool2d(2)));
    }
    stages_ = add("stages", stages);
    hidden_ = std::make_unique<nn::Linear>(add("hidden", nn::Linear(in * side * side, 128)));
    head_ = std::make_unique<nn::Linear>(add("head", nn::Linear(128, ends.classes)));
    add("drop", drop_);
  }
  Tensor forward(Tensor x) override {
    return (*head_)(drop_(relu((*hidden_)(stages_(to_unit(x)).flatten(1)))));
  }

 private:
  nn::Sequential stages_;
  nn::Dropout drop_;
  std::unique_ptr<nn::Linear> hidden_, head_;
};

// Two convolutions and the way around them.
class Block : public nn::Module {
 public:
  Block(int64_t in, int64_t out, int64_t stride)
      : body_(add("body", nn::Sequential(conv(in, out, 3, stride), nn::BatchNorm2d(out), nn::ReLU(),
                                         conv(out, out, 3), nn::BatchNorm2d(out)))),
        straight_(in == out && stride == 1) {
    if (!straight_) around_ = add("around", nn::Sequential(conv(in, out, 1, stride), nn::BatchNorm2d(out)));
  }
  Tensor forward(Tensor x) override { return relu(body_(x) + (straight_ ? x : around_(x))); }

 private:
  nn::Sequential body_, around_;
  bool straight_;
};

// ResNet for small pictures: three stages of blocks (He et al. 2015, section 4.2).
class ResNet : public nn::Module {
 public:
  ResNet(const Recipe& r, const Ends& ends) {
    const int64_t width = r.integer("width");
    nn::Sequential body(conv(ends.channels, width, 3), nn::BatchNorm2d(width), nn::ReLU());
    int64_t in = width;
    for (int64_t stage = 0; stage < 3; ++stage)
      for (int64_t i = 0; i < r.integer("layers"); ++i) {
        const int64_t out = width << stage;
        body.push_back(Block(in, out, stage > 0 && i == 0 ? 2 : 1));
        in = out;
      }
    body_ = add("body", body);
    head_ = std::make_unique<nn::Linear>(add("head", nn::Linear(in, ends.classes)));
  }
  Tensor forward(Tensor x) override { return (*head_)(body_(to_unit(x)).mean({2, 3})); }

 private:
  nn::Sequential body_;
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

// One LSTM layer over [batch, time, width], gates in PyTorch's order; the part of the gates that comes from
// the inputs is one product.
class LstmLayer : public nn::Module {
 public:
  LstmLayer(int64_t in, int64_t width)
      : width_(width),
        ih_(add("ih", nn::Linear(in, 4 * width))),
        hh_(add("hh", nn::Linear(width, 4 * width))) {}
  Tensor forward(Tensor x) override {
    const Tensor from_inputs = ih_(x);
    Tensor h = zeros({x.size(0), width_}, Options(from_inputs.dtype(), x.device())), c = h;
    std::vector<Tensor> out;
    for (int64_t t = 0; t < x.size(1); ++t) {
      const auto gates = (from_inputs.select(1, t) + hh_(h)).chunk(4, 1);
      c = sigmoid(gates[1]) * c + sigmoid(gates[0]) * tanh(gates[2]);
      h = sigmoid(gates[3]) * tanh(c);
      out.push_back(h);
    }
    return stack(out, 1);
  }

 private:
  int64_t width_;
  nn::Linear ih_, hh_;
};

class CharLstm : public nn::Module {
 public:
  explicit CharLstm(const Recipe& r)
      : tokens_(add("tokens", nn::Embedding(r.integer("vocabulary"), r.integer("width")))),
        drop_(add("drop", nn::Dropout(r.number("dropout")))),
        head_(add("head", nn::Linear(r.integer("width"), r.integer("vocabulary")))) {
    nn::Sequential body;
    for (int64_t i = 0; i < r.integer("layers"); ++i)
      body.push_back(LstmLayer(r.integer("width"), r.integer("width")));
    body_ = add("body", body);
  }
  Tensor forward(Tensor x) override { return head_(drop_(body_(tokens_(x)))); }

 private:
  nn::Embedding tokens_;
  nn::Dropout drop_;
  nn::Linear head_;
  nn::Sequential body_;
};

std::shared_ptr<nn::Module> make_model(const Recipe& r, const Ends& ends) {
  const std::string task = r.text("task"), model = r.text("model");
  if (task == "text") {
    if (model == "lstm") return std::make_shared<CharLstm>(r);
    if (model == "gpt") {
      if (r.integer("width") % r.integer("heads") != 0)
        throw Failure(kUsage,
                      "width " + std::to_string(r.integer("width")) + " is no multiple of heads " +
                          std::to_string(r.integer("heads")),
                      "Change one of them.");
      return std::make_shared<models::GPT>(models::GPTConfig{.layers = r.integer("layers"),
                                                             .heads = r.integer("heads"),
                                                             .width = r.integer("width"),
                                                             .context = r.integer("context"),
                                                             .vocabulary = r.integer("vocabulary"),
                                                             .dropout = r.number("dropout")});
    }
    throw Failure(kUsage, "there is no model \"" + model + "\" for text", "Set model to gpt or lstm.");
  }
  if (task == "points") {
    if (model != "mlp")
      throw Failure(kUsage, "there is no model \"" + model + "\" for points", "Set model to mlp.");
    return std::make_shared<Mlp>(r, 2, ends.classes);
  }
  if (model == "cnn") return std::make_shared<Cnn>(r, ends);
  if (model == "resnet") return std::make_shared<ResNet>(r, ends);
  if (model == "mlp") return std::make_shared<Mlp>(r, ends.channels * ends.side * ends.side, ends.classes);
  throw Failure(kUsage, "there is no model \"" + model + "\" for pictures",
                "Set model to cnn, resnet or mlp.");
}

}  // namespace ingot::cli
