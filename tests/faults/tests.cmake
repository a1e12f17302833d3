# Faults on purpose: memory that runs out, threads that cannot be started, processes that fork.
set(fault_tests ${CMAKE_CURRENT_LIST_DIR})
ingot_test(faults_pool SOURCES ${fault_tests}/pool_test.cpp LABELS asan tsan)
ingot_test(faults_fork SOURCES ${fault_tests}/fork_test.cpp LABELS asan)
ingot_test(faults_memory SOURCES ${fault_tests}/memory_test.cpp LABELS asan)
ingot_test(faults_injection
  SOURCES ${fault_tests}/injection_test.cpp ${fault_tests}/programs.cpp ${fault_tests}/allocation_hook.cpp LABELS asan)
# Without LeakSanitizer: oneDNN loses parts of a primitive when an allocation fails while it makes one, and g++ 12's tracer dies in a process
# whose threads met failed allocations. The test itself looks at what is still held.
set_property(TEST faults_injection APPEND PROPERTY ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0")
add_test(NAME faults_injection_all COMMAND test_faults_injection WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
set_tests_properties(faults_injection_all PROPERTIES
  ENVIRONMENT "INGOT_TEST_FAULTS=all;ASAN_OPTIONS=detect_leaks=0;${test_environment}" LABELS slow TIMEOUT 3600)
