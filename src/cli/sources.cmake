# The program. It sees the public headers only, as any user's does.
find_path(INGOT_CLI11_INCLUDE CLI/CLI.hpp)
find_path(INGOT_JSON_INCLUDE nlohmann/json.hpp)
if(NOT INGOT_CLI11_INCLUDE OR NOT INGOT_JSON_INCLUDE)
  message(STATUS "CLI11 or nlohmann-json was not found: the program ingot is left out (tools/setup.sh installs them)")
  return()
endif()

set(cli ${CMAKE_CURRENT_SOURCE_DIR}/cli)
add_executable(ingot_cli
  ${cli}/doctor.cpp
  ${cli}/inspect.cpp
  ${cli}/main.cpp
  ${cli}/measure.cpp
  ${cli}/system.cpp
  ${cli}/text.cpp)
set_target_properties(ingot_cli PROPERTIES OUTPUT_NAME ingot)
target_include_directories(ingot_cli SYSTEM PRIVATE ${INGOT_CLI11_INCLUDE} ${INGOT_JSON_INCLUDE})
target_link_libraries(ingot_cli PRIVATE ingot ingot_options ${CMAKE_DL_LIBS})
