target_sources(ingot PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/adam.cpp
  ${CMAKE_CURRENT_LIST_DIR}/clip.cpp
  ${CMAKE_CURRENT_LIST_DIR}/ema.cpp
  ${CMAKE_CURRENT_LIST_DIR}/formula.cpp
  ${CMAKE_CURRENT_LIST_DIR}/grad_scaler.cpp
  ${CMAKE_CURRENT_LIST_DIR}/guard.cpp
  ${CMAKE_CURRENT_LIST_DIR}/muon.cpp
  ${CMAKE_CURRENT_LIST_DIR}/optimizer.cpp
  ${CMAKE_CURRENT_LIST_DIR}/replay.cpp
  ${CMAKE_CURRENT_LIST_DIR}/schedule.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sgd.cpp
  ${CMAKE_CURRENT_LIST_DIR}/step_function.cpp
  ${CMAKE_CURRENT_LIST_DIR}/slots.cpp
  ${CMAKE_CURRENT_LIST_DIR}/state.cpp)
