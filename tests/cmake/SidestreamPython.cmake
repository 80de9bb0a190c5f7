# sidestream_have_python(<variable> <module>...): ON when the Python environment has all of these modules. Tests against
# a reader that is not installed (a machine without a network has few) are not registered.
function(sidestream_have_python variable)
  execute_process(COMMAND ${SIDESTREAM_ENV}/bin/python -c
                          "import importlib.util, sys; sys.exit(any(importlib.util.find_spec(m) is None for m in sys.argv[1:]))"
                          ${ARGN} RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
  if(missing EQUAL 0)
    set(${variable} ON PARENT_SCOPE)
  else()
    set(${variable} OFF PARENT_SCOPE)
    message(STATUS "Tests that need Python's ${ARGN} are left out")
  endif()
endfunction()
