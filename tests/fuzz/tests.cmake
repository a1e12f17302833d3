# The kept corpus of the fuzz targets; `make fuzz` builds and runs the fuzzers themselves (fuzz.sh).
set(fuzz ${CMAKE_CURRENT_LIST_DIR})
ingot_test(fuzz_corpus SOURCES ${fuzz}/corpus_test.cpp ${fuzz}/targets.cpp LABELS asan)
target_compile_definitions(test_fuzz_corpus PRIVATE INGOT_FUZZ_CORPUS="${fuzz}/corpus")
