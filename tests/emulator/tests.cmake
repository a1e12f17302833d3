# Generated CUDA text: compiled by NVRTC where there is one, and executed on the CPU.
set(emulator ${CMAKE_CURRENT_LIST_DIR})
add_library(ingot_test_emulator STATIC
  ${emulator}/driver.cpp ${emulator}/emulated_backend.cpp ${emulator}/emulator.cpp ${emulator}/fibers.cpp ${emulator}/spec_builder.cpp ${emulator}/../support/spec_interpreter.cpp)
target_compile_definitions(ingot_test_emulator PRIVATE INGOT_EMULATOR_DIR="${emulator}")
target_link_libraries(ingot_test_emulator PUBLIC ingot_test_oracle ingot_cuda_emit Threads::Threads ${CMAKE_DL_LIBS})

ingot_test(cuda_text SOURCES ${emulator}/cuda_text_test.cpp ${emulator}/text_cases.cpp ${emulator}/text_cases_columns.cpp LIBS ingot_test_emulator TIMEOUT 900)
add_test(NAME cuda_text_all COMMAND test_cuda_text "-tc=NVRTC takes*")
set_tests_properties(cuda_text_all PROPERTIES LABELS slow TIMEOUT 1800 ENVIRONMENT "INGOT_TEST_ALL=1")
ingot_test(cuda_gpu SOURCES ${emulator}/cuda_gpu_test.cpp ${emulator}/text_cases.cpp ${emulator}/text_cases_columns.cpp LIBS ingot_test_emulator LABELS gpu)

# Tests of other folders once more, with the emulator as the device "cuda" and that as the default device.
set(tests ${emulator}/..)
function(ingot_emulated_test name)
  ingot_test(${name}_emulated SOURCES ${ARGN} ${emulator}/use_emulator.cpp LIBS ingot_test_check ingot_test_emulator TIMEOUT 900)
  set_property(TEST ${name}_emulated APPEND PROPERTY ENVIRONMENT "INGOT_TEST_DEVICE=cuda")
endfunction()
set(op_cases op_cases op_cases_index op_cases_elementwise op_cases_arrange op_cases_algebra)
list(TRANSFORM op_cases REPLACE "(.+)" "${tests}/ops/\\1.cpp")
ingot_emulated_test(op ${tests}/ops/op_test.cpp ${op_cases})
ingot_emulated_test(random_programs ${emulator}/programs_emulated_test.cpp ${tests}/support/random_program.cpp)
ingot_emulated_test(golden ${tests}/ops/golden_test.cpp)
ingot_emulated_test(golden_index ${tests}/ops/golden_index_test.cpp)
ingot_emulated_test(optim ${tests}/optim/optim_test.cpp)
ingot_emulated_test(training ${tests}/training/training_test.cpp)
ingot_emulated_test(nn ${tests}/nn/nn_test.cpp)
ingot_emulated_test(neural_op ${tests}/ops/op_test.cpp ${tests}/neural/neural_cases.cpp)
ingot_emulated_test(semantics ${tests}/compile/semantics_test.cpp ${tests}/compile/semantics_training_test.cpp ${tests}/compile/semantics_devices_test.cpp)
