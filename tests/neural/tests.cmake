# Convolutions, poolings, norms: the op tests over their cases, against PyTorch's numbers, and their errors.
set(neural ${CMAKE_CURRENT_LIST_DIR})
ingot_test(neural_op SOURCES ${neural}/../ops/op_test.cpp ${neural}/neural_cases.cpp LIBS ingot_test_check LABELS asan)
ingot_test(neural_golden SOURCES ${neural}/golden_test.cpp LIBS ingot_test_oracle)
ingot_test(neural_errors SOURCES ${neural}/neural_errors_test.cpp LABELS asan)
ingot_test(neural_conv SOURCES ${neural}/conv_test.cpp LABELS asan tsan long)
ingot_test(neural_winograd SOURCES ${neural}/winograd_test.cpp LABELS asan tsan TIMEOUT 900)
ingot_test(neural_pool SOURCES ${neural}/pool_test.cpp LABELS asan)
# Once more without oneDNN: Ingot's own convolutions.
foreach(name neural_conv neural_op)
  add_test(NAME ${name}_own COMMAND test_${name} WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  set_tests_properties(${name}_own PROPERTIES ENVIRONMENT "INGOT_DNNL=0" TIMEOUT 300)
endforeach()
