# Properties of tests that start programs: one that takes too long is asked to end, a Python test as by Ctrl-C, and takes along what it
# has started (tests/launch/training/running.py, tests/comm/run_in_namespaces.sh, mpirun with its ranks).
set(SIDESTREAM_ASKED_BY_SIGINT TIMEOUT_SIGNAL_NAME SIGINT TIMEOUT_SIGNAL_GRACE_PERIOD 20)
set(SIDESTREAM_ASKED_BY_SIGTERM TIMEOUT_SIGNAL_NAME SIGTERM TIMEOUT_SIGNAL_GRACE_PERIOD 20)

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
