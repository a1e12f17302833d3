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
  # Programs that make new plans for ever, minutes each.
  add_test(NAME python_memory COMMAND ${INGOT_PYTHON_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/memory.py)
  set_tests_properties(python_memory PROPERTIES LABELS slow TIMEOUT 3600
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
  # The wheel, built and installed in a separate environment.
  add_test(NAME python_wheel COMMAND ${CMAKE_CURRENT_LIST_DIR}/wheel_test.sh ${INGOT_PYTHON_EXECUTABLE})
  set_tests_properties(python_wheel PROPERTIES LABELS slow TIMEOUT 3600 SKIP_RETURN_CODE 77)
endif()

# The same extension with a sanitizer in it and in the core (make sanitize): Python itself is not instrumented, so the sanitizer's library is
# loaded before it.
if(TARGET _ingot AND INGOT_SANITIZE)
  if(INGOT_SANITIZE MATCHES "address")
    set(subset asan)
    set(sanitized checkpoint data files interop leaks modules optim tensor threads training)
  else()
    set(subset tsan)
    set(sanitized data threads)
  endif()
  foreach(library lib${subset}.so libstdc++.so)  # the second, so that the first finds the functions it intercepts
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${library} OUTPUT_VARIABLE path OUTPUT_STRIP_TRAILING_WHITESPACE)
    list(APPEND preload ${path})
  endforeach()
  list(JOIN preload " " preload)
  foreach(name IN LISTS sanitized)
    add_test(NAME python_test_${name} COMMAND ${INGOT_PYTHON_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/test_${name}.py
      WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    set(environment "PYTHONPATH=${PROJECT_BINARY_DIR}/python:${CMAKE_CURRENT_LIST_DIR};INGOT_SANITIZED=1;${test_environment}")
    if(NOT name STREQUAL "leaks")  # which loads it itself
      list(APPEND environment "LD_PRELOAD=${preload}" "ASAN_OPTIONS=detect_leaks=0")
    endif()
    set_tests_properties(python_test_${name} PROPERTIES LABELS ${subset} TIMEOUT 1800 ENVIRONMENT "${environment}")
    if(name STREQUAL "leaks" OR name STREQUAL "threads")
      set_property(TEST python_test_${name} APPEND PROPERTY LABELS long)
    endif()
  endforeach()
  add_dependencies(tests_${subset} _ingot)
endif()
