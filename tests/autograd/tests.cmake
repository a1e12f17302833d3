# Gradients: against finite differences, and what backward() promises.
set(autograd_tests ${CMAKE_CURRENT_LIST_DIR})
ingot_test(autograd SOURCES ${autograd_tests}/autograd_test.cpp LIBS ingot_test_check LABELS asan)
ingot_test(gradcheck SOURCES ${autograd_tests}/gradcheck_test.cpp LIBS ingot_test_check)
