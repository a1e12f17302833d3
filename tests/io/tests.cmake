# Files, checkpoints and what they hold.
set(io ${CMAKE_CURRENT_LIST_DIR})
ingot_test(state SOURCES ${io}/state_test.cpp LABELS asan)
ingot_test(formats SOURCES ${io}/formats_test.cpp LABELS asan)
target_compile_definitions(test_formats PRIVATE INGOT_TEST_FILES="${io}/files")
ingot_test(checkpoint SOURCES ${io}/checkpoint_test.cpp LABELS asan tsan)
# A training run killed at random moments: 5 of them, and 50 among the slow tests.
add_executable(resume_program ${io}/resume_program.cpp)
target_link_libraries(resume_program PRIVATE ingot ingot_options)
set_target_properties(resume_program PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
add_test(NAME resume COMMAND Python3::Interpreter ${io}/resume.py $<TARGET_FILE:resume_program> --kills 5)
add_test(NAME resume_50 COMMAND Python3::Interpreter ${io}/resume.py $<TARGET_FILE:resume_program> --kills 50)
set_tests_properties(resume PROPERTIES TIMEOUT 300)
set_tests_properties(resume_50 PROPERTIES TIMEOUT 1200 LABELS slow)
