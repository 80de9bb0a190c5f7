# NVTX 3 is header only: the toolkit has it, and so has the nvidia-nvtx package that comes with torch.
find_path(SIDESTREAM_NVTX_INCLUDE nvtx3/nvToolsExt.h
          PATHS ${CUDAToolkit_INCLUDE_DIRS} "${SIDESTREAM_SITE}/nvidia/cu13/include" NO_DEFAULT_PATH)
add_library(sidestream::nvtx INTERFACE IMPORTED GLOBAL)
if(SIDESTREAM_NVTX_INCLUDE)
  target_include_directories(sidestream::nvtx SYSTEM INTERFACE ${SIDESTREAM_NVTX_INCLUDE})
  target_compile_definitions(sidestream::nvtx INTERFACE SIDESTREAM_HAVE_NVTX=1)
  target_link_libraries(sidestream::nvtx INTERFACE ${CMAKE_DL_LIBS})
endif()
