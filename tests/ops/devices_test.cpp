// The list of devices, and how exact products are.
#include <doctest/doctest.h>

#include <ingot/ingot.h>

using namespace ingot;

TEST_CASE("the list of devices begins with the CPU and says why there is no GPU") {
  auto list = list_devices();
  REQUIRE(!list.empty());
  CHECK(list[0].device == Device("cpu"));
  CHECK(!list[0].name.empty());
  CHECK(list[0].memory >= list[0].free);
  CHECK(list[0].free > 0);
  std::string text = describe_devices();
  CHECK(text.find("cpu\t") == 0);
  CHECK((list.size() > 1 || text.find("no GPU\t") != std::string::npos));
}

TEST_CASE("the precision of products is one of two words, and part of a plan's key") {
  CHECK(get_matmul_precision() == "highest");
  CHECK_THROWS_WITH_AS(set_matmul_precision("fast"),
                       doctest::Contains("use \"highest\" or \"high\""), Error);
  CHECK(get_matmul_precision() == "highest");
  Tensor a = randn({4, 4}), exact = a.matmul(a);
  eval(exact);
  set_matmul_precision("high");
  Tensor quick = a.matmul(a);
  CHECK((quick - exact).abs().max().item() == 0.0);  // on the CPU nothing changes
  set_matmul_precision("highest");
}
