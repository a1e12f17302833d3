# What `cmake --install` puts where: the library, the public headers, and the package for find_package(ingot).
include(CMakePackageConfigHelpers)

install(TARGETS ingot EXPORT ingotTargets
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ingot DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.def")

if(TARGET ingot_cli)
  # Serves both trees: the build tree has its libraries in ../lib too.
  set(cli_rpath "$ORIGIN/../lib")
  if(NOT CMAKE_INSTALL_LIBDIR STREQUAL "lib")
    list(APPEND cli_rpath "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  endif()
  set_target_properties(ingot_cli PROPERTIES INSTALL_RPATH "${cli_rpath}" BUILD_WITH_INSTALL_RPATH ON)
  install(TARGETS ingot_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ingot)
install(EXPORT ingotTargets NAMESPACE ingot:: DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/ingotConfig.cmake.in ${PROJECT_BINARY_DIR}/ingotConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ingotConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ingotConfig.cmake ${PROJECT_BINARY_DIR}/ingotConfigVersion.cmake
  DESTINATION ${package_dir})
