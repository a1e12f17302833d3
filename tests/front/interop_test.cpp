// Memory shared with other libraries.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

using namespace ingot;

TEST_CASE("shared memory keeps the value it was taken from, whatever happens to the tensor") {
  Tensor x = ones({8}) * 2;
  SharedMemory m = share_memory(x);
  const float* p = static_cast<const float*>(m.data);
  CHECK(p[7] == 2);
  x += 1;
  x.eval_();
  CHECK(p[7] == 2);
  x = Tensor();
  ones({8}).eval_();
  CHECK(p[0] == 2);
}

TEST_CASE("what the holder writes is seen by the tensor") {
  Tensor x = zeros({4}).eval_();
  static_cast<float*>(share_memory(x).data)[2] = 5;
  CHECK(x.to_vector<float>() == std::vector<float>{0, 0, 5, 0});
}

TEST_CASE("memory of others is used in place and given back once") {
  std::vector<float> data{1, 2, 3, 4};
  int released = 0;
  {
    Tensor x = from_shared_memory(data.data(), float32, {2, 2}, Device("cpu"), [&] { ++released; });
    CHECK(share_memory(x).data == data.data());
    Tensor y = x * 2;
    x = Tensor();
    CHECK(released == 0);
    CHECK(y.to_vector<float>() == std::vector<float>{2, 4, 6, 8});
  }
  CHECK(released == 1);
}

TEST_CASE("what cannot be shared is refused") {
  CHECK_THROWS_AS(share_memory(Tensor()), Error);
  CHECK_THROWS_AS(from_shared_memory(nullptr, float32, {2}, Device("cpu"), nullptr), Error);
  CHECK_THROWS_AS(from_shared_memory(nullptr, float32, {-2}, Device("cpu"), nullptr), Error);
  Captured c = capture([](const std::vector<Tensor>& in) {
    share_memory(in[0] + 1);
    return in;
  });
  CHECK_THROWS_AS(c({ones({2})}), Error);
}

TEST_CASE("what is known by a formula can be gathered from") {
  Tensor at = tensor({3, 0, 2});
  CHECK(arange(10).index_select(0, at).to_vector<int64_t>() == std::vector<int64_t>{3, 0, 2});
  CHECK(arange(10).view({2, 5}).index_select(1, at).to_vector<int64_t>() ==
        std::vector<int64_t>{3, 0, 2, 8, 5, 7});
  manual_seed(4);
  Tensor r = rand({10}), picked = r.index_select(0, at);
  auto all = r.to_vector<float>();
  CHECK(picked.to_vector<float>() == std::vector<float>{all[3], all[0], all[2]});
}
