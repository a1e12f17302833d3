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
ingot_test_on_fake_cuda(data_device)
