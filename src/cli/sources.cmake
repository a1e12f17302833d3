# The program. It sees the public headers only, as any user's does.
find_path(INGOT_CLI11_INCLUDE CLI/CLI.hpp)
find_path(INGOT_JSON_INCLUDE nlohmann/json.hpp)
if(NOT INGOT_CLI11_INCLUDE OR NOT INGOT_JSON_INCLUDE)
  message(STATUS "CLI11 or nlohmann-json was not found: the program ingot is left out (tools/setup.sh installs them)")
  return()
endif()

set(cli ${CMAKE_CURRENT_SOURCE_DIR}/cli)
file(GLOB recipes CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/recipes/*.json)
set(recipes_cpp ${PROJECT_BINARY_DIR}/recipes.cpp)
add_custom_command(OUTPUT ${recipes_cpp} DEPENDS ${recipes} ${cli}/embed_recipes.cmake VERBATIM
  COMMAND ${CMAKE_COMMAND} -DOUT=${recipes_cpp} -DDIR=${PROJECT_SOURCE_DIR}/recipes -P ${cli}/embed_recipes.cmake)
add_executable(ingot_cli
  ${recipes_cpp}
  ${cli}/bench.cpp
  ${cli}/bottleneck.cpp
  ${cli}/chart.cpp
  ${cli}/doctor.cpp
  ${cli}/files.cpp
  ${cli}/inspect.cpp
  ${cli}/main.cpp
  ${cli}/measure.cpp
  ${cli}/models.cpp
  ${cli}/profile.cpp
  ${cli}/progress.cpp
  ${cli}/recipe.cpp
  ${cli}/report.cpp
  ${cli}/run_folder.cpp
  ${cli}/step.cpp
  ${cli}/plan_and_explain.cpp
  ${cli}/sweep.cpp
  ${cli}/sweep_page.cpp
  ${cli}/system.cpp
  ${cli}/task.cpp
  ${cli}/tensorboard.cpp
  ${cli}/format.cpp
  ${cli}/train.cpp
  ${cli}/trained.cpp
  ${cli}/usage.cpp
  ${cli}/inference.cpp)
set_target_properties(ingot_cli PROPERTIES OUTPUT_NAME ingot)
target_include_directories(ingot_cli SYSTEM PRIVATE ${INGOT_CLI11_INCLUDE} ${INGOT_JSON_INCLUDE})
target_compile_definitions(ingot_cli PRIVATE _GLIBCXX_ASSERTIONS=1)
target_link_libraries(ingot_cli PRIVATE ingot ingot_options ${CMAKE_DL_LIBS})
