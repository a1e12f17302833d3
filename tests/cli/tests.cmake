# The program, run as a user runs it.
if(TARGET ingot_cli)
  set(cli_tests ${CMAKE_CURRENT_LIST_DIR})
  foreach(test deploy doctor events libraries page plan profile safety sweep train)
    add_test(NAME cli_${test} COMMAND Python3::Interpreter ${cli_tests}/${test}.py $<TARGET_FILE:ingot_cli>)
    set_tests_properties(cli_${test} PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
  endforeach()
endif()
