# Modules, layers, models, training.
set(nn ${CMAKE_CURRENT_LIST_DIR})
ingot_test(module SOURCES ${nn}/module_test.cpp LABELS asan)
ingot_test(layers SOURCES ${nn}/layers_test.cpp LABELS asan)
ingot_test(optimisers SOURCES ${nn}/optim_test.cpp LABELS asan)
ingot_test(layers_golden SOURCES ${nn}/layers_golden_test.cpp)
ingot_test(guard SOURCES ${nn}/guard_test.cpp LABELS asan)
# The guard where the device runs ahead of the program: on the fake CUDA machine.
ingot_test_on_fake_cuda(guard)
