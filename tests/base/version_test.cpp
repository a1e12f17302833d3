#include <string>

#include <doctest/doctest.h>

#include <ingot/version.h>

TEST_CASE("the library and its headers agree about the version") {
  CHECK(std::string(ingot::version()) == INGOT_VERSION_STRING);
}

TEST_CASE("a test's own file counts as user code: neither ingot/src nor ingot/include") {
  CHECK(std::string(__FILE__) == "ingot/tests/base/version_test.cpp");
}
