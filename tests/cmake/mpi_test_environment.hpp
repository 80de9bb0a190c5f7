// What a test under mpirun may use: the environment that its main has made, one for all tests of
// the program.
#pragma once

#include "comm/mpi_environment.hpp"

namespace sidestream::test {

comm::MpiEnvironment& mpi_environment();

}  // namespace sidestream::test
