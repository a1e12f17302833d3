target_sources(ingot PRIVATE ${CMAKE_CURRENT_LIST_DIR}/wiring.cpp)
