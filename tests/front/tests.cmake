# The front end: types, shapes, indexing, in-place, random numbers, printing, error messages.
set(front ${CMAKE_CURRENT_LIST_DIR})
ingot_test(front SOURCES ${front}/front_test.cpp ${front}/inplace_test.cpp LABELS asan tsan LIBS ingot_test_oracle)
ingot_test(names SOURCES ${front}/names_test.cpp)
ingot_test(errors SOURCES ${front}/errors_test.cpp LABELS asan)
ingot_test(golden SOURCES ${front}/golden_test.cpp LIBS ingot_test_oracle)
