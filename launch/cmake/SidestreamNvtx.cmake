# NVTX 3, header only, where SIDESTREAM_NVTX_INCLUDE has it.
add_library(sidestream::nvtx INTERFACE IMPORTED ${SIDESTREAM_SCOPE})
if(SIDESTREAM_NVTX_INCLUDE)
  target_include_directories(sidestream::nvtx SYSTEM INTERFACE ${SIDESTREAM_NVTX_INCLUDE})
  target_compile_definitions(sidestream::nvtx INTERFACE SIDESTREAM_HAVE_NVTX=1)
  target_link_libraries(sidestream::nvtx INTERFACE ${CMAKE_DL_LIBS})
endif()
