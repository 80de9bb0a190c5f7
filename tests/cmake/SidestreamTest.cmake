# sidestream_add_test(<name> SOURCES ... LIBRARIES ... [TORCH] [ALONE] [RANKS 1 2 3] [LABELS ...] [TIMEOUT seconds])
# One GoogleTest program. RANKS runs it under mpirun, once per number of ranks, as <name>.<n>ranks; its main gathers
# the failures of all ranks. Without RANKS the tests are discovered one by one and run in this process. The label
# `threads` is for what the thread sanitizer can judge: threads of one process, no MPI that runs, no LibTorch. `memory` is for
# what tests/run has the address sanitizer judge: memory shared between ranks, and files of others. TORCH adds the label `torch`;
# ALONE is for sources that name different things alike, see sidestream_compile_together.
find_program(SIDESTREAM_MPIEXEC mpirun REQUIRED)

add_library(sidestream_mpi_test_main STATIC EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/mpi_test_main.cpp)
target_link_libraries(sidestream_mpi_test_main PUBLIC sidestream::options sidestream::comm MPI::MPI_CXX GTest::gtest)

# Root in a container is not refused, ranks do not start a pool of threads each, and what Open MPI leaks stays its own.
set(SIDESTREAM_MPI_TEST_ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1" "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1" "OMP_NUM_THREADS=1")
if(SIDESTREAM_SANITIZE)
  list(APPEND SIDESTREAM_MPI_TEST_ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0")
endif()

add_custom_target(tests_of_threads)
add_custom_target(tests_of_memory)
add_custom_target(tests_with_torch)

# sidestream_add_loaded_library(<name> <source>): a library that a test has another process load. As plain as it stands there:
# what sanitizers add would have to be in that process, too.
function(sidestream_add_loaded_library name source)
  add_library(${name} MODULE ${source})
  set_target_properties(${name} PROPERTIES COMPILE_OPTIONS "" LINK_OPTIONS "")
endfunction()

# sidestream_compile_test(<target>): a fifth less time to compile; what is tested is compiled as ever.
function(sidestream_compile_test target)
  target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)
endfunction()

function(sidestream_add_test name)
  cmake_parse_arguments(arg "TORCH;ALONE" "TIMEOUT" "SOURCES;LIBRARIES;RANKS;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE sidestream::options ${arg_LIBRARIES} GTest::gtest GTest::gmock)
  sidestream_compile_test(${name})
  if(arg_TORCH)
    sidestream_use_torch(${name} PRIVATE)
    list(APPEND arg_LABELS torch)
    add_dependencies(tests_with_torch ${name})
  endif()
  if(arg_ALONE)
    set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  elseif(NOT arg_TORCH)
    sidestream_compile_together(${name})
  endif()
  if("threads" IN_LIST arg_LABELS)
    add_dependencies(tests_of_threads ${name})
  endif()
  if("memory" IN_LIST arg_LABELS)
    add_dependencies(tests_of_memory ${name})
  endif()
  if(NOT arg_RANKS)
    target_link_libraries(${name} PRIVATE GTest::gtest_main)
    include(GoogleTest)
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120 TEST_PREFIX ${name}.
                         PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
    return()
  endif()
  target_link_libraries(${name} PRIVATE sidestream_mpi_test_main)
  foreach(ranks IN LISTS arg_RANKS)
    add_test(NAME ${name}.${ranks}ranks
             COMMAND ${SIDESTREAM_MPIEXEC} --oversubscribe --bind-to none -np ${ranks} $<TARGET_FILE:${name}>)
    set_tests_properties(${name}.${ranks}ranks PROPERTIES TIMEOUT ${arg_TIMEOUT} ${SIDESTREAM_ASKED_BY_SIGTERM}
      LABELS "mpi;${arg_LABELS}" PROCESSORS 2 ENVIRONMENT "${SIDESTREAM_MPI_TEST_ENVIRONMENT}")
  endforeach()
endfunction()
