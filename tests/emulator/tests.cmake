# Generated CUDA text: compiled by NVRTC where there is one, and executed on the CPU.
set(emulator ${CMAKE_CURRENT_LIST_DIR})
add_library(ingot_test_emulator STATIC
  ${emulator}/driver.cpp ${emulator}/emulated_backend.cpp ${emulator}/emulator.cpp ${emulator}/fibers.cpp ${emulator}/spec_builder.cpp ${emulator}/../spec_interpreter.cpp)
target_compile_definitions(ingot_test_emulator PRIVATE INGOT_EMULATOR_DIR="${emulator}")
target_link_libraries(ingot_test_emulator PUBLIC ingot_test_oracle Threads::Threads ${CMAKE_DL_LIBS})

ingot_test(cuda_text SOURCES ${emulator}/../cuda_text_test.cpp ${emulator}/../text_cases.cpp LIBS ingot_test_emulator TIMEOUT 900)
ingot_test(cuda_gpu SOURCES ${emulator}/../cuda_gpu_test.cpp ${emulator}/../text_cases.cpp LIBS ingot_test_emulator LABELS gpu)

# The op tests once more, with the emulator as the device "cuda".
function(ingot_emulated_test name)
  ingot_test(${name}_emulated SOURCES ${ARGN} ${emulator}/use_emulator.cpp LIBS ingot_test_check ingot_test_emulator TIMEOUT 900)
endfunction()
ingot_emulated_test(op ${emulator}/../op_test.cpp ${emulator}/../op_cases.cpp)
ingot_emulated_test(random_programs ${emulator}/programs_emulated_test.cpp ${emulator}/../random_program.cpp)
