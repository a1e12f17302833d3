// Memory shared with other libraries.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <cstring>
#include <optional>
#include <vector>

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

TEST_CASE("arrays of other libraries are checked before they are touched") {
  std::vector<float> data{1, 2, 3, 4, 5, 6};
  int released = 0;
  auto release = [&] { ++released; };
  ForeignArray a{data.data(), float32, {2, 3}, {}, Device("cpu")};
  CHECK(share_memory(from_foreign(a, false, release)).data == data.data());
  CHECK(released == 1);
  CHECK(share_memory(from_foreign(a, true, release)).data != data.data());
  CHECK(released == 2);
  // Transposed; backwards; the same element again and again.
  a.shape = {3, 2}, a.strides = Dims{4, 12};
  CHECK(from_foreign(a, false, release).to_vector<float>() == std::vector<float>{1, 4, 2, 5, 3, 6});
  a.data = data.data() + 5, a.shape = {3}, a.strides = Dims{-8};
  CHECK(from_foreign(a, false, release).to_vector<float>() == std::vector<float>{6, 4, 2});
  a.strides = Dims{0};
  CHECK(from_foreign(a, false, release).to_vector<float>() == std::vector<float>{6, 6, 6});
  // Between two elements.
  std::vector<char> bytes(9);
  std::memcpy(bytes.data() + 1, data.data(), 8);
  CHECK(from_foreign({bytes.data() + 1, float32, {2}, {}, Device("cpu")}, false, release)
            .to_vector<float>() == std::vector<float>{1, 2});
  std::vector<uint8_t> bools{0, 1, 2, 255};
  CHECK(from_foreign({bools.data(), bool_, {4}, {}, Device("cpu")}, false, release)
            .to(int64)
            .sum()
            .item() == 3);
  released = 0;
  const int64_t large = int64_t{1} << 40;
  auto refused = [&](const Dims& shape, const std::optional<Dims>& strides, void* at) {
    const int before = released;
    CHECK_THROWS_AS(from_foreign({at, float32, shape, strides, Device("cpu")}, false, release),
                    Error);
    CHECK(released == before + 1);
  };
  refused({2}, {}, nullptr);
  refused({-1}, {}, data.data());
  refused({large, large}, {}, data.data());
  refused({large, large, 0}, {}, data.data());
  refused({2, 2}, Dims{4}, data.data());
  refused({3}, Dims{INT64_MAX}, data.data());
  refused({large}, Dims{-large}, data.data());
  refused({large}, {}, reinterpret_cast<void*>(~uintptr_t{0} - 100));
}
