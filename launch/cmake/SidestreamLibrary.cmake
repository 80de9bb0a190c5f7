# sidestream_add_library(<name> [TORCH] [TOGETHER] [INTERFACE] SOURCES ... HEADERS ... PUBLIC ... PRIVATE ...)
# One target a folder, with alias sidestream::<name>. Headers are a file set: without LibTorch each of them is also
# compiled alone (target all_verify_interface_header_sets). TORCH adds LibTorch and the shared precompiled header.
# TOGETHER: see sidestream_compile_together.
function(sidestream_add_library name)
  cmake_parse_arguments(arg "TORCH;TOGETHER;INTERFACE" "" "SOURCES;HEADERS;PUBLIC;PRIVATE" ${ARGN})
  set(target sidestream_${name})
  set(public PUBLIC)
  if(arg_INTERFACE)
    add_library(${target} INTERFACE)
    set(public INTERFACE)
  else()
    add_library(${target} STATIC ${arg_SOURCES})
  endif()
  add_library(sidestream::${name} ALIAS ${target})
  target_sources(${target} ${public} FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${arg_HEADERS})
  target_link_libraries(${target} ${public} sidestream::options ${arg_PUBLIC})
  if(NOT arg_INTERFACE)
    target_link_libraries(${target} PRIVATE ${arg_PRIVATE})
  endif()
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY SIDESTREAM_LIBRARIES ${target})
  if(arg_TOGETHER)
    sidestream_compile_together(${target})
  endif()
  if(arg_TORCH)
    sidestream_use_torch(${target} PUBLIC)
  else()
    set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  endif()
endfunction()

# sidestream_compile_together(<target>): eight sources at a time (SIDESTREAM_UNITY), for most of the time goes into headers of
# others. Names in anonymous namespaces then meet those of neighbours. Not for libraries that have sources in common: linked into
# one program, each would bring them.
function(sidestream_compile_together target)
  if(SIDESTREAM_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    # A file that others include may not have types of its own in classes that have linkage; sources are no such files.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# sidestream_use_torch(<target> <PUBLIC|PRIVATE>): LibTorch and its precompiled header for one target. After its other
# libraries: what LibTorch takes back of the options follows them. Compiled together: what LibTorch's headers leave to be
# instantiated takes 6 s a file, more than most files of ours.
function(sidestream_use_torch target visibility)
  target_link_libraries(${target} ${visibility} sidestream::torch Threads::Threads)
  target_precompile_headers(${target} REUSE_FROM sidestream_torch_pch)
  sidestream_compile_together(${target})
  get_target_property(type ${target} TYPE)
  if(SIDESTREAM_SANITIZE AND type STREQUAL "EXECUTABLE")
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:sidestream_sanitizer_defaults>)
  endif()
endfunction()
