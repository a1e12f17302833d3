# Datasets, the loader, transforms, readers, tokenizers.
set(data_tests ${CMAKE_CURRENT_LIST_DIR})
ingot_test(loader SOURCES ${data_tests}/loader_test.cpp LABELS asan tsan)
ingot_test(readers SOURCES ${data_tests}/readers_test.cpp ${data_tests}/tokenizers_test.cpp LABELS asan)
ingot_test(transforms SOURCES ${data_tests}/transforms_test.cpp LABELS asan)
foreach(name readers transforms)
  target_compile_definitions(test_${name} PRIVATE INGOT_TEST_FILES="${data_tests}/files" INGOT_TEST_DATA="${PROJECT_SOURCE_DIR}/data")
endforeach()

# The same on a device, and on the fake CUDA machine where the plug-in is built.
ingot_test(data_device SOURCES ${data_tests}/device_test.cpp LABELS asan tsan)
ingot_test_on_fake_cuda(data_device)
