# What everything else is made of.
set(base_tests ${CMAKE_CURRENT_LIST_DIR})
ingot_test(version SOURCES ${base_tests}/version_test.cpp LABELS asan tsan)
