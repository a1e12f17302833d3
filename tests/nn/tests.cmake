# Modules, layers, models, training.
set(nn ${CMAKE_CURRENT_LIST_DIR})
ingot_test(module SOURCES ${nn}/module_test.cpp LABELS asan)
ingot_test(layers SOURCES ${nn}/layers_test.cpp LABELS asan)
ingot_test(optimisers SOURCES ${nn}/optim_test.cpp LABELS asan)
ingot_test(layers_golden SOURCES ${nn}/layers_golden_test.cpp)
ingot_test(guard SOURCES ${nn}/guard_test.cpp LABELS asan)
# The guard where the device runs ahead of the program: on the fake CUDA machine.
if(TARGET ingot_cuda)
  add_test(NAME guard_cuda COMMAND test_guard WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  set(fake ${PROJECT_BINARY_DIR}/lib/libfake_cuda.so)
  set_tests_properties(guard_cuda PROPERTIES TIMEOUT 300 ENVIRONMENT
    "INGOT_TEST_DEVICE=cuda;INGOT_CUDA_PLUGIN=${PROJECT_BINARY_DIR}/lib/libingot_cuda.so;INGOT_CUDA_DRIVER=${fake};INGOT_NVRTC=${fake};INGOT_CUBLASLT=${fake};INGOT_CACHE_DIR=${PROJECT_BINARY_DIR}/tests/fake_guard_cache")
endif()
