# No CUDA header or library is needed to build the CUDA text and the caller of its compiler.
target_sources(ingot PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/flops.cpp
  ${CMAKE_CURRENT_LIST_DIR}/kernel_spec.cpp
  ${CMAKE_CURRENT_LIST_DIR}/offer.cpp
  ${CMAKE_CURRENT_LIST_DIR}/single_index_update.cpp)
