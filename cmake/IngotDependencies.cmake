# The libraries Ingot depends on, all from the system (tools/setup.sh installs them). Nothing is fetched.

set(setup_hint "run tools/setup.sh, which installs what Ingot needs")

find_package(Threads REQUIRED)

# Looked up by header: the package's own CMake file differs between distributions.
find_path(INGOT_HWY_INCLUDE hwy/highway.h)
if(NOT INGOT_HWY_INCLUDE)
  message(FATAL_ERROR "Highway (libhwy-dev) was not found: ${setup_hint}")
endif()
# Headers only: src/backend/cpu/support/dispatch.h says why.
add_library(ingot_hwy INTERFACE)
target_include_directories(ingot_hwy SYSTEM INTERFACE ${INGOT_HWY_INCLUDE})

# For libingot_codecs; without them gzip and images cannot be read.
find_package(ZLIB QUIET)
find_package(PNG QUIET)
find_package(JPEG QUIET)

if(INGOT_TESTS)
  find_path(INGOT_DOCTEST_INCLUDE doctest/doctest.h)
  if(NOT INGOT_DOCTEST_INCLUDE)
    message(FATAL_ERROR "doctest (doctest-dev) was not found: ${setup_hint}")
  endif()
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()
