# No CUDA header or library is needed to build the CUDA text and the caller of its compiler.
target_sources(ingot PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/cuda_body.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cuda_emit.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cuda_layout.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cuda_numbers.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cuda_prelude.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cuda_reduce.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cuda_rounds.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cuda_schedule.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cuda_text.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cuda_tile.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cuda_values.cpp
  ${CMAKE_CURRENT_LIST_DIR}/flops.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel_spec.cpp
  ${CMAKE_CURRENT_LIST_DIR}/nvrtc.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pin.cpp)
