// Preloaded, it lets rank 1 of a job hang in MPI_Finalize, as a network does that has gone away.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

extern "C" int MPI_Finalize() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  while (rank != nullptr && std::strcmp(rank, "1") == 0) ::pause();
  return reinterpret_cast<int (*)()>(::dlsym(RTLD_NEXT, "MPI_Finalize"))();
}
