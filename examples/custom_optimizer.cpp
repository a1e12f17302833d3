// An optimiser and a learning-rate schedule of your own. The optimiser is a formula of tensors; it
// is recorded once and runs in the same plan as forward and backward, as the built-in ones do. Both
// have state dicts, so a Checkpoint resumes them.
//
//   custom_optimizer [--device cpu]
#include <cmath>
#include <numbers>

#include <ingot/ingot.h>
using namespace ingot;

struct SignOptions {
  double lr = 1e-2;
  double beta1 = 0.9;   // what the direction keeps of the average
  double beta2 = 0.99;  // what the average keeps of itself
  double weight_decay = 0;
};

// Steps of one size in the direction of an average of gradients (Lion), growing to that size over
// the first steps.
class SignOptimizer : public optim::Optimizer {
 public:
  using Group = optim::ParamGroup<SignOptions>;
  explicit SignOptimizer(const std::vector<Group>& groups) {
    for (const auto& [params, o] : groups) add_group(params, {.lr = o.lr, .states = 1}, o);
  }

 private:
  void update(Step& step) const override {
    const auto& o = step.options<SignOptions>();
    // Once for all parameters that step together: numbers that change from step to step.
    Tensor rate = step.lr * (1.0 - exp(step.count * -0.2));
    for (Parameter& p : step.parameters) {
      Tensor direction = sign(p.state[0] * o.beta1 + p.gradient * (1 - o.beta1));
      p.weight = p.weight - (direction + p.weight * o.weight_decay) * rate;
      p.state[0] = p.state[0] * o.beta2 + p.gradient * (1 - o.beta2);
    }
  }
};

// Half a cosine, begun anew every `period` steps from a lower peak.
struct FallingRestarts : optim::Schedule {
  explicit FallingRestarts(int64_t steps) : period(steps) {}
  double rate(int64_t step, double base) override {
    const double peak = base * std::pow(0.5, static_cast<double>(step / period));
    const double done = static_cast<double>(step % period) / static_cast<double>(period);
    return peak * (1 + std::cos(std::numbers::pi * done)) / 2;
  }
  int64_t period;
};

int main(int argc, char** argv) {
  const Device device = argc > 1 ? Device(argv[argc - 1]) : Device::best();
  manual_seed(7);
  nn::Sequential model(nn::Linear(2, 32), nn::Tanh(), nn::Linear(32, 1));
  model.to(device);
  std::vector<Tensor> matrices, biases;
  for (const Tensor& p : model.parameters()) (p.dim() == 2 ? matrices : biases).push_back(p);

  SignOptimizer optimizer({{matrices, {.weight_decay = 1e-2}}, {biases, {}}});
  optim::LRScheduler schedule(optimizer, FallingRestarts(100));
  Tensor x = rand({256, 2}, device), y = x.prod(1, true);
  double first = 0, last = 0;
  for (int step = 0; step < 300; ++step) {
    Tensor loss = mse_loss(model(x), y);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (step % 50 == 0) {
      last = loss.item();
      if (step == 0) first = last;
      std::cout << "step " << step << "  loss " << last << "  lr " << optimizer.lr() << '\n';
    }
    schedule.step();
  }
  return last < first / 10 ? 0 : 1;
}
