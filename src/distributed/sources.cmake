target_sources(ingot PRIVATE ${CMAKE_CURRENT_LIST_DIR}/data_parallel.cpp)
