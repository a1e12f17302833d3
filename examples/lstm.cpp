// An LSTM reads a row of numbers and says whether their sum is positive.
//
//   lstm [--device cpu]
#include <ingot/ingot.h>
using namespace ingot;

struct Reader : nn::Module {
  nn::LSTM lstm = add("lstm", nn::LSTM(1, 32, {.batch_first = true}));
  nn::Linear head = add("head", nn::Linear(32, 1));
  Tensor forward(Tensor x) override { return head(lstm(x).output.select(1, -1)).squeeze(-1); }
};

int main(int argc, char** argv) {
  set_default_device(argc > 1 ? Device(argv[argc - 1]) : Device::best());
  manual_seed(1);
  Reader model;
  optim::Adam opt(model.parameters(), {.lr = 1e-2});
  double right = 0;
  for (int step = 1; step <= 150; ++step) {
    const Tensor x = randn({64, 12, 1});
    const Tensor positive = (x.sum(Axes{1, 2}) > 0).to(float32);
    const Tensor logits = model(x);
    const Tensor loss = binary_cross_entropy_with_logits(logits, positive);
    opt.zero_grad();
    loss.backward();
    opt.step();
    if (step % 30 == 0) {
      right = ((logits > 0).to(float32) == positive).to(float32).mean().item();
      std::cout << "step " << step << " loss " << loss.item() << " right " << 100 * right << " %\n";
    }
  }
  return right > 0.85 ? 0 : 1;
}
