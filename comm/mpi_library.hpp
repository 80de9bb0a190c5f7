// The MPI library that this process has loaded. Works before MPI starts and without a launcher.
#pragma once

#include <string>

namespace sidestream::comm {

struct MpiLibrary {
  std::string version = {};         // the library's own words, up to its first comma
  std::string standard = {};        // "3.1": of the standard that it implements
  std::string built_standard = {};  // of the mpi.h that this program was compiled with
  // Whether it takes device pointers: "yes", "no", or why it is not known.
  std::string cuda_aware = {};

  static MpiLibrary read();
};

}  // namespace sidestream::comm
