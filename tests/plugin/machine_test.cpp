// The whole plug-in on a fake CUDA machine: memory, copies, products through the library's
// interface, runs, capture and replay, device errors. What only a GPU shows (speed, real
// asynchrony, the libraries themselves) is tested there.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "ingot/ingot.h"
#include "ingot/optim.h"
#include "plugin/conv_cases.h"
#include "plugin/fake_setup.h"
#include "plugin/library_cases.h"
#include "runtime/backend.h"

using namespace ingot;
using namespace ingot::test;

namespace {

FakeMachine machine("machine");

Backend& gpu() {
  Backend* b = backend_for(DeviceType::CUDA);
  REQUIRE_MESSAGE(b, missing_reason(DeviceType::CUDA));
  return *b;
}

}  // namespace

TEST_CASE("memory comes back and copies arrive") {
  Backend& b = gpu();
  CHECK(b.device_count() == 1);
  CHECK(b.rates(0).memory_gbs > 4000);
  CHECK(b.free_memory(0) > (size_t{1} << 30));
  for (size_t n :
       {size_t{1}, size_t{1000}, size_t{1} << 20, (size_t{3} << 20) + 5, size_t{40} << 20}) {
    std::vector<char> in(n), out(n, 0);
    for (size_t i = 0; i < n; ++i) in[i] = static_cast<char>(i * 7 + n);
    void *p = b.allocate(0, n), *q = b.allocate(0, n);
    CHECK(reinterpret_cast<uintptr_t>(p) % 256 == 0);
    b.copy_from_host(0, p, in.data(), n);
    b.copy_on_device(0, q, p, n);
    b.copy_to_host(0, out.data(), q, n);
    CHECK(in == out);
    b.deallocate(0, p, n);
    CHECK(b.allocate(0, n) == p);
    b.deallocate(0, p, n);
    b.deallocate(0, q, n);
  }
  CHECK(b.allocate(0, size_t{1} << 40) == nullptr);
  b.synchronize(0);
}

TEST_CASE("products and scatters through the backend") {
  Backend& b = gpu();
  std::mt19937 gen(2);
  int before = machine.matmuls(), library = 0;
  for (int n = 0; n < 260; ++n) {
    LibrarySpec s = n % 10 == 9 ? random_scatter(gen, n % 20 == 9) : random_matmul(gen, n % 10 < 8);
    if (n % 5 == 1) s = n % 2 ? random_gelu_matmul(gen) : random_bias_gradient(gen);
    if (n % 20 == 2) s = random_relu_gradient(gen);
    if (n % 30 == 5) s = random_write(gen, n % 60 == 5, false);
    if (n % 30 == 15) s = random_scan(gen, 600);
    if (n % 30 == 25) s = random_sort(gen, n % 60 == 25 ? 300 : 5000);
    CAPTURE(n);
    CAPTURE(to_string(s));
    REQUIRE(b.best_offer(s));
    int64_t extent = index_extent(s);
    CallMemory got(s, 3, extent), want = got;
    reference(s, want);
    CHECK(run_call(b, s, got).code == 0);
    CHECK(difference(s, got, want) == "");
    library += machine.matmuls() > before;
    before = machine.matmuls();
  }
  CHECK(library > 80);
  CHECK(!std::filesystem::is_empty(machine.cache));
}

namespace {

std::vector<double> train(const Device& device, int steps) {
  manual_seed(3);
  Tensor w = (arange(0, 12).to(float32) / 10.0).reshape({4, 3}).to(device).requires_grad_();
  Tensor b = zeros({3}, device).requires_grad_();
  optim::Adam opt({w, b}, {.lr = 0.05});
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) {
    Tensor x = (arange(0, 20).to(float32).reshape({5, 4}) * (0.01 * (1 + i % 3))).to(device);
    Tensor y = (x.matmul(w) + b).tanh();
    Tensor loss = ((y - 0.3) * (y - 0.3)).mean();
    opt.zero_grad();
    loss.backward();
    opt.set_lr(0.05 / (1 + i));
    opt.step();
    losses.push_back(loss.item());
  }
  return losses;
}

}  // namespace

TEST_CASE("a training loop: captured, replayed, the CPU's numbers") {
  int graphs = machine.graph_launches();
  std::vector<double> cpu = train(Device("cpu"), 12), cuda = train(Device("cuda"), 12);
  for (size_t i = 0; i < cpu.size(); ++i) CHECK(cuda[i] == doctest::Approx(cpu[i]).epsilon(1e-4));
  CHECK(machine.graph_launches() - graphs >= 9);
}

