// See programs.h.
#include "programs.h"

#include <ingot/ingot.h>

#include <sstream>

#include "support/folder.h"

namespace ingot::test {
namespace {

using Values = std::vector<double>;

Values values(const std::vector<Tensor>& tensors) {
  Values all;
  for (const Tensor& t : tensors)
    for (double v : t.to(float64).to_vector<double>()) all.push_back(v);
  return all;
}

Tensor numbers(const Dims& shape, uint64_t seed = 1) { return randn(shape, {}, Generator(seed)); }

Values elementwise() {
  Tensor x = numbers({40, 30}), y = numbers({30}, 2);
  return values({tanh(x * y + 1).exp() - x, where(x > y, x, y), (x.to(int64) % 3).to(float16)});
}
Values reduce() {
  Tensor x = numbers({20, 50});
  return values({x.sum(), x.mean(0), x.amax(1), x.argmax(1), x.var(0), x.logsumexp(1)});
}
Values soft_max() {
  return values({softmax(numbers({16, 70}), -1), log_softmax(numbers({5, 6, 7}), 1)});
}
Values product() {
  Tensor a = numbers({40, 30}), b = numbers({30, 20}, 2), c = numbers({6, 9, 30}, 3);
  return values({relu(a.matmul(b) + 1), c.matmul(b), a.to(bfloat16).matmul(b.to(bfloat16))});
}
Values convolution() {
  Tensor x = numbers({2, 4, 12, 12}), w = numbers({8, 4, 3, 3}, 2);
  x.requires_grad_();
  w.requires_grad_();
  conv2d(x, w, {}, 1, 1).square().sum().backward();
  return values({x.grad(), w.grad()});
}
Values pooling() {
  Tensor x = numbers({2, 3, 12, 12});
  x.requires_grad_();
  Tensor y = max_pool2d(x, 2);
  (y.square().sum() + adaptive_avg_pool2d(x, 3).sum()).backward();
  return values({y, x.grad()});
}
Values norm() {
  Tensor x = numbers({6, 8, 5}), mean = zeros({8}), var = ones({8});
  Tensor y = batch_norm(x, mean, var, ones({8}), zeros({8}), true);
  return values({layer_norm(x, {5}), y, mean, var});
}
Values recurrent() {
  std::vector<Tensor> w{numbers({32, 6}, 2), numbers({32, 8}, 3), numbers({32}, 4),
                        numbers({32}, 5)};
  w[0].requires_grad_();
  RnnResult r = lstm(numbers({5, 3, 6}), {}, {}, w);
  r.output.sum().backward();
  return values({r.output, r.h, w[0].grad()});
}
Values attention() {
  Tensor q = numbers({1, 2, 40, 16}), k = numbers({1, 2, 40, 16}, 2),
         v = numbers({1, 2, 40, 16}, 3);
  q.requires_grad_();
  Tensor o = scaled_dot_product_attention(q, k, v, {.is_causal = true});
  o.square().sum().backward();
  return values({o, q.grad()});
}
Values gathers() {
  Tensor x = numbers({20, 6}), i = randint(0, 20, {9}, {}, Generator(7));
  Tensor y = zeros({20, 6}).scatter_add(0, i.unsqueeze(1).expand({9, 6}), numbers({9, 6}, 3));
  return values({x.index_select(0, i), y, x.cumsum(0)});
}
Values sorted() {
  auto [v, i] = sort(numbers({30, 40}), 1);
  return values({v, i, argsort(numbers({100}, 2))});
}

nn::Sequential network() {
  manual_seed(3);
  return nn::Sequential{nn::Linear(8, 16), nn::ReLU(), nn::Linear(16, 4)};
}
Tensor loss_of(nn::Sequential& net, uint64_t seed) {
  return cross_entropy(net(numbers({10, 8}, seed)), randint(0, 4, {10}, {}, Generator(seed + 1)));
}

Values backward() {
  nn::Sequential net = network();
  loss_of(net, 5).backward();
  std::vector<Tensor> grads;
  for (const Tensor& p : net.parameters()) grads.push_back(p.grad());
  return values(grads);
}
Values step() {
  nn::Sequential net = network();
  optim::AdamW opt(net.parameters(), {.lr = 0.01});
  for (uint64_t i = 0; i < 3; ++i) {
    loss_of(net, 5 + i).backward();
    opt.step();
  }
  return values(net.parameters());
}
Values captured() {
  nn::Sequential net = network();
  optim::SGD opt(net.parameters(), {.lr = 0.1});
  Captured train = capture([&](const std::vector<Tensor>& in) {
    Tensor loss = cross_entropy(net(in[0]), in[1]);
    loss.backward();
    opt.step();
    return std::vector<Tensor>{loss};
  });
  Values all;
  for (uint64_t i = 0; i < 3; ++i)
    all.push_back(
        train({numbers({10, 8}, i), randint(0, 4, {10}, {}, Generator(i))})[0].item<double>());
  return all;
}
// One for all runs: removing a folder takes memory.
const std::string& work_folder() {
  static Folder folder;
  return folder.path;
}

Values checkpoint_file() {
  const std::string folder = work_folder();
  nn::Sequential net = network();
  {
    Checkpoint out(folder, net);
    out.save(1);
  }
  nn::Sequential other = network();
  {
    NoGrad guard;
    for (Tensor& p : other.parameters()) p.mul_(0);
  }
  Checkpoint in(folder, other);
  in.resume();
  return values(other.parameters());
}
Values safetensors() {
  const std::string folder = work_folder();
  io::save_safetensors(folder + "/a.safetensors", {{"x", numbers({5, 6})}, {"y", arange(7)}});
  Values all;
  for (const auto& [name, t] : io::load_safetensors(folder + "/a.safetensors"))
    for (double v : values({t})) all.push_back(v);
  return all;
}
Values loader() {
  Values all;
  for (int workers : {0, 2}) {
    data::DataLoader batches(data::TensorDataset({numbers({20, 4}), arange(20)}),
                             {.batch_size = 6, .shuffle = true, .num_workers = workers, .seed = 4});
    for (auto [x, y] : batches)
      for (double v : values({x, y})) all.push_back(v);
  }
  return all;
}
Values views() {
  Tensor x = numbers({6, 8}), row = x[2], part = x.narrow(1, 2, 3);
  row.fill_(3);
  part.mul_(2);
  x.t()[1].add_(1);
  return values({x, row, part, x.transpose(0, 1).reshape({-1})});
}
Values moved() {
  Tensor x = numbers({10, 10});
  Tensor y = (x * 2).to(Device("cpu:1"));
  return values({y.to(float64), y.to(Device("cpu")) + x});
}
Values printed() {
  std::ostringstream out;
  out.exceptions(std::ios::badbit);  // a stream keeps exceptions to itself otherwise
  out << numbers({3, 4}) << arange(5) << explain(numbers({4, 4}).matmul(numbers({4, 4}, 2)));
  return {static_cast<double>(out.str().size())};
}

}  // namespace

const std::vector<FaultProgram>& fault_programs() {
  static const std::vector<FaultProgram> all{
      {"elementwise", elementwise},
      {"reduce", reduce},
      {"softmax", soft_max},
      {"matmul", product},
      {"conv", convolution},
      {"pooling", pooling},
      {"norm", norm},
      {"lstm", recurrent},
      {"attention", attention},
      {"gather", gathers},
      {"sort", sorted},
      {"backward", backward},
      {"step", step},
      {"capture", captured},
      {"checkpoint", checkpoint_file},
      {"safetensors", safetensors},
      {"loader", loader},
      {"views", views},
      {"to", moved},
      {"print", printed},
  };
  return all;
}

}  // namespace ingot::test
