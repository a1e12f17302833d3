target_sources(ingot PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/color.cpp
  ${CMAKE_CURRENT_LIST_DIR}/dataset.cpp
  ${CMAKE_CURRENT_LIST_DIR}/fingerprint.cpp
  ${CMAKE_CURRENT_LIST_DIR}/folder.cpp
  ${CMAKE_CURRENT_LIST_DIR}/loader.cpp
  ${CMAKE_CURRENT_LIST_DIR}/named.cpp
  ${CMAKE_CURRENT_LIST_DIR}/readers.cpp
  ${CMAKE_CURRENT_LIST_DIR}/resize.cpp
  ${CMAKE_CURRENT_LIST_DIR}/tokenizers.cpp
  ${CMAKE_CURRENT_LIST_DIR}/transforms.cpp)
# Loops over bytes that are worth unrolling.
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/resize.cpp PROPERTIES COMPILE_OPTIONS -O3)
