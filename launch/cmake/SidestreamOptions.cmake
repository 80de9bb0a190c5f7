# Compile and link options of all targets of the project: what follows counts in its folders, and not in a project around it.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_FLAGS_RELEASE "-O3")  # assertions stay on: the cheap ones cost nothing that shows

find_program(SIDESTREAM_CCACHE ccache)
if(SIDESTREAM_CCACHE AND PROJECT_IS_TOP_LEVEL)
  # base_dir makes a second clone hit the cache of the first; the sloppiness is what a precompiled header needs.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros ${SIDESTREAM_CCACHE})
endif()

# Programs on top of Sidestream get the language and where its headers lie, and choose the rest themselves.
add_library(sidestream_options INTERFACE)
add_library(sidestream::options ALIAS sidestream_options)
set_target_properties(sidestream_options PROPERTIES EXPORT_NAME options)
target_compile_features(sidestream_options INTERFACE cxx_std_20)
target_include_directories(sidestream_options INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                        $<INSTALL_INTERFACE:include/sidestream>)

# GCC 12 sees overflows and uninitialized values in inlined code of fmt and of its own library that are not there.
set(old_gcc $<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>)
# Kernels that call a function of the host: nvcc only warns, and what the call does is undefined.
add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:--diag-error=20011,20012,20013,20014,20015>)
# -fPIC on every target, executables too, so that one precompiled header serves all of them.
add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fPIC>
  "$<$<COMPILE_LANGUAGE:CXX>:-fPIC;-fno-math-errno;-fno-trapping-math;-Wall;-Wextra;-Wno-unused-parameter;$<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>;$<${old_gcc}:-Wno-stringop-overflow;-Wno-maybe-uninitialized>;-fpch-preprocess>")
if(SIDESTREAM_WERROR)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(NOT PROJECT_IS_TOP_LEVEL AND (SIDESTREAM_SANITIZE OR SIDESTREAM_FUZZ))
  message(FATAL_ERROR "SIDESTREAM_SANITIZE, SIDESTREAM_FUZZ: for a build of Sidestream alone: a project around it gives such "
                      "options to all of its targets (CMAKE_CXX_FLAGS)")
endif()
if(SIDESTREAM_SANITIZE STREQUAL "address")
  set(sanitizers -fsanitize=address,undefined)
elseif(SIDESTREAM_SANITIZE STREQUAL "thread")
  set(sanitizers -fsanitize=thread)
elseif(SIDESTREAM_SANITIZE)
  message(FATAL_ERROR "SIDESTREAM_SANITIZE: expected OFF, address or thread, found '${SIDESTREAM_SANITIZE}'")
endif()
if(SIDESTREAM_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:${sanitizers}>
    "$<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all;-fno-omit-frame-pointer;-O1;-g1>")
  add_link_options(${sanitizers})
endif()
if(SIDESTREAM_FUZZ)
  # Coverage for everything that a fuzz target calls; the target itself brings libFuzzer's main.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
endif()
find_program(SIDESTREAM_LLD ld.lld)  # a fifth of the time of GNU ld; mold 1.10 has misplaced .relro of a program, and may have hung
if(SIDESTREAM_LLD)
  add_link_options(-fuse-ld=lld)
endif()
add_link_options(-Wl,--no-undefined)
