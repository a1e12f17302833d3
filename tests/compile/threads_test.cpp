// Several threads at once: each records and runs its own, they share parameters, hand pending
// tensors to each other and drop each other's handles.
#include "semantics.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

using namespace ingot;
using namespace semantics;

namespace {

template <class F>
void together(int threads, F&& fn) {
  std::atomic<int> ready{0};
  std::vector<std::thread> all;
  for (int k = 0; k < threads; ++k)
    all.emplace_back([&, k] {
      ++ready;
      while (ready.load() < threads) std::this_thread::yield();
      fn(k);
    });
  for (std::thread& t : all) t.join();
}

template <class T>
class Queue {
 public:
  void put(T v) {
    std::lock_guard lock(mutex_);
    items_.push_back(std::move(v));
    filled_.notify_one();
  }
  T take() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [&] { return !items_.empty(); });
    T v = std::move(items_.front());
    items_.pop_front();
    return v;
  }

 private:
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<T> items_;
};

}  // namespace

TEST_CASE("threads record and run at once and get what they get alone") {
  Tensor shared = here({1, 2, 3, 4});
  auto program = [&](int k) {
    V all;
    for (int i = 0; i < 20; ++i) {
      Tensor x = shared * (k + 1), y = softmax(x.view({2, 2}), 1).matmul(x.view({2, 2}));
      Tensor z = exp(y - y.amax()).sum();
      all.push_back(z.item());
      for (double v : numbers(y[Slice{{}, {}, -1}])) all.push_back(v);
    }
    return all;
  };
  std::vector<V> alone, got(4);
  for (int k = 0; k < 4; ++k) alone.push_back(program(k));
  together(4, [&](int k) { got[static_cast<size_t>(k)] = program(k); });
  CHECK(got == alone);
}

TEST_CASE("threads read one set of parameters while each has gradients of its own inputs") {
  Tensor w = parameter({1, 2, 3});
  std::vector<V> got(4);
  together(4, [&](int k) {
    for (int i = 0; i < 20; ++i) {
      Tensor x = parameter({1.0 * k, 1, 2});
      Tensor g = grad({(w * x).square().sum()}, {x})[0];
      got[static_cast<size_t>(k)] = numbers(g);
    }
  });
  for (int k = 0; k < 4; ++k) CHECK(got[static_cast<size_t>(k)] == V{2.0 * k, 8, 36});
  CHECK(!w.grad().defined());
}

TEST_CASE("threads add to the gradients of shared parameters, then one of them steps") {
  Tensor w = parameter({1, 2}), b = parameter({0.5});
  optim::SGD opt({w, b}, {.lr = 0.125});
  for (int step = 0; step < 3; ++step) {
    V before = numbers(w);
    together(3, [&](int) {
      for (int i = 0; i < 5; ++i) ((w * 2).sum() + b.sum()).backward();
      synchronize();
    });
    opt.step();
    CHECK(numbers(w) == V{before[0] - 0.125 * 30, before[1] - 0.125 * 30});
  }
}

TEST_CASE("a pending tensor is handed to another thread, which reads it") {
  Queue<Tensor> queue;
  double sum = 0;
  std::thread reader([&] {
    for (int i = 0; i < 200; ++i) sum += queue.take().item();
  });
  Tensor a = here({1, 2, 3});
  for (int i = 0; i < 200; ++i) queue.put(((a + i).square() - a).sum());
  reader.join();
  double want = 0;
  for (int i = 0; i < 200; ++i)
    want += (1 + i) * (1 + i) + (2 + i) * (2 + i) + (3 + i) * (3 + i) - 6;
  CHECK(sum == want);
}

TEST_CASE(
    "a pending tensor is handed to another thread, which continues computing with it, views and "
    "gradients "
    "too") {
  Queue<Tensor> queue;
  std::atomic<int> wrong{0};
  std::thread worker([&] {
    for (int i = 0; i < 100; ++i) {
      Tensor x = queue.take();
      Tensor y = x.view({2, 2}).t()[0] * 2;
      if (numbers(y) != V{2.0 * i, 2.0 * (i + 2)}) ++wrong;
      Tensor w = parameter({1, 1, 1, 1});
      (w * x).sum().backward();
      if (numbers(w.grad()) != V{1.0 * i, i + 1.0, i + 2.0, i + 3.0}) ++wrong;
    }
  });
  Tensor base = here({0, 1, 2, 3});
  for (int i = 0; i < 100; ++i) queue.put((base + i).view({4, 1}).view({4}));
  worker.join();
  CHECK(wrong == 0);
}

