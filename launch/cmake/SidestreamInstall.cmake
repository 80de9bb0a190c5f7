# `cmake --install build/release --prefix DIR`: both programs, every library with its headers, and a package, so that a program
# of one's own says
#
#   find_package(sidestream REQUIRED COMPONENTS trainer)
#   target_link_libraries(mine PRIVATE sidestream::trainer)
#
# What they stand on is not copied: sidestream-config.cmake finds it, LibTorch where this build did or in SIDESTREAM_ENV.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sidestream)

get_property(libraries GLOBAL PROPERTY SIDESTREAM_LIBRARIES)
list(APPEND libraries sidestream_options)
set(programs sidestream-trace)
if(SIDESTREAM_TORCH)
  list(APPEND libraries sidestream_torch_fmt)
  list(APPEND programs sidestream)
endif()
install(TARGETS ${libraries} EXPORT sidestream
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/sidestream
        FILE_SET HEADERS DESTINATION include/sidestream)
set_target_properties(${programs} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
# With the paths that they need once installed from the start: what CMake puts in their place ends in a colon otherwise, which the
# loader takes for the current folder. Libraries of a bundle lie in the source tree, whose paths are none of an installed program.
if(NOT SIDESTREAM_IN_BUNDLE)
  set_target_properties(${programs} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
endif()
install(TARGETS ${programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# What the package remembers. Paths inside of the Python environment are moved along with SIDESTREAM_ENV.
set(remembered SIDESTREAM_CUBLASLT_LIBRARY SIDESTREAM_CUDNN_LIBRARY SIDESTREAM_NVTX_INCLUDE SIDESTREAM_TORCH_DIR)
foreach(place IN LISTS remembered)
  set(${place}_BUILT "${${place}}")
  if(${place} AND EXISTS "${${place}}")
    cmake_path(GET ${place} FILENAME name)
    cmake_path(GET ${place} PARENT_PATH folder)
    file(REAL_PATH "${folder}" folder)  # of the folder alone: the name is that of an interface
    set(${place}_BUILT "${folder}/${name}")
  endif()
endforeach()
set(SIDESTREAM_SITE_BUILT "")
if(SIDESTREAM_SITE)
  file(REAL_PATH "${SIDESTREAM_SITE}" SIDESTREAM_SITE_BUILT)
endif()
install(EXPORT sidestream NAMESPACE sidestream:: FILE sidestream-targets.cmake DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/sidestream-config.cmake.in
  ${PROJECT_BINARY_DIR}/generated/sidestream-config.cmake INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
# Before 1.0 every minor version may change what headers say.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/sidestream-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/SidestreamTorchTargets.cmake ${CMAKE_CURRENT_LIST_DIR}/SidestreamNvtx.cmake
              ${PROJECT_BINARY_DIR}/generated/sidestream-config.cmake
              ${PROJECT_BINARY_DIR}/generated/sidestream-config-version.cmake DESTINATION ${package_dir})
