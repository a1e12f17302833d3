target_sources(ingot PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/checks.cpp
  ${CMAKE_CURRENT_LIST_DIR}/infer.cpp
  ${CMAKE_CURRENT_LIST_DIR}/layer_log.cpp
  ${CMAKE_CURRENT_LIST_DIR}/infer_conv.cpp
  ${CMAKE_CURRENT_LIST_DIR}/node.cpp
  ${CMAKE_CURRENT_LIST_DIR}/print.cpp
  ${CMAKE_CURRENT_LIST_DIR}/program.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sync.cpp)