TEST_CASE("both sides of a handed-over tensor use it at once") {
  std::atomic<int> wrong{0};
  for (int round = 0; round < 50; ++round) {
    Tensor a = here({1, 2, 3}), h = exp(a) - exp(a) + a, view = h[Slice{1, {}, {}}], sum = h.sum();
    std::thread other([h, view, sum, &wrong] {
      if (numbers(view) != V{2, 3}) ++wrong;
      if ((sum + 1).item() != 7) ++wrong;
      if (numbers(h * 2) != V{2, 4, 6}) ++wrong;
    });
    if (numbers(h + 1) != V{2, 3, 4}) ++wrong;
    if (sum.item() != 6) ++wrong;
    if (numbers(view.sum() + h) != V{6, 7, 8}) ++wrong;
    other.join();
  }
  CHECK(wrong == 0);
}

TEST_CASE("handles are dropped by other threads while their owner records and runs") {
  Queue<Tensor> queue;
  std::vector<std::thread> droppers;
  for (int k = 0; k < 2; ++k)
    droppers.emplace_back([&] {
      for (Tensor t = queue.take(); t.defined(); t = queue.take()) t = Tensor();
    });
  Tensor a = here({1, 2, 3}), x = a;
  for (int i = 0; i < 2000; ++i) {
    Tensor y = x * 1.0;
    queue.put(exp(y) + 1);
    queue.put(y[Slice{1, {}, {}}]);
    x = y + 0.0;
    if (i % 7 == 0) eval(x);
  }
  queue.put({});
  queue.put({});
  for (std::thread& t : droppers) t.join();
  CHECK(numbers(x) == V{1, 2, 3});
}

TEST_CASE("handles are dropped by another thread while a third runs the owner's values") {
  for (int round = 0; round < 30; ++round) {
    Tensor a = here({1, 2, 3});
    std::vector<Tensor> values, same;
    for (int i = 0; i < 50; ++i) values.push_back(a * (i + 1));
    same = values;
    std::thread runner([&] {
      for (size_t i = 0; i < same.size(); i += 10) (void)same[i].sum().item();
    });
    std::thread dropper([kept = std::move(values)]() mutable { kept.clear(); });
    Tensor more = a;
    for (int i = 0; i < 50; ++i) more = more + 1;
    CHECK(numbers(more) == V{51, 52, 53});
    runner.join();
    dropper.join();
    CHECK(numbers(same[49]) == V{50, 100, 150});
  }
}

TEST_CASE("another thread reads losses while their owner continues with backward and step") {
  Queue<Tensor> losses;
  V seen;
  std::thread logger([&] {
    for (Tensor t = losses.take(); t.defined(); t = losses.take()) seen.push_back(t.item());
  });
  auto train = [](const std::function<void(const Tensor&)>& log) {
    Tensor w = parameter({1, 2}), x = here({0.5, 0.25});
    optim::AdamW opt({w}, {.lr = 0.01});
    for (int i = 0; i < 100; ++i) {
      Tensor loss = (w * x).exp().sum();
      log(loss.detach());
      loss.backward();
      if (i % 3)
        opt.step();
      else
        opt.zero_grad();
    }
  };
  train([&](const Tensor& t) { losses.put(t); });
  losses.put({});
  logger.join();
  V want;
  train([&](const Tensor& t) { want.push_back(t.item()); });
  CHECK(close(seen, want, 1e-6));
}

TEST_CASE("what a thread left pending is there after it has ended") {
  Tensor a = here({1, 2, 3}), left, trained = parameter({1, 2});
  std::thread([&] {
    left = exp(a).log().round() + a;
    (trained * 3).sum().backward();
  }).join();
  CHECK(numbers(left) == V{2, 4, 6});
  CHECK(numbers(trained.grad()) == V{3, 3});
}

