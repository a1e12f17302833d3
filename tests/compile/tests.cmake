ingot_test(kernel_counts SOURCES ${CMAKE_CURRENT_LIST_DIR}/kernel_counts_test.cpp)
