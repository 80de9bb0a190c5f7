# Everything from outside, found once and named as targets. What is optional sets a variable for the summary.
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
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET libpcre2-8)

set(SIDESTREAM_ENV "${PROJECT_SOURCE_DIR}/build/env" CACHE PATH "Python environment that launch/setup made")
file(GLOB SIDESTREAM_SITE LIST_DIRECTORIES true "${SIDESTREAM_ENV}/lib/python3*/site-packages")

include(SidestreamCuda)
if(SIDESTREAM_TORCH)
  include(SidestreamTorch)
endif()
include(SidestreamNvtx)
