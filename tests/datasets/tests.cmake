# Datasets, the loader, transforms, readers, tokenizers.
set(datasets ${CMAKE_CURRENT_LIST_DIR})
ingot_test(loader SOURCES ${datasets}/loader_test.cpp LABELS asan tsan)
ingot_test(readers SOURCES ${datasets}/readers_test.cpp ${datasets}/tokenizers_test.cpp LABELS asan)
ingot_test(transforms SOURCES ${datasets}/transforms_test.cpp LABELS asan)
foreach(name readers transforms)
  target_compile_definitions(test_${name} PRIVATE INGOT_TEST_FILES="${datasets}/files" INGOT_TEST_DATA="${PROJECT_SOURCE_DIR}/data")
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/io)
endforeach()

# The same on a device, and on the fake CUDA machine where the plug-in is built.
ingot_test(data_device SOURCES ${datasets}/device_test.cpp LABELS asan tsan)
if(TARGET ingot_cuda)
  add_test(NAME data_device_cuda COMMAND test_data_device WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  set(fake ${PROJECT_BINARY_DIR}/lib/libfake_cuda.so)
  set_tests_properties(data_device_cuda PROPERTIES TIMEOUT 300 ENVIRONMENT
    "INGOT_TEST_DEVICE=cuda;INGOT_CUDA_PLUGIN=${PROJECT_BINARY_DIR}/lib/libingot_cuda.so;INGOT_CUDA_DRIVER=${fake};INGOT_NVRTC=${fake};INGOT_CUBLASLT=${fake};INGOT_CACHE_DIR=${PROJECT_BINARY_DIR}/tests/fake_data_cache")
endif()
