# Whole models: what they are, that they learn, and that training them is training PyTorch's.
set(training ${CMAKE_CURRENT_LIST_DIR})
ingot_test(models SOURCES ${training}/models_test.cpp)
# Trains a model from given weights and batches and writes what it saw; parity.py does the same with PyTorch and compares.
add_executable(parity_train ${training}/parity_train.cpp)
target_link_libraries(parity_train PRIVATE ingot::ingot ingot_options)
set_target_properties(parity_train PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
function(parity_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "MODELS;LABELS" ${ARGN})
  add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} ${training}/parity.py --program $<TARGET_FILE:parity_train> ${arg_MODELS})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77)
endfunction()
parity_test(parity_sample MODELS lenet gpt --steps 20 TIMEOUT 300)
parity_test(parity MODELS lenet resnet18 vit gpt --steps 100 TIMEOUT 3600 LABELS slow)
