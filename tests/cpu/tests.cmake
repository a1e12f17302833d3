# The CPU backend against a naive interpreter of KernelSpecs.
set(cpu_tests ${CMAKE_CURRENT_LIST_DIR})
ingot_test(cpu_backend
  SOURCES ${cpu_tests}/accuracy_test.cpp ${cpu_tests}/cpu_backend_test.cpp ${cpu_tests}/library_test.cpp ${cpu_tests}/math_test.cpp ${cpu_tests}/single_index_update_test.cpp
          ${cpu_tests}/random_spec.cpp ${cpu_tests}/spec_interpreter.cpp
  LABELS asan tsan long TIMEOUT 900)
target_include_directories(test_cpu_backend PRIVATE ${cpu_tests})

ingot_test(cpu_attention SOURCES ${cpu_tests}/attention_test.cpp LABELS asan tsan)
target_include_directories(test_cpu_attention PRIVATE ${PROJECT_SOURCE_DIR}/src)

ingot_test(cpu_lstm SOURCES ${cpu_tests}/lstm_test.cpp LABELS asan tsan)

ingot_test(cpu_index SOURCES ${cpu_tests}/index_calls_test.cpp ${cpu_tests}/../plugin/library_cases.cpp ${cpu_tests}/../support/spec_interpreter.cpp
  LIBS ingot_test_oracle LABELS asan tsan)

ingot_test(cpu_move SOURCES ${cpu_tests}/move_test.cpp LABELS asan)
# Once more as on older processors.
foreach(level avx2 base)
  add_test(NAME cpu_move_${level} COMMAND test_cpu_move WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  set_tests_properties(cpu_move_${level} PROPERTIES ENVIRONMENT "INGOT_SIMD=${level}" LABELS asan TIMEOUT 60)
endforeach()

# The CPU backend's workshop: hand-built kernels timed alone. Not a test.
add_executable(bench_cpu_backend EXCLUDE_FROM_ALL ${cpu_tests}/workshop.cpp)
target_include_directories(bench_cpu_backend PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(bench_cpu_backend PRIVATE ingot ingot_options)
