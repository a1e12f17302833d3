# The libraries Ingot stands on, all from the system (tools/setup.sh installs them). Nothing is fetched.

set(setup_hint "run tools/setup.sh, which installs what Ingot needs")

find_package(Threads REQUIRED)

# oneDNN and Highway are looked up by header and library: the packages' own CMake files differ between distributions
# (Debian's oneDNN one also asks for OpenCL, which Ingot does not use).
find_path(INGOT_DNNL_INCLUDE oneapi/dnnl/dnnl.hpp)
find_library(INGOT_DNNL_LIBRARY dnnl)
if(NOT INGOT_DNNL_INCLUDE OR NOT INGOT_DNNL_LIBRARY)
  message(FATAL_ERROR "oneDNN (libdnnl-dev) was not found: ${setup_hint}")
endif()
add_library(ingot_dnnl INTERFACE)
target_include_directories(ingot_dnnl SYSTEM INTERFACE ${INGOT_DNNL_INCLUDE})
target_link_libraries(ingot_dnnl INTERFACE ${INGOT_DNNL_LIBRARY})

find_path(INGOT_HWY_INCLUDE hwy/highway.h)
find_library(INGOT_HWY_LIBRARY hwy)
if(NOT INGOT_HWY_INCLUDE OR NOT INGOT_HWY_LIBRARY)
  message(FATAL_ERROR "Highway (libhwy-dev) was not found: ${setup_hint}")
endif()
add_library(ingot_hwy INTERFACE)
target_include_directories(ingot_hwy SYSTEM INTERFACE ${INGOT_HWY_INCLUDE})
target_link_libraries(ingot_hwy INTERFACE ${INGOT_HWY_LIBRARY})
if(INGOT_HWY_LIBRARY MATCHES "\\.so$")
  target_compile_definitions(ingot_hwy INTERFACE HWY_SHARED_DEFINE)
endif()

if(INGOT_TESTS)
  find_path(INGOT_DOCTEST_INCLUDE doctest/doctest.h)
  if(NOT INGOT_DOCTEST_INCLUDE)
    message(FATAL_ERROR "doctest (doctest-dev) was not found: ${setup_hint}")
  endif()
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()