TEST_CASE("an index error is raised at the next synchronisation, and the next run is well") {
  Device d("cuda");
  Tensor table = arange(0, 12).to(float32).reshape({6, 2}).to(d);
  auto pick = [&](std::vector<int64_t> at) {
    Tensor index = from_data(at.data(), {static_cast<int64_t>(at.size())}).to(d);
    return table.index_select(0, index).sum();
  };
  CHECK(pick({1, 2, 5}).item() == 2 + 3 + 4 + 5 + 10 + 11);
  CHECK_THROWS_AS(pick({1, 2, 6}).item(), Error);
  CHECK(pick({0, 0, 1}).item() == 1 + 1 + 5);
}

namespace {

struct Block {
  std::vector<Tensor> leaves;  // x [3, 4, 8], two weights, two biases
  explicit Block(const Device& d, DType t) {
    Generator g(5);
    for (const Dims& shape : {Dims{3, 4, 8}, Dims{16, 8}, Dims{16}, Dims{8, 16}, Dims{8}})
      leaves.push_back((randn(shape, {}, g) * 0.5).to(t).to(d).requires_grad_());
    eval(leaves);
  }
  Tensor run() const {
    return linear(gelu(linear(leaves[0], leaves[1], leaves[2]), "tanh"), leaves[3], leaves[4]);
  }
  std::vector<Tensor> gradients(const Tensor& y) const {
    // As an optimiser uses them: nobody keeps the gradients themselves.
    std::vector<Tensor> used;
    for (const Tensor& g : grad({(y.to(float32) * y.to(float32)).sum()}, leaves))
      used.push_back(g.to(float32) * 0.5);
    return used;
  }
};

int count(const std::string& text, const std::string& what) {
  int n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE(
    "the gradients of an MLP's biases come with those of its weights, ReLU's with the product's") {
  auto gradients = [](const Device& device, DType t) {
    const Generator gen(3);
    std::vector<Tensor> leaves;
    for (const Dims& d : {Dims{48, 20}, Dims{48}, Dims{10, 48}, Dims{10}})
      leaves.push_back((randn(d, {float64}, gen) * 0.3).to(t).to(device).detach().requires_grad_());
    const Tensor x = randn({64, 20}, {float64}, gen).to(t).to(device);
    const Tensor y = linear(relu(linear(x, leaves[0], leaves[1])), leaves[2], leaves[3]);
    std::vector<Tensor> used;  // and not kept, as by an optimiser
    for (const Tensor& g : grad({(y * y).mean()}, leaves)) used.push_back(g * 0.5);
    return used;
  };
  const std::vector<Tensor> want = gradients(Device("cpu"), float64);
  eval(want);
  const std::vector<Tensor> got = gradients(Device("cuda"), float32);
  const std::string plan = explain(got).text;
  CAPTURE(plan);
  CHECK(count(plan, "matmul+bias_grad") == 2);
  CHECK(count(plan, "matmul+relu_grad") == 1);
  for (size_t i = 0; i < got.size(); ++i)
    CHECK((got[i].to("cpu").to(float64) - want[i]).abs().max().item() < 1e-5);
}

TEST_CASE(
    "GELU, its gradient and the biases' gradients are epilogues of the products beside them") {
  for (DType t : {bfloat16, float16}) {
    Block ours(Device("cuda"), t), exact(Device("cpu"), t);
    for (Tensor& l : exact.leaves) l = l.detach().to(float64).requires_grad_();
    Tensor z = exact.run();
    std::vector<Tensor> want = exact.gradients(z);
    eval(want);
    Tensor y = ours.run();
    std::vector<Tensor> got = ours.gradients(y);
    std::string plan = explain(got).text;
    CAPTURE(plan);
    CHECK(count(plan, "matmul+bias+gelu") == 1);
    CHECK(count(plan, "matmul+gelu_grad") == 1);
    CHECK(count(plan, "matmul+bias_grad") == 2);
    CHECK(count(plan, "tanh") == 0);
    const double bound = t == bfloat16 ? 0.03 : 0.004;
    for (size_t i = 0; i < got.size(); ++i) {
      Tensor g = got[i].to("cpu").to(float64), w = want[i].to(float64);
      CHECK((g - w).abs().max().item() <= bound * w.abs().max().item());
    }
    // Without a gradient GELU's operand is not stored: the call writes its result alone.
    std::string forward;
    {
      NoGrad guard;
      Tensor alone = ours.run();
      forward = explain(alone).text;
      CHECK((alone.to("cpu").to(float64) - z).abs().max().item() <= bound * z.abs().max().item());
    }
    CAPTURE(forward);
    CHECK(count(forward, "matmul+bias+gelu") == 1);
    CHECK(count(forward, "tanh") == 0);
  }
}

TEST_CASE("GELU stays a separate kernel where an epilogue would not do") {
  Device d("cuda");
  Block b(d, bfloat16);
  // Its operand asked for as well: the product gives both.
  Tensor sum = linear(b.leaves[0], b.leaves[1], b.leaves[2]).detach(), out = gelu(sum, "tanh");
  std::string both = explain({sum, out}).text;
  CHECK(count(both, "matmul+bias+gelu") == 1);
  Tensor low = gelu(sum, "tanh").to("cpu").to(float64),
         high = gelu(sum.to("cpu").to(float64), "tanh");
  CHECK((low - high).abs().max().item() <= 0.03);
  // The exact form, and float32.
  CHECK(count(explain(gelu(linear(b.leaves[0], b.leaves[1]))).text, "+gelu") == 0);
  Block f(d, float32);
  CHECK(count(explain(f.run()).text, "+gelu") == 0);
}

// No cuDNN here: the convolution is our own kernel, and a generated one adds the residual and takes
// the ReLU.
TEST_CASE("convolutions with batch norm, residual and ReLU are right, fused and unfused") {
  for (bool odd : {false, true})
    for (bool relu : {false, true}) CHECK(residual_call_difference(gpu(), odd, relu) == 0);
  const ConvInputs cpu = conv_inputs();
  NoGrad guard;
  for (DType t : {float32, bfloat16}) {
    // The values of this type, computed in float64.
    const ConvInputs exact = cpu.moved(Device("cpu"), t).moved(Device("cpu"), float64),
                     there = cpu.moved(Device("cuda"), t);
    for (const ConvCase& c : conv_cases()) {
      CAPTURE(std::string(c.name));
      CAPTURE(std::string(name_of(t)));
      const Explanation e = explain(c.run(there));
      CHECK(std::count(e.kernels.begin(), e.kernels.end(), c.label) >= 1);
      auto numbers = [&] { return c.run(there).to(float64).to("cpu").to_vector<double>(); };
      const auto want = c.run(exact).to_vector<double>(), fused = numbers();
      set_fusion(false);
      const auto unfused = numbers();
      set_fusion(true);
      REQUIRE(fused.size() == want.size());
      auto far = [&](const std::vector<double>& got) {
        double d = 0, n = 0;
        for (size_t i = 0; i < got.size(); ++i)
          d += std::pow(got[i] - want[i], 2), n += want[i] * want[i];
        return std::sqrt(d / n);
      };
      CHECK(far(fused) < (t == float32 ? 1e-6 : 6e-3));
      CHECK(far(unfused) < (t == float32 ? 1e-6 : 6e-3));
      CHECK(far(fused) < 1.5 * far(unfused) + 1e-8);  // one rounding instead of several
    }
  }
}

TEST_CASE("first convolutions of images run over blocks of pixels") {
  for (const Stem& f : stems()) {
    CAPTURE(f.channels);
    CAPTURE(f.window);
    const auto [y_far, g_far] = stem_distance(f, Device("cuda"));
    CHECK(y_far < 4e-3);
    CHECK(g_far < 1e-2);
    Tensor x = zeros({2, f.channels, f.size, f.size}, {bfloat16, "cuda"}).eval_(),
           w = zeros({6, f.channels, f.window, f.window}, {bfloat16, "cuda"}).eval_();
    const int64_t side = (f.window + f.pad % 2 + 1) / 2, channels = f.channels <= 2 ? 8 : 16;
    double by_blocks = 0;
    {
      NoGrad guard;
      Tensor y = conv2d(x, w, {}, 2, f.pad);
      by_blocks = 2.0 * static_cast<double>(y.numel() * side * side * channels);
      CHECK(explain(y).flops >= by_blocks);
    }
    Tensor trained = w.detach().requires_grad_();
    Tensor y = conv2d(x, trained, {}, 2, f.pad), g = grad({(y * y).sum()}, {trained})[0] * 0.5;
    y = Tensor();
    CHECK(explain(g).flops >= 2 * by_blocks);  // the convolution and its weight's gradient
  }
}
