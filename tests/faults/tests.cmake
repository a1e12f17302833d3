# Faults on purpose: memory that runs out, threads that cannot be started, processes that fork.
set(fault_tests ${CMAKE_CURRENT_LIST_DIR})
ingot_test(faults_pool SOURCES ${fault_tests}/pool_test.cpp LABELS asan tsan)
ingot_test(faults_fork SOURCES ${fault_tests}/fork_test.cpp LABELS asan)
ingot_test(faults_memory SOURCES ${fault_tests}/memory_test.cpp LABELS asan)
