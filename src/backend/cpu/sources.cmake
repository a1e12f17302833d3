target_sources(ingot PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/attention.cpp
  ${CMAKE_CURRENT_LIST_DIR}/attention_newest.cpp
  ${CMAKE_CURRENT_LIST_DIR}/attention_rows.cpp
  ${CMAKE_CURRENT_LIST_DIR}/column_code.cpp
  ${CMAKE_CURRENT_LIST_DIR}/conv.cpp
  ${CMAKE_CURRENT_LIST_DIR}/conv_pictures.cpp
  ${CMAKE_CURRENT_LIST_DIR}/code_memory.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cpu_backend.cpp
  ${CMAKE_CURRENT_LIST_DIR}/depthwise.cpp
  ${CMAKE_CURRENT_LIST_DIR}/depthwise_rows.cpp
  ${CMAKE_CURRENT_LIST_DIR}/dispatch.cpp
  ${CMAKE_CURRENT_LIST_DIR}/dnnl_conv.cpp
  ${CMAKE_CURRENT_LIST_DIR}/dnnl_weights.cpp
  ${CMAKE_CURRENT_LIST_DIR}/emit.cpp
  ${CMAKE_CURRENT_LIST_DIR}/emit_store.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exec.cpp
  ${CMAKE_CURRENT_LIST_DIR}/exec_memory.cpp
  ${CMAKE_CURRENT_LIST_DIR}/fold.cpp
  ${CMAKE_CURRENT_LIST_DIR}/gemm.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel.cpp
  ${CMAKE_CURRENT_LIST_DIR}/lapack.cpp
  ${CMAKE_CURRENT_LIST_DIR}/layout.cpp
  ${CMAKE_CURRENT_LIST_DIR}/linalg.cpp
  ${CMAKE_CURRENT_LIST_DIR}/loops_float.cpp
  ${CMAKE_CURRENT_LIST_DIR}/loops_int.cpp
  ${CMAKE_CURRENT_LIST_DIR}/loops_simd.cpp
  ${CMAKE_CURRENT_LIST_DIR}/lstm.cpp
  ${CMAKE_CURRENT_LIST_DIR}/lstm_rows.cpp
  ${CMAKE_CURRENT_LIST_DIR}/matmul.cpp
  ${CMAKE_CURRENT_LIST_DIR}/matmul_few.cpp
  ${CMAKE_CURRENT_LIST_DIR}/matvec.cpp
  ${CMAKE_CURRENT_LIST_DIR}/memory.cpp
  ${CMAKE_CURRENT_LIST_DIR}/move.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pieces.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pinned.cpp
  ${CMAKE_CURRENT_LIST_DIR}/random.cpp
  ${CMAKE_CURRENT_LIST_DIR}/reduce.cpp
  ${CMAKE_CURRENT_LIST_DIR}/row_code.cpp
  ${CMAKE_CURRENT_LIST_DIR}/row_emitter.cpp
  ${CMAKE_CURRENT_LIST_DIR}/row_program.cpp
  ${CMAKE_CURRENT_LIST_DIR}/scan.cpp
  ${CMAKE_CURRENT_LIST_DIR}/scatter.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sort.cpp
  ${CMAKE_CURRENT_LIST_DIR}/threads.cpp
  ${CMAKE_CURRENT_LIST_DIR}/vector_emitter.cpp
  ${CMAKE_CURRENT_LIST_DIR}/vector_math.cpp
  ${CMAKE_CURRENT_LIST_DIR}/window_max.cpp
  ${CMAKE_CURRENT_LIST_DIR}/window_reduce.cpp
  ${CMAKE_CURRENT_LIST_DIR}/window_rows.cpp
  ${CMAKE_CURRENT_LIST_DIR}/winograd.cpp
  ${CMAKE_CURRENT_LIST_DIR}/winograd_rows.cpp
  ${CMAKE_CURRENT_LIST_DIR}/x64.cpp)

# Loops the compiler vectorises. Integers wrap; sums and products are never contracted, so that fusing two ops into one
# loop does not change a bit. Where a type's loop has no vector form, clang says so, and that is well.
set_source_files_properties(
  ${CMAKE_CURRENT_LIST_DIR}/depthwise_rows.cpp ${CMAKE_CURRENT_LIST_DIR}/gemm.cpp ${CMAKE_CURRENT_LIST_DIR}/loops_float.cpp ${CMAKE_CURRENT_LIST_DIR}/loops_int.cpp
  ${CMAKE_CURRENT_LIST_DIR}/loops_simd.cpp ${CMAKE_CURRENT_LIST_DIR}/move.cpp ${CMAKE_CURRENT_LIST_DIR}/random.cpp
  ${CMAKE_CURRENT_LIST_DIR}/reduce.cpp ${CMAKE_CURRENT_LIST_DIR}/scan.cpp ${CMAKE_CURRENT_LIST_DIR}/scatter.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sort.cpp ${CMAKE_CURRENT_LIST_DIR}/matmul.cpp
  ${CMAKE_CURRENT_LIST_DIR}/matvec.cpp ${CMAKE_CURRENT_LIST_DIR}/window_rows.cpp
  ${CMAKE_CURRENT_LIST_DIR}/winograd_rows.cpp
  TARGET_DIRECTORY ingot
  PROPERTIES COMPILE_OPTIONS "-O3;-fwrapv;-ffp-contract=off;-fno-math-errno;-fno-trapping-math;$<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>")
