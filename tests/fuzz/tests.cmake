# The kept corpus of the fuzz targets; `make fuzz` builds and runs the fuzzers themselves (fuzz.sh).
set(fuzz ${CMAKE_CURRENT_LIST_DIR})
set(fuzz_src ${PROJECT_SOURCE_DIR}/src)
ingot_test(fuzz_corpus SOURCES ${fuzz}/corpus_test.cpp ${fuzz}/targets.cpp ${fuzz}/buffer_targets.cpp ${fuzz}/cuda_targets.cpp
  ${fuzz}/file_targets.cpp ${fuzz_src}/backend/cuda/runtime/private_cache.cpp ${fuzz_src}/backend/cuda/runtime/tuning.cpp
  ${PROJECT_SOURCE_DIR}/python/src/foreign.cpp LABELS asan)
target_compile_definitions(test_fuzz_corpus PRIVATE INGOT_FUZZ_CORPUS="${fuzz}/corpus")
if(TARGET ingot_cli)
  set(parts files format models recipe step task trained)
  list(TRANSFORM parts REPLACE "(.+)" "${fuzz_src}/cli/\\1.cpp")
  target_sources(test_fuzz_corpus PRIVATE ${fuzz}/program_targets.cpp ${parts})
  target_include_directories(test_fuzz_corpus SYSTEM PRIVATE ${INGOT_JSON_INCLUDE})
  target_compile_definitions(test_fuzz_corpus PRIVATE INGOT_FUZZ_PROGRAM=1)
endif()
