#include "comm/mpi_library.hpp"

#include <dlfcn.h>
#include <mpi.h>

#include <array>

namespace sidestream::comm {
namespace {

std::string standard_text(int version, int subversion) {
  return std::to_string(version) + "." + std::to_string(subversion);
}

std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return "unknown";
  const std::string words(text.data());
  return words.substr(0, words.find_first_of(",\n"));
}

// Open MPI's own extension, found by its name: other libraries have none. From version 5 on it asks
// what MPI_Init has set up.
std::string cuda_awareness() {
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized == 0) return "not asked (MPI was not started)";
  const auto query = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"));
  if (query == nullptr) return "not known (this MPI has no MPIX_Query_cuda_support)";
  return query() == 1 ? "yes" : "no";
}

}  // namespace

MpiLibrary MpiLibrary::read() {
  int version = 0, subversion = 0;
  MPI_Get_version(&version, &subversion);
  return {.version = library_version(),
          .standard = standard_text(version, subversion),
          .built_standard = standard_text(MPI_VERSION, MPI_SUBVERSION),
          .cuda_aware = cuda_awareness()};
}

}  // namespace sidestream::comm
