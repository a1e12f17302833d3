# Convolutions, poolings, norms: the op tests over their cases, against PyTorch's numbers, and their errors.
set(neural ${CMAKE_CURRENT_LIST_DIR})
ingot_test(neural_op SOURCES ${neural}/../op_test.cpp ${neural}/neural_cases.cpp LIBS ingot_test_check LABELS asan)
ingot_test(neural_golden SOURCES ${neural}/golden_test.cpp LIBS ingot_test_oracle)
ingot_test(neural_errors SOURCES ${neural}/neural_errors_test.cpp LABELS asan)