TEST_CASE("threads train separate models, with dropout and AdamW, to the same bits") {
  auto train = [](int) {
    Generator random(3);
    Tensor w1 = (randn({16, 8}, {}, random) * 0.3).eval_(),
           w2 = (randn({4, 16}, {}, random) * 0.3).eval_();
    w1.requires_grad_(), w2.requires_grad_();
    optim::AdamW opt({w1, w2}, {.lr = 0.01});
    Tensor x = randn({12, 8}, {}, random).eval_(), target = randint(0, 4, {12}, {}, random).eval_();
    Tensor loss;
    for (int i = 0; i < 8; ++i) {
      loss = cross_entropy(linear(dropout(gelu(linear(x, w1)), 0.1, true, random), w2), target);
      loss.backward();
      opt.step();
    }
    return loss.item();
  };
  double alone = train(0);
  std::vector<double> got(4);
  together(4, [&](int k) { got[static_cast<size_t>(k)] = train(k); });
  for (double v : got) CHECK(v == alone);
}

TEST_CASE("set_num_threads may be called while others run; results do not depend on it") {
  int before = get_num_threads();
  Tensor a = (arange(60000, float32) / 60000).view({200, 300}).eval_();
  auto program = [&] { return numbers(softmax(a.matmul(a.t()), 1).sum(0)); };
  V want = program();
  std::atomic<int> wrong{0};
  together(3, [&](int k) {
    for (int i = 0; i < 6; ++i) {
      if (k == 0)
        set_num_threads(1 + i % 3);
      else if (!close(program(), want, 1e-6))
        ++wrong;
    }
  });
  set_num_threads(before);
  CHECK(wrong == 0);
  CHECK(kind_of([] { set_num_threads(0); }) == ErrorKind::Value);
}

TEST_CASE("plans that span devices in opposite orders do not wait for each other") {
  std::atomic<int> wrong{0};
  together(2, [&](int k) {
    Device here_first(k ? "cpu:1" : "cpu:0"), there(k ? "cpu:0" : "cpu:1");
    Tensor x = arange(64, {float32, here_first}).eval_().view({8, 8});
    for (int i = 0; i < 30; ++i) {
      Tensor y = softmax(x.matmul(x) * 0.001, 1).to(there);
      Tensor z = y.matmul(y).softmax(1).to(here_first);
      if (std::abs(z.sum().item() - 8) > 1e-4) ++wrong;
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("data_parallel in one thread does not move the tensors another makes") {
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::thread other([&] {
    while (!done)
      if (ones({3}).device() != Device("cpu:0")) ++wrong;
  });
  Tensor w = parameter({1, 2}), x = here({1, 2, 3, 4}).view({2, 2});
  for (int i = 0; i < 20; ++i) {
    Tensor loss = data_parallel({"cpu:0", "cpu:1"}, {w}, {x}, [&](const std::vector<Tensor>& part) {
      return (part[0] * w).sum() * ones({});
    });
    CHECK(loss.item() == doctest::Approx(8));
  }
  done = true;
  other.join();
  CHECK(wrong == 0);
}

TEST_CASE("errors stay with the thread that made them") {
  std::atomic<int> caught{0}, wrong{0};
  together(4, [&](int k) {
    Tensor x = here({1, 2, 3});
    for (int i = 0; i < 20; ++i) {
      if (k % 2) {
        Tensor bad = gather(x, 0, tensor({i % 2 ? 1 : 7}));
        if (kind_of([&] { (void)bad.item(); }) == ErrorKind::Index) ++caught;
      } else if (numbers(x * i) != V{1.0 * i, 2.0 * i, 3.0 * i}) {
        ++wrong;
      }
    }
  });
  CHECK(caught == 20);
  CHECK(wrong == 0);
}

TEST_CASE("captured functions run in separate threads") {
  std::vector<double> got(3);
  together(3, [&](int k) {
    Tensor w = parameter({1, 2});
    optim::SGD opt({w}, {.lr = 0.5});
    Captured step = capture([&](const std::vector<Tensor>& in) {
      (w * in[0]).sum().backward();
      opt.step();
      return std::vector<Tensor>{w.sum()};
    });
    for (int i = 0; i < 10; ++i) got[static_cast<size_t>(k)] = step({here({1, 1})})[0].item();
  });
  for (double v : got) CHECK(v == 3 - 10);
}
