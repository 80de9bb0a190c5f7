# Everything from outside, found once and named as targets. What is optional sets a variable for the summary.
# sidestream-config.cmake.in finds for an installed build what libraries link to: a new one goes there, too.
set(SIDESTREAM_SCOPE GLOBAL)
find_package(Threads REQUIRED)
find_package(Boost 1.74 CONFIG REQUIRED COMPONENTS program_options)
find_package(nlohmann_json REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(ZLIB REQUIRED)
find_package(simdjson REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(fmt REQUIRED)
set(MPI_CXX_SKIP_MPICXX ON)  # the C interface only
find_package(MPI REQUIRED COMPONENTS CXX)
find_package(PkgConfig REQUIRED)
pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET hwloc)
# Sanitizers bring an allocator of their own.
set(SIDESTREAM_ALLOCATOR glibc)
set(SIDESTREAM_ALLOCATOR_TARGET "")
if(NOT SIDESTREAM_SANITIZE)
  pkg_check_modules(tcmalloc IMPORTED_TARGET libtcmalloc_minimal)
  if(tcmalloc_FOUND)
    set(SIDESTREAM_ALLOCATOR tcmalloc)
    set(SIDESTREAM_ALLOCATOR_TARGET PkgConfig::tcmalloc)
  endif()
endif()
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET libpcre2-8)

set(SIDESTREAM_ENV "${PROJECT_SOURCE_DIR}/build/env" CACHE PATH "Python environment that launch/setup made")
include(SidestreamBundle)
file(GLOB SIDESTREAM_SITE LIST_DIRECTORIES true "${SIDESTREAM_ENV}/lib/python3*/site-packages")

include(SidestreamCuda)
if(SIDESTREAM_TORCH)
  include(SidestreamTorch)
endif()
# The toolkit has NVTX, and so has the nvidia-nvtx package that comes with torch.
find_path(SIDESTREAM_NVTX_INCLUDE nvtx3/nvToolsExt.h
          PATHS ${CUDAToolkit_INCLUDE_DIRS} "${SIDESTREAM_SITE}/nvidia/cu13/include" NO_DEFAULT_PATH)
include(SidestreamNvtx)
