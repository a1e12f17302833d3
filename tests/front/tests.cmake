# The front end: types, shapes, indexing, in-place, random numbers, printing, error messages.
set(front ${CMAKE_CURRENT_LIST_DIR})
ingot_test(front SOURCES ${front}/front_test.cpp ${front}/inplace_test.cpp LABELS asan tsan LIBS ingot_test_oracle)
ingot_test(interop SOURCES ${front}/interop_test.cpp LABELS asan tsan)
ingot_test(devices SOURCES ${front}/devices_test.cpp)
ingot_test(names SOURCES ${front}/names_test.cpp)
ingot_test(errors SOURCES ${front}/errors_test.cpp ${front}/errors_ops_test.cpp LABELS asan)
ingot_test(golden SOURCES ${front}/golden_test.cpp LIBS ingot_test_oracle)
ingot_test(golden_index SOURCES ${front}/golden_index_test.cpp LIBS ingot_test_oracle)
# The same values and messages when every operation runs at its line.
foreach(name front golden golden_index)
  add_test(NAME ${name}_eager COMMAND test_${name} WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  set_tests_properties(${name}_eager PROPERTIES ENVIRONMENT "INGOT_EAGER=1" TIMEOUT 300)
endforeach()
