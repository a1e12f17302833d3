# The Python package, where it was built (INGOT_PYTHON). Each file is a unittest program; what it needs and does not find is skipped.
if(TARGET _ingot AND NOT INGOT_SANITIZE)
  file(GLOB python_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/test_*.py)
  foreach(file IN LISTS python_tests)
    get_filename_component(name ${file} NAME_WE)
    add_test(NAME python_${name} COMMAND ${INGOT_PYTHON_EXECUTABLE} ${file} WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    set_tests_properties(python_${name} PROPERTIES TIMEOUT 900
      ENVIRONMENT "PYTHONPATH=${PROJECT_BINARY_DIR}/python:${CMAKE_CURRENT_LIST_DIR}")
  endforeach()
  # A training killed at random moments: test_checkpoint.py has 5 of them.
  add_test(NAME python_kills_200 COMMAND ${INGOT_PYTHON_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/kills.py 200)
  set_tests_properties(python_kills_200 PROPERTIES TIMEOUT 1200 LABELS slow
    ENVIRONMENT "PYTHONPATH=${PROJECT_BINARY_DIR}/python:${CMAKE_CURRENT_LIST_DIR}")
  if(TARGET fake_cuda)  # the package on the fake CUDA machine
    set(fake $<TARGET_FILE:fake_cuda>)
    set(machine "INGOT_CUDA_PLUGIN=$<TARGET_FILE:ingot_cuda>;INGOT_CUDA_DRIVER=${fake};INGOT_NVRTC=${fake};INGOT_CUBLASLT=${fake}")
    add_test(NAME python_cuda_emulated COMMAND ${INGOT_PYTHON_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/test_cuda.py
      WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    set_tests_properties(python_cuda_emulated PROPERTIES TIMEOUT 900 FAIL_REGULAR_EXPRESSION "skipped=9"
      ENVIRONMENT "PYTHONPATH=${PROJECT_BINARY_DIR}/python:${CMAKE_CURRENT_LIST_DIR};INGOT_CACHE_DIR=${PROJECT_BINARY_DIR}/tests/emulator_cache/python;${machine}")
  endif()
  # PyTorch's own op database, every sample: exits with 77 where PyTorch is not.
  add_test(NAME python_op_database COMMAND ${INGOT_PYTHON_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/op_database.py --quiet)
  set_tests_properties(python_op_database PROPERTIES LABELS slow TIMEOUT 900 SKIP_RETURN_CODE 77
    ENVIRONMENT "PYTHONPATH=${PROJECT_BINARY_DIR}/python")
  # The wheel, built and installed in an environment of its own.
  add_test(NAME python_wheel COMMAND ${CMAKE_CURRENT_LIST_DIR}/wheel_test.sh ${INGOT_PYTHON_EXECUTABLE})
  set_tests_properties(python_wheel PROPERTIES LABELS slow TIMEOUT 3600 SKIP_RETURN_CODE 77)
endif()

# The same extension with AddressSanitizer in it and in the core (make sanitize).
if(TARGET _ingot AND INGOT_SANITIZE MATCHES "address")
  add_test(NAME python_test_leaks COMMAND ${INGOT_PYTHON_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/test_leaks.py
    WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  set_tests_properties(python_test_leaks PROPERTIES LABELS asan TIMEOUT 900
    ENVIRONMENT "PYTHONPATH=${PROJECT_BINARY_DIR}/python:${CMAKE_CURRENT_LIST_DIR};INGOT_SANITIZED=1")
  add_dependencies(tests_asan _ingot)
endif()
