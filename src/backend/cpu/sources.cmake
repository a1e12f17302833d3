target_sources(ingot PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/attention/attention.cpp
  ${CMAKE_CURRENT_LIST_DIR}/attention/attention_newest.cpp
  ${CMAKE_CURRENT_LIST_DIR}/attention/attention_simd.cpp
  ${CMAKE_CURRENT_LIST_DIR}/jit/column_code.cpp
  ${CMAKE_CURRENT_LIST_DIR}/conv/conv.cpp
  ${CMAKE_CURRENT_LIST_DIR}/conv/conv_few_channels.cpp
  ${CMAKE_CURRENT_LIST_DIR}/jit/code_memory.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cpu_backend.cpp
  ${CMAKE_CURRENT_LIST_DIR}/conv/depthwise.cpp
  ${CMAKE_CURRENT_LIST_DIR}/conv/depthwise_simd.cpp
  ${CMAKE_CURRENT_LIST_DIR}/support/dispatch.cpp
  ${CMAKE_CURRENT_LIST_DIR}/conv/dnnl_conv.cpp
  ${CMAKE_CURRENT_LIST_DIR}/conv/dnnl_weights.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel/emit.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel/emit_store.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel/exec.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel/exec_memory.cpp
  ${CMAKE_CURRENT_LIST_DIR}/conv/fold.cpp
  ${CMAKE_CURRENT_LIST_DIR}/gemm/gemm.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel/kernel.cpp
  ${CMAKE_CURRENT_LIST_DIR}/support/lapack.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel/layout.cpp
  ${CMAKE_CURRENT_LIST_DIR}/support/linalg.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel/loops_float.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel/loops_int.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel/loops_simd.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rnn/gru.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rnn/lstm.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rnn/lstm_cells.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rnn/recurrence.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rnn/rnn.cpp
  ${CMAKE_CURRENT_LIST_DIR}/gemm/matmul.cpp
  ${CMAKE_CURRENT_LIST_DIR}/gemm/matmul_few.cpp
  ${CMAKE_CURRENT_LIST_DIR}/gemm/matvec.cpp
  ${CMAKE_CURRENT_LIST_DIR}/support/memory.cpp
  ${CMAKE_CURRENT_LIST_DIR}/support/move.cpp
  ${CMAKE_CURRENT_LIST_DIR}/offers.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel/pieces.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel/single_index_update.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel/random.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel/reduce.cpp
  ${CMAKE_CURRENT_LIST_DIR}/jit/row_code.cpp
  ${CMAKE_CURRENT_LIST_DIR}/jit/row_emitter.cpp
  ${CMAKE_CURRENT_LIST_DIR}/jit/row_program.cpp
  ${CMAKE_CURRENT_LIST_DIR}/index/scan.cpp
  ${CMAKE_CURRENT_LIST_DIR}/index/scatter.cpp
  ${CMAKE_CURRENT_LIST_DIR}/index/sort.cpp
  ${CMAKE_CURRENT_LIST_DIR}/support/threads.cpp
  ${CMAKE_CURRENT_LIST_DIR}/jit/vector_emitter.cpp
  ${CMAKE_CURRENT_LIST_DIR}/jit/vector_math.cpp
  ${CMAKE_CURRENT_LIST_DIR}/conv/max_pool.cpp
  ${CMAKE_CURRENT_LIST_DIR}/conv/pool.cpp
  ${CMAKE_CURRENT_LIST_DIR}/conv/pool_simd.cpp
  ${CMAKE_CURRENT_LIST_DIR}/conv/winograd.cpp
  ${CMAKE_CURRENT_LIST_DIR}/conv/winograd_simd.cpp
  ${CMAKE_CURRENT_LIST_DIR}/jit/x64.cpp)

# Loops the compiler vectorises. Integers wrap; sums and products are never contracted, so that fusing two ops into one
# loop does not change a bit. Where a type's loop has no vector form, clang says so, and that is well.
set_source_files_properties(
  ${CMAKE_CURRENT_LIST_DIR}/conv/depthwise_simd.cpp ${CMAKE_CURRENT_LIST_DIR}/gemm/gemm.cpp ${CMAKE_CURRENT_LIST_DIR}/kernel/loops_float.cpp ${CMAKE_CURRENT_LIST_DIR}/kernel/loops_int.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel/loops_simd.cpp ${CMAKE_CURRENT_LIST_DIR}/support/move.cpp ${CMAKE_CURRENT_LIST_DIR}/kernel/random.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel/reduce.cpp ${CMAKE_CURRENT_LIST_DIR}/index/scan.cpp ${CMAKE_CURRENT_LIST_DIR}/index/scatter.cpp
  ${CMAKE_CURRENT_LIST_DIR}/index/sort.cpp ${CMAKE_CURRENT_LIST_DIR}/gemm/matmul.cpp
  ${CMAKE_CURRENT_LIST_DIR}/gemm/matvec.cpp ${CMAKE_CURRENT_LIST_DIR}/conv/pool_simd.cpp
  ${CMAKE_CURRENT_LIST_DIR}/conv/winograd_simd.cpp
  TARGET_DIRECTORY ingot
  PROPERTIES COMPILE_OPTIONS "-O3;-fwrapv;-ffp-contract=off;-fno-math-errno;-fno-trapping-math;$<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>")
