# Every op against the oracle and by finite differences.
set(ops_tests ${CMAKE_CURRENT_LIST_DIR})
set(op_cases ${ops_tests}/op_cases.cpp ${ops_tests}/op_cases_index.cpp ${ops_tests}/op_cases_elementwise.cpp
  ${ops_tests}/op_cases_arrange.cpp ${ops_tests}/op_cases_algebra.cpp)
ingot_test(oracle SOURCES ${ops_tests}/oracle_test.cpp LIBS ingot_test_oracle)
ingot_test(op SOURCES ${ops_tests}/op_test.cpp ${op_cases} LIBS ingot_test_check LABELS asan)

# The front end: types, shapes, indexing, in-place, random numbers, printing, error messages.
ingot_test(front SOURCES ${ops_tests}/front_test.cpp ${ops_tests}/inplace_test.cpp LABELS asan tsan LIBS ingot_test_oracle)
ingot_test(interop SOURCES ${ops_tests}/interop_test.cpp LABELS asan tsan)
ingot_test(devices SOURCES ${ops_tests}/devices_test.cpp)
ingot_test(names SOURCES ${ops_tests}/names_test.cpp)
ingot_test(errors SOURCES ${ops_tests}/errors_test.cpp ${ops_tests}/errors_ops_test.cpp LABELS asan)
ingot_test(golden SOURCES ${ops_tests}/golden_test.cpp LIBS ingot_test_oracle)
ingot_test(golden_index SOURCES ${ops_tests}/golden_index_test.cpp LIBS ingot_test_oracle)
ingot_test(statistics SOURCES ${ops_tests}/statistics_test.cpp LABELS asan)
ingot_test(index SOURCES ${ops_tests}/index_test.cpp LABELS asan)
# The same values and messages when every operation runs at its line.
foreach(name front golden golden_index)
  add_test(NAME ${name}_eager COMMAND test_${name} WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  set_tests_properties(${name}_eager PROPERTIES ENVIRONMENT "INGOT_EAGER=1" TIMEOUT 300)
endforeach()
