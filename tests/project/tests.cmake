# Checks of the project itself: includes, installation, budgets, the code in the documents.
set(project_tests ${CMAKE_CURRENT_LIST_DIR})

add_test(NAME include_scan COMMAND Python3::Interpreter ${project_tests}/include_scan.py ${PROJECT_SOURCE_DIR})
add_test(NAME include_scan_self COMMAND Python3::Interpreter ${project_tests}/include_scan.py --self-test)

# The same of the objects that were built.
add_test(NAME link_graph COMMAND Python3::Interpreter ${project_tests}/link_graph.py ${PROJECT_BINARY_DIR})
set_tests_properties(link_graph PROPERTIES SKIP_RETURN_CODE 77)
add_test(NAME link_graph_self COMMAND Python3::Interpreter ${project_tests}/link_graph.py --self-test)

add_test(NAME references COMMAND Python3::Interpreter ${project_tests}/references.py ${PROJECT_SOURCE_DIR})
add_test(NAME references_self COMMAND Python3::Interpreter ${project_tests}/references.py --self-test)

add_test(NAME format COMMAND Python3::Interpreter ${project_tests}/format.py ${PROJECT_SOURCE_DIR})
set_tests_properties(format PROPERTIES SKIP_RETURN_CODE 77)

add_test(NAME readme_example COMMAND Python3::Interpreter ${project_tests}/readme_example.py ${PROJECT_SOURCE_DIR})
add_test(NAME setup_gpu COMMAND Python3::Interpreter ${project_tests}/setup_gpu.py ${PROJECT_SOURCE_DIR})
add_test(NAME benchmarks_table COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tools/benchmarks_table.py --check)
add_test(NAME op_reference COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tools/op_reference.py --check)

ingot_test(environment SOURCES ${project_tests}/environment_test.cpp LABELS asan)
add_executable(environment_page ${project_tests}/environment_page.cpp)
target_link_libraries(environment_page PRIVATE ingot ingot_options)
set_target_properties(environment_page PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
add_test(NAME project_environment COMMAND Python3::Interpreter ${project_tests}/environment.py $<TARGET_FILE:environment_page> ${PROJECT_SOURCE_DIR})

# Measured on the optimised build only.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT INGOT_SANITIZE)
  foreach(check package budgets documents)
    add_test(NAME ${check} COMMAND Python3::Interpreter ${project_tests}/${check}.py
      --source ${PROJECT_SOURCE_DIR} --build ${PROJECT_BINARY_DIR} --compiler ${CMAKE_CXX_COMPILER})
    set_tests_properties(${check} PROPERTIES LABELS budget RUN_SERIAL ON TIMEOUT 300)
  endforeach()
  ingot_test(record_budget SOURCES ${project_tests}/record_budget_test.cpp LABELS budget)
  set_tests_properties(record_budget PROPERTIES RUN_SERIAL ON)
endif()
