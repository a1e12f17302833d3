# Files, checkpoints and what they hold.
set(io ${CMAKE_CURRENT_LIST_DIR})
ingot_test(state SOURCES ${io}/state_test.cpp LABELS asan)
ingot_test(formats SOURCES ${io}/formats_test.cpp LABELS asan)
target_compile_definitions(test_formats PRIVATE INGOT_TEST_FILES="${io}/files")
