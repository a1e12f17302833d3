# Files, checkpoints and what they hold.
set(io ${CMAKE_CURRENT_LIST_DIR})
ingot_test(state SOURCES ${io}/state_test.cpp LABELS asan)
