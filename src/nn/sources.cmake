target_sources(ingot PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/containers.cpp
  ${CMAKE_CURRENT_LIST_DIR}/conv.cpp
  ${CMAKE_CURRENT_LIST_DIR}/image.cpp
  ${CMAKE_CURRENT_LIST_DIR}/models/generate.cpp
  ${CMAKE_CURRENT_LIST_DIR}/models/gpt.cpp
  ${CMAKE_CURRENT_LIST_DIR}/models/vision.cpp
  ${CMAKE_CURRENT_LIST_DIR}/init.cpp
  ${CMAKE_CURRENT_LIST_DIR}/init_matrix.cpp
  ${CMAKE_CURRENT_LIST_DIR}/layers.cpp
  ${CMAKE_CURRENT_LIST_DIR}/loss.cpp
  ${CMAKE_CURRENT_LIST_DIR}/module.cpp
  ${CMAKE_CURRENT_LIST_DIR}/module_clone.cpp
  ${CMAKE_CURRENT_LIST_DIR}/module_print.cpp
  ${CMAKE_CURRENT_LIST_DIR}/module_state.cpp
  ${CMAKE_CURRENT_LIST_DIR}/rnn.cpp
  ${CMAKE_CURRENT_LIST_DIR}/transformer.cpp)
