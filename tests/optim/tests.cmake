# Optimisers, schedules and the guard against NaN.
set(optim_tests ${CMAKE_CURRENT_LIST_DIR})
ingot_test(optim SOURCES ${optim_tests}/optim_test.cpp LIBS ingot_test_check LABELS asan)
ingot_test(optimisers SOURCES ${optim_tests}/optimisers_test.cpp LABELS asan)
ingot_test(custom_optimiser SOURCES ${optim_tests}/custom_test.cpp LABELS asan)
ingot_test(guard SOURCES ${optim_tests}/guard_test.cpp LABELS asan)
# The guard where the device runs ahead of the program: on the fake CUDA machine.
ingot_test_on_fake_cuda(guard)
