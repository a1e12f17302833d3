# Modules, layers, models, training.
set(nn ${CMAKE_CURRENT_LIST_DIR})
ingot_test(nn SOURCES ${nn}/nn_test.cpp LABELS asan)
ingot_test(module SOURCES ${nn}/module_test.cpp LABELS asan)
ingot_test(layers SOURCES ${nn}/layers_test.cpp LABELS asan)
ingot_test(layers_golden SOURCES ${nn}/layers_golden_test.cpp)
