target_sources(ingot PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/attributes.cpp
  ${CMAKE_CURRENT_LIST_DIR}/checks.cpp
  ${CMAKE_CURRENT_LIST_DIR}/composite.cpp
  ${CMAKE_CURRENT_LIST_DIR}/engine.cpp
  ${CMAKE_CURRENT_LIST_DIR}/generator.cpp
  ${CMAKE_CURRENT_LIST_DIR}/handle.cpp
  ${CMAKE_CURRENT_LIST_DIR}/shape_rules.cpp
  ${CMAKE_CURRENT_LIST_DIR}/layer_log.cpp
  ${CMAKE_CURRENT_LIST_DIR}/shape_rules_conv.cpp
  ${CMAKE_CURRENT_LIST_DIR}/node.cpp
  ${CMAKE_CURRENT_LIST_DIR}/print.cpp
  ${CMAKE_CURRENT_LIST_DIR}/recorded_function.cpp
  ${CMAKE_CURRENT_LIST_DIR}/storage.cpp
  ${CMAKE_CURRENT_LIST_DIR}/strides.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sync.cpp
  ${CMAKE_CURRENT_LIST_DIR}/thread_state.cpp)
