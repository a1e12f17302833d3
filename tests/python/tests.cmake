# The Python package, where it was built (INGOT_PYTHON). Each file is a unittest program; what it needs and does not find is skipped.
if(TARGET _ingot AND NOT INGOT_SANITIZE)
  file(GLOB python_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/test_*.py)
  foreach(file IN LISTS python_tests)
    get_filename_component(name ${file} NAME_WE)
    add_test(NAME python_${name} COMMAND ${INGOT_PYTHON_EXECUTABLE} ${file} WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    set_tests_properties(python_${name} PROPERTIES TIMEOUT 900
      ENVIRONMENT "PYTHONPATH=${PROJECT_BINARY_DIR}/python:${CMAKE_CURRENT_LIST_DIR}")
  endforeach()
  # The wheel, built and installed in an environment of its own.
  add_test(NAME python_wheel COMMAND ${CMAKE_CURRENT_LIST_DIR}/wheel_test.sh ${INGOT_PYTHON_EXECUTABLE})
  set_tests_properties(python_wheel PROPERTIES LABELS slow TIMEOUT 3600 SKIP_RETURN_CODE 77)
endif()
