target_sources(ingot PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/atomic_file.cpp
  ${CMAKE_CURRENT_LIST_DIR}/budget.cpp
  ${CMAKE_CURRENT_LIST_DIR}/codecs.cpp
  ${CMAKE_CURRENT_LIST_DIR}/file.cpp
  ${CMAKE_CURRENT_LIST_DIR}/json.cpp
  ${CMAKE_CURRENT_LIST_DIR}/lock.cpp
  ${CMAKE_CURRENT_LIST_DIR}/npy.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pickle.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pt.cpp
  ${CMAKE_CURRENT_LIST_DIR}/safetensors.cpp
  ${CMAKE_CURRENT_LIST_DIR}/signals.cpp
  ${CMAKE_CURRENT_LIST_DIR}/text.cpp
  ${CMAKE_CURRENT_LIST_DIR}/weights.cpp
  ${CMAKE_CURRENT_LIST_DIR}/zip.cpp)

# The codecs: a separate library, loaded at first use, where Ingot is a shared library; part of it where it is static.
set(codecs_sources
  ${CMAKE_CURRENT_LIST_DIR}/codecs/jpeg.cpp
  ${CMAKE_CURRENT_LIST_DIR}/codecs/png.cpp
  ${CMAKE_CURRENT_LIST_DIR}/codecs/table.cpp
  ${CMAKE_CURRENT_LIST_DIR}/codecs/zlib.cpp)
if(ZLIB_FOUND AND PNG_FOUND AND JPEG_FOUND)
  if(BUILD_SHARED_LIBS)
    add_library(ingot_codecs MODULE ${codecs_sources})
    target_include_directories(ingot_codecs PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(ingot_codecs PRIVATE ingot_options ZLIB::ZLIB PNG::PNG JPEG::JPEG)
    install(TARGETS ingot_codecs LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    add_dependencies(ingot ingot_codecs)
  else()
    target_sources(ingot PRIVATE ${codecs_sources})
    target_compile_definitions(ingot PRIVATE INGOT_CODECS_INSIDE=1)
    target_link_libraries(ingot PRIVATE ZLIB::ZLIB PNG::PNG JPEG::JPEG)
  endif()
else()
  message(STATUS "libingot_codecs: not built (zlib, libpng and libjpeg-turbo are needed; tools/setup.sh installs them): "
                 "no gzip, compressed npz, PNG or JPEG")
endif()
