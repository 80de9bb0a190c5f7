# LibTorch from the PyPI wheel as own imported targets. The wheel's find_package(Torch) stops without CUDA and adds
# architectures that nvcc 13 refuses; these targets need neither.
set(SIDESTREAM_TORCH_DIR "${SIDESTREAM_SITE}/torch" CACHE PATH "Folder of the torch package")
if(NOT EXISTS "${SIDESTREAM_TORCH_DIR}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "No LibTorch in '${SIDESTREAM_TORCH_DIR}'. Run launch/setup, or set SIDESTREAM_TORCH_DIR to the "
                      "torch folder of a Python environment.")
endif()
sidestream_header_version(SIDESTREAM_TORCH_VERSION "${SIDESTREAM_TORCH_DIR}/include/torch/headeronly/version.h" TORCH_VERSION_)

# With what it was built for: 2.11.0+cu130.
file(STRINGS "${SIDESTREAM_TORCH_DIR}/version.py" SIDESTREAM_TORCH_BUILD REGEX "^__version__ = ")
string(REGEX REPLACE ".*'(.*)'.*" "\\1" SIDESTREAM_TORCH_BUILD "${SIDESTREAM_TORCH_BUILD}")
file(STRINGS "${SIDESTREAM_TORCH_DIR}/version.py" torch_cuda_line REGEX "^cuda: .*= '")
string(REGEX MATCH "'([0-9]+)" torch_cuda_major "${torch_cuda_line}")
set(torch_cuda_major "${CMAKE_MATCH_1}")
if(SIDESTREAM_HAVE_CUDA AND torch_cuda_major AND NOT torch_cuda_major EQUAL CUDAToolkit_VERSION_MAJOR)
  message(WARNING "torch was built for CUDA ${torch_cuda_major}, the toolkit is ${CUDAToolkit_VERSION}: two CUDA runtimes in one "
                  "process. Take a toolkit of CUDA ${torch_cuda_major} (CUDACXX=.../bin/nvcc), or a torch for CUDA "
                  "${CUDAToolkit_VERSION_MAJOR}.")
endif()
# LibTorch's library for GPUs, and a toolkit of the CUDA that it was built for: its own streams, graphs and handles can be used.
set(SIDESTREAM_TORCH_CUDA OFF)
if(SIDESTREAM_HAVE_CUDA AND EXISTS "${SIDESTREAM_TORCH_DIR}/lib/libtorch_cuda.so" AND
   torch_cuda_major EQUAL CUDAToolkit_VERSION_MAJOR)
  set(SIDESTREAM_TORCH_CUDA ON)
  # The cublasLt that LibTorch loads, where the wheels of CUDA 13 or 12 have it; where torch came without one, the toolkit's.
  unset(SIDESTREAM_CUBLASLT_LIBRARY CACHE)
  find_library(SIDESTREAM_CUBLASLT_LIBRARY libcublasLt.so.${torch_cuda_major}
               PATHS "${SIDESTREAM_SITE}/nvidia/cu${torch_cuda_major}/lib" "${SIDESTREAM_SITE}/nvidia/cublas/lib" NO_DEFAULT_PATH)
  # The cuDNN that LibTorch loads, and the headers in which NVIDIA offers its graphs (PyPI's nvidia-cudnn-frontend). Up to 9.15.0
  # a launch copied lengths from memory of the host that is gone when a CUDA graph is replayed.
  set(SIDESTREAM_OLDEST_CUDNN 9.15.1)
  foreach(place IN ITEMS LIBRARY INCLUDE_DIR FRONTEND_INCLUDE_DIR)
    unset(SIDESTREAM_CUDNN_${place} CACHE)
  endforeach()
  find_library(SIDESTREAM_CUDNN_LIBRARY libcudnn.so.9 PATHS "${SIDESTREAM_SITE}/nvidia/cudnn/lib" NO_DEFAULT_PATH)
  find_path(SIDESTREAM_CUDNN_INCLUDE_DIR cudnn_version.h PATHS "${SIDESTREAM_SITE}/nvidia/cudnn/include" NO_DEFAULT_PATH)
  find_path(SIDESTREAM_CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h PATHS "${SIDESTREAM_SITE}/include" NO_DEFAULT_PATH)
endif()
set(SIDESTREAM_CUDNN OFF)
set(cudnn_version 0)
if(SIDESTREAM_TORCH_CUDA AND SIDESTREAM_CUDNN_INCLUDE_DIR)
  sidestream_header_version(cudnn_version "${SIDESTREAM_CUDNN_INCLUDE_DIR}/cudnn_version.h" CUDNN_)
endif()
if(SIDESTREAM_TORCH_CUDA AND SIDESTREAM_CUDNN_LIBRARY AND SIDESTREAM_CUDNN_FRONTEND_INCLUDE_DIR AND
   cudnn_version VERSION_GREATER_EQUAL SIDESTREAM_OLDEST_CUDNN)
  set(SIDESTREAM_CUDNN ON)
endif()
include(SidestreamTorchTargets)
if(SIDESTREAM_CUDNN)
  target_include_directories(sidestream::cudnn_frontend SYSTEM INTERFACE
    "${SIDESTREAM_CUDNN_INCLUDE_DIR}" "${SIDESTREAM_CUDNN_FRONTEND_INCLUDE_DIR}")
  target_compile_definitions(sidestream::cudnn_frontend INTERFACE CUDNN_FRONTEND_SKIP_JSON_LIB)
endif()
if(SIDESTREAM_SANITIZE)
  # Its types have no information for the check of virtual tables.
  target_compile_options(sidestream::torch INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=vptr>)
endif()
