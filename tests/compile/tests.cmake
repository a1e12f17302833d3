set(compile_tests ${CMAKE_CURRENT_LIST_DIR})
ingot_test(kernel_counts SOURCES ${CMAKE_CURRENT_LIST_DIR}/kernel_counts_test.cpp)
# What section after section of the semantics promises, as tiny programs.
ingot_test(semantics 
  SOURCES ${compile_tests}/semantics_test.cpp ${compile_tests}/semantics_training_test.cpp ${compile_tests}/semantics_devices_test.cpp
  LABELS asan)
ingot_test(plan_cache SOURCES ${compile_tests}/plan_cache_test.cpp LABELS asan)
ingot_test(plans SOURCES ${compile_tests}/plans_test.cpp)
ingot_test(threads SOURCES ${compile_tests}/threads_test.cpp LABELS asan tsan)
ingot_test(shared_tensors SOURCES ${compile_tests}/shared_tensors_test.cpp LABELS asan tsan)
ingot_test(profile SOURCES ${compile_tests}/profile_test.cpp)
ingot_test(random_programs SOURCES ${compile_tests}/random_programs_test.cpp ${compile_tests}/../support/random_program.cpp LIBS ingot_test_check)
ingot_test(conv_epilogue SOURCES ${compile_tests}/conv_epilogue_test.cpp ${compile_tests}/../plugin/conv_cases.cpp LABELS asan)
ingot_test(verify SOURCES ${compile_tests}/verify_test.cpp LABELS asan)
ingot_test(rules SOURCES ${compile_tests}/rules_test.cpp LABELS asan)
ingot_test(offers SOURCES ${compile_tests}/offers_test.cpp LABELS asan)
ingot_test(same_graph SOURCES ${compile_tests}/same_graph_test.cpp LABELS asan)
ingot_test_on_fake_cuda(same_graph)
add_test(NAME same_graph_libraries COMMAND Python3::Interpreter ${compile_tests}/same_graph.py $<TARGET_FILE:test_same_graph>)
set_tests_properties(same_graph_libraries PROPERTIES TIMEOUT 300)
# The compiler's graph, verified after every pass, on many programs.
foreach(test semantics kernel_counts random_programs)
  add_test(NAME ${test}_verified COMMAND test_${test} WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  set_tests_properties(${test}_verified PROPERTIES TIMEOUT 300
    ENVIRONMENT "${test_environment};INGOT_VERIFY=1;INGOT_RANDOM_PROGRAMS=500")
endforeach()
