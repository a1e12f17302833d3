# Compiler settings shared by the library, the tests, the examples and the benchmarks: the target ingot_options.

find_program(INGOT_CCACHE ccache)
if(INGOT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${INGOT_CCACHE})
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Libraries of the build tree are found relative to the program ($ORIGIN). An absolute path shorter than INSTALL_RPATH would be
# padded with ":", and an empty element means the current folder: code from there would be executed.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g -DINGOT_DEBUG_CHECKS=1")
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
  set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
endif()

add_library(ingot_options INTERFACE)
target_compile_options(ingot_options INTERFACE -Wall -Wextra -Wshadow)
if(INGOT_WERROR)
  target_compile_options(ingot_options INTERFACE -Werror)
endif()

# Inside the library __FILE__ reads ingot/src/... wherever the checkout is: error messages distinguish Ingot's own
# lines from the user's by that prefix. The second mapping is for ccache, which may make paths relative to the build folder.
file(RELATIVE_PATH source_from_build ${CMAKE_BINARY_DIR} ${PROJECT_SOURCE_DIR})
string(REGEX REPLACE "/+$" "" source_from_build "${source_from_build}")
target_compile_options(ingot_options INTERFACE
  -ffile-prefix-map=${source_from_build}/=ingot/
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=ingot/)

# Ingot reads untrusted files: an overflow ends the program instead of being exploited. (docs/reliability.md has the
# cost. Sanitizers and _FORTIFY_SOURCE get in each other's way.)
if(NOT INGOT_SANITIZE AND CMAKE_SYSTEM_NAME STREQUAL "Linux")
  set(fortify 2)
  if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
     OR (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12))
    set(fortify 3)
  endif()
  target_compile_options(ingot_options INTERFACE
    $<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-fstack-protector-strong;-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=${fortify}>)
  target_link_options(ingot_options INTERFACE -Wl,-z,relro,-z,now)
endif()

if(INGOT_SANITIZE)
  set(sanitize -fsanitize=${INGOT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  target_compile_options(ingot_options INTERFACE ${sanitize})
  target_link_options(ingot_options INTERFACE ${sanitize})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The sanitizers' extra branches make g++ 12 see uninitialised and dangling values where there are none.
    target_compile_options(ingot_options INTERFACE
      -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-tsan)
  endif()
endif()
