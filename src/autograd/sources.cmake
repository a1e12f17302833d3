target_sources(ingot PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/backward.cpp
  ${CMAKE_CURRENT_LIST_DIR}/checkpoint.cpp
  ${CMAKE_CURRENT_LIST_DIR}/assemble.cpp
  ${CMAKE_CURRENT_LIST_DIR}/engine.cpp
  ${CMAKE_CURRENT_LIST_DIR}/gradcheck.cpp
  ${CMAKE_CURRENT_LIST_DIR}/hooks.cpp
  ${CMAKE_CURRENT_LIST_DIR}/leaves.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rules_composite.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rules_conv.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rules_elementwise.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rules_index.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rules_linalg.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rules_movement.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rules_reduce.cpp)
