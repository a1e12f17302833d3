// The main function of every test program. INGOT_TEST_DEVICE=cuda:0 makes that the default device
// and, for tests that go through all devices, the only one.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

#include "ingot/device.h"
#include "ingot/error.h"

int main(int argc, char** argv) {
  if (const char* name = std::getenv("INGOT_TEST_DEVICE")) {
    try {
      ingot::set_default_device(name);
    } catch (const ingot::Error& e) {
      std::fprintf(stderr, "%s\n", e.what());
      return 1;
    }
  }
  return doctest::Context(argc, argv).run();
}
