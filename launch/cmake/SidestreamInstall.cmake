# `cmake --install build/release --prefix DIR`: both programs, every library with its headers, and a package, so that a program
# of one's own says
#
#   find_package(sidestream REQUIRED)
#   target_link_libraries(mine PRIVATE sidestream::trainer)
#
# LibTorch, MPI and the others are not copied: the package finds them where this build did, or where SIDESTREAM_ENV (a Python
# environment with the same torch) and CMAKE_PREFIX_PATH say.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sidestream)

get_property(libraries GLOBAL PROPERTY SIDESTREAM_LIBRARIES)
install(TARGETS ${libraries} EXPORT sidestream
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/sidestream
        FILE_SET HEADERS DESTINATION include/sidestream)
set(programs sidestream-trace)
set(others sidestream_options)
if(SIDESTREAM_TORCH)
  list(APPEND programs sidestream)
  list(APPEND others sidestream_torch_fmt)
endif()
install(TARGETS ${others} EXPORT sidestream ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/sidestream)
set_target_properties(${programs} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS ${programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

install(EXPORT sidestream NAMESPACE sidestream:: FILE sidestream-targets.cmake DESTINATION ${package_dir})
# launch/setup links to an environment that outlives the checkout.
file(REAL_PATH "${SIDESTREAM_ENV}" SIDESTREAM_ENV_REAL)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/sidestream-config.cmake.in
  ${CMAKE_BINARY_DIR}/generated/sidestream-config.cmake INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
# Before 1.0 every minor version may change what headers say.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/sidestream-config-version.cmake COMPATIBILITY SameMinorVersion)
foreach(module SidestreamDependencies SidestreamCuda SidestreamTorch SidestreamNvtx SidestreamHeaderVersion)
  list(APPEND modules ${CMAKE_CURRENT_LIST_DIR}/${module}.cmake)
endforeach()
install(FILES ${modules} ${CMAKE_BINARY_DIR}/generated/sidestream-config.cmake
              ${CMAKE_BINARY_DIR}/generated/sidestream-config-version.cmake DESTINATION ${package_dir})
