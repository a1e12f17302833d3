# The recorded graph: the op table and what ops carry.
set(graph_tests ${CMAKE_CURRENT_LIST_DIR})
ingot_test(op_table SOURCES ${graph_tests}/op_table_test.cpp LABELS asan)
