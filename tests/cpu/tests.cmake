# The CPU backend against a naive interpreter of KernelSpecs.
set(cpu_tests ${CMAKE_CURRENT_LIST_DIR})
ingot_test(cpu_backend
  SOURCES ${cpu_tests}/cpu_backend_test.cpp ${cpu_tests}/library_test.cpp ${cpu_tests}/math_test.cpp
          ${cpu_tests}/random_spec.cpp ${cpu_tests}/spec_interpreter.cpp
  LABELS asan tsan)
target_include_directories(test_cpu_backend PRIVATE ${cpu_tests})
