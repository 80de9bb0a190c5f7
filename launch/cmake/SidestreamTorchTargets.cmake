# LibTorch and what comes with it as imported targets, of what SidestreamTorch.cmake found in a build, or of what the package of
# an installed build remembers: SIDESTREAM_TORCH_DIR and _SITE, _HAVE_CUDA, _TORCH_CUDA and _CUDNN with their libraries.
# SIDESTREAM_SCOPE: GLOBAL where folders above use them.
# sidestream_as_linker_option(<variable> <before> <path> <after>): a library among options of the linker, which CMake hands on as
# they are: a path may have blanks.
function(sidestream_as_linker_option variable before path after)
  set(${variable} "-Wl,${before}\"${path}\"${after}" PARENT_SCOPE)
endfunction()

if(SIDESTREAM_TORCH_CUDA)
  add_library(sidestream::cublaslt INTERFACE IMPORTED ${SIDESTREAM_SCOPE})
  # By its path as an option: with its folder CMake would have to order the paths of all libraries, and finds a cycle between those
  # of LibTorch's CUDA and the toolkit's.
  set(cublaslt CUDA::cublasLt)
  if(SIDESTREAM_CUBLASLT_LIBRARY)
    sidestream_as_linker_option(cublaslt "" "${SIDESTREAM_CUBLASLT_LIBRARY}" "")
  endif()
  target_link_libraries(sidestream::cublaslt INTERFACE "${cublaslt}")
endif()
if(SIDESTREAM_CUDNN)
  add_library(sidestream::cudnn_frontend INTERFACE IMPORTED ${SIDESTREAM_SCOPE})
  sidestream_as_linker_option(cudnn "" "${SIDESTREAM_CUDNN_LIBRARY}" "")
  target_link_libraries(sidestream::cudnn_frontend INTERFACE "${cudnn}" CUDA::cudart)
endif()

add_library(sidestream::torch INTERFACE IMPORTED ${SIDESTREAM_SCOPE})
target_include_directories(sidestream::torch SYSTEM INTERFACE
  ${SIDESTREAM_TORCH_DIR}/include ${SIDESTREAM_TORCH_DIR}/include/torch/csrc/api/include)
target_link_libraries(sidestream::torch INTERFACE sidestream::torch_fmt)
# launch/setup links to an environment that other checkouts share: what is linked goes there without that link.
file(REAL_PATH "${SIDESTREAM_TORCH_DIR}/lib" torch_lib)
file(REAL_PATH "${SIDESTREAM_SITE}/nvidia" torch_nvidia)
set(torch_libraries torch torch_cpu c10)
if(EXISTS "${SIDESTREAM_TORCH_DIR}/lib/libtorch_cuda.so")
  list(APPEND torch_libraries torch_cuda c10_cuda)
endif()
# libtorch.so exports pieces of an older libstdc++ (std::filesystem::remove_all calls address 0): the system's comes first.
target_link_libraries(sidestream::torch INTERFACE "-Wl,--push-state,--no-as-needed,-lstdc++,--pop-state")
foreach(name IN LISTS torch_libraries)
  # By path and kept even if no symbol is used: libtorch_cuda registers its kernels when it is loaded.
  sidestream_as_linker_option(library "--push-state,--no-as-needed," "${torch_lib}/lib${name}.so" ",--pop-state")
  target_link_libraries(sidestream::torch INTERFACE "${library}")
endforeach()
file(GLOB nvidia_folders LIST_DIRECTORIES true "${torch_nvidia}/*/lib")
target_link_options(sidestream::torch INTERFACE "LINKER:-rpath,${torch_lib}"
                    "LINKER:--allow-shlib-undefined")
foreach(folder IN LISTS nvidia_folders)
  target_link_options(sidestream::torch INTERFACE "LINKER:-rpath-link,${folder}" "LINKER:-rpath,${folder}")
endforeach()
# at::parallel_for is a template in LibTorch's headers, and runs on one thread where the compiler has no OpenMP. With the
# OpenMP runtime that LibTorch brings: the compiler's own would start a second pool of threads.
target_compile_options(sidestream::torch INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fopenmp>)
if(EXISTS "${torch_lib}/libgomp.so.1")
  sidestream_as_linker_option(openmp "--push-state,--no-as-needed," "${torch_lib}/libgomp.so.1" ",--pop-state")
  target_link_libraries(sidestream::torch INTERFACE "${openmp}")
else()
  target_link_options(sidestream::torch INTERFACE $<$<LINK_LANGUAGE:CXX>:-fopenmp>)
endif()
if(SIDESTREAM_HAVE_CUDA)
  target_include_directories(sidestream::torch SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
  target_link_libraries(sidestream::torch INTERFACE CUDA::cudart)
endif()
