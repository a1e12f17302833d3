# The program, run as a user runs it.
if(TARGET ingot_cli)
  set(cli_tests ${CMAKE_CURRENT_LIST_DIR})
  foreach(test charts deploy doctor events hostile kills libraries page plan profile safety sweep train)
    add_test(NAME cli_${test} COMMAND Python3::Interpreter ${cli_tests}/${test}.py $<TARGET_FILE:ingot_cli>)
    set_tests_properties(cli_${test} PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
  endforeach()
  # The program and its modules under the sanitizers too.
  foreach(test doctor events kills plan profile safety sweep train)
    set_property(TEST cli_${test} APPEND PROPERTY LABELS asan)
  endforeach()
  foreach(test events sweep train)
    set_property(TEST cli_${test} APPEND PROPERTY LABELS tsan)
  endforeach()
  foreach(test plan sweep train)  # minutes under a sanitizer
    set_property(TEST cli_${test} APPEND PROPERTY LABELS long)
  endforeach()
  if(INGOT_SANITIZE)
    set_tests_properties(cli_doctor cli_events cli_kills cli_plan cli_profile cli_safety cli_sweep cli_train PROPERTIES
      TIMEOUT 1200 ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0;${test_environment}")  # see tests/faults/tests.cmake
    foreach(subset tests_asan tests_tsan)
      add_dependencies(${subset} ingot_cli)
    endforeach()
  endif()
  add_test(NAME cli_hostile_all COMMAND Python3::Interpreter ${cli_tests}/hostile.py $<TARGET_FILE:ingot_cli> all)
  set_tests_properties(cli_hostile_all PROPERTIES TIMEOUT 1200 LABELS slow)
  add_test(NAME cli_kills_many COMMAND Python3::Interpreter ${cli_tests}/kills.py $<TARGET_FILE:ingot_cli> 300)
  set_tests_properties(cli_kills_many PROPERTIES TIMEOUT 1800 LABELS slow)
endif()
