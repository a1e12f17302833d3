# The CUDA plug-in without a GPU: its kernels on the emulator, and the whole of it on a fake CUDA machine.
if(TARGET ingot_cuda)
  set(cuda_tests ${CMAKE_CURRENT_LIST_DIR})
  set(cuda_emulator ${CMAKE_CURRENT_LIST_DIR}/../emulator)
  add_library(fake_cuda MODULE ${cuda_tests}/fake_cuda.cpp ${cuda_tests}/fake_memory.cpp ${cuda_tests}/fake_blaslt.cpp ${cuda_tests}/fake_dnn.cpp ${cuda_emulator}/fibers.cpp)
  target_include_directories(fake_cuda PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(fake_cuda PRIVATE INGOT_EMULATOR_DIR="${cuda_emulator}")
  target_link_libraries(fake_cuda PRIVATE ingot_cuda_emit ingot ingot_options ${CMAKE_DL_LIBS})

  set(hand_kernel_cases ${cuda_tests}/hand_kernel_cases.cpp ${cuda_tests}/library_cases.cpp ${cuda_tests}/attention_cases.cpp)
  ingot_test(cuda_kernels SOURCES ${cuda_tests}/hand_kernels_test.cpp ${hand_kernel_cases}
    LIBS ingot_test_emulator ingot_cuda_objects TIMEOUT 600)
  # A tool, not a test: see CONTRIBUTING.md.
  add_executable(cubin_list EXCLUDE_FROM_ALL ${cuda_tests}/cubin_list.cpp ${hand_kernel_cases}
    ${cuda_emulator}/text_cases.cpp ${cuda_emulator}/text_cases_columns.cpp)
  target_link_libraries(cubin_list PRIVATE ingot_test_emulator ingot_cuda_objects)
  set_target_properties(cubin_list PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  ingot_test(cuda_overlap SOURCES ${cuda_tests}/overlap_test.cpp LIBS ingot_cuda_objects)
  ingot_test(cuda_copiers SOURCES ${cuda_tests}/copiers_test.cpp LIBS ingot_cuda_objects LABELS tsan)
  ingot_test(cuda_cache SOURCES ${cuda_tests}/cache_test.cpp LIBS ingot_cuda_objects LABELS asan)
  ingot_test(cuda_arena SOURCES ${cuda_tests}/arena_test.cpp LIBS ingot_cuda_objects)
  target_compile_definitions(test_cuda_arena PRIVATE
    FAKE_CUDA="$<TARGET_FILE:fake_cuda>" CUDA_PLUGIN="$<TARGET_FILE:ingot_cuda>")
  add_dependencies(test_cuda_arena fake_cuda ingot_cuda)
  # The same programs on a GPU without virtual memory.
  add_test(NAME cuda_arena_plain COMMAND test_cuda_arena WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  set_tests_properties(cuda_arena_plain PROPERTIES TIMEOUT 300 ENVIRONMENT "${test_environment};FAKE_CUDA_VMM=0")
  foreach(name IN ITEMS lstm plugin machine)
    ingot_test(cuda_${name} SOURCES ${cuda_tests}/${name}_test.cpp ${cuda_tests}/library_cases.cpp ${cuda_tests}/attention_cases.cpp ${cuda_tests}/conv_cases.cpp LIBS ingot_test_emulator)
    target_compile_definitions(test_cuda_${name} PRIVATE
      FAKE_CUDA="$<TARGET_FILE:fake_cuda>" CUDA_PLUGIN="$<TARGET_FILE:ingot_cuda>")
    add_dependencies(test_cuda_${name} fake_cuda ingot_cuda)
  endforeach()
  ingot_test(gpu SOURCES ${cuda_tests}/gpu_test.cpp ${cuda_tests}/library_cases.cpp ${cuda_tests}/attention_cases.cpp ${cuda_tests}/conv_cases.cpp LIBS ingot_test_emulator LABELS gpu)
  if(INGOT_CUDNN_INCLUDE)
    ingot_test(cuda_refused_attention SOURCES ${cuda_tests}/refused_attention_test.cpp)
    target_compile_definitions(test_cuda_refused_attention PRIVATE
      FAKE_CUDA="$<TARGET_FILE:fake_cuda>" CUDA_PLUGIN="$<TARGET_FILE:ingot_cuda>")
    add_dependencies(test_cuda_refused_attention fake_cuda ingot_cuda)
    ingot_test(cuda_conv SOURCES ${cuda_tests}/conv_test.cpp ${hand_kernel_cases} LIBS ingot_test_emulator ingot_cuda_objects)
    ingot_test(cuda_attention SOURCES ${cuda_tests}/attention_test.cpp LIBS ingot_cuda_objects)
    add_library(stub_driver MODULE ${cuda_tests}/stub_driver.cpp)
    target_link_options(stub_driver PRIVATE -Wl,-soname,libcuda.so.1)
    target_compile_definitions(test_cuda_attention PRIVATE
      H200_JSON="${cuda_tests}/h200.json" STUB_DRIVER="$<TARGET_FILE:stub_driver>")
    add_dependencies(test_cuda_attention stub_driver)
    target_compile_definitions(test_cuda_conv PRIVATE
      H200_JSON="${cuda_tests}/h200.json" STUB_DRIVER="$<TARGET_FILE:stub_driver>")
    add_dependencies(test_cuda_conv stub_driver)
  endif()
endif()
