# CUDA C text from KernelSpecs, and the caller of its compiler. No CUDA header or library is needed to build it: the tests compile and
# emulate the text on machines without one.
set(emit ${CMAKE_CURRENT_LIST_DIR})
add_library(ingot_cuda_emit STATIC EXCLUDE_FROM_ALL
  ${emit}/body.cpp ${emit}/emit.cpp ${emit}/layout.cpp ${emit}/numbers.cpp ${emit}/nvrtc.cpp ${emit}/prelude.cpp ${emit}/reduce.cpp
  ${emit}/rounds.cpp ${emit}/schedule.cpp ${emit}/text.cpp ${emit}/tile.cpp ${emit}/values.cpp)
target_include_directories(ingot_cuda_emit PUBLIC ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(ingot_cuda_emit PUBLIC ingot ingot_options ${CMAKE_DL_LIBS})
