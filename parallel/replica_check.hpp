// Finds replicas that have drifted apart: one hash a parameter, compared between ranks.
#pragma once

#include "comm/communicator.hpp"
#include "parallel/parameter_space.hpp"

namespace sidestream::parallel {

// Collective, blocks. Throws NumericsError on all ranks, naming the first parameter (in
// registration order) whose bytes, weights or master weights, differ between ranks, and which ranks
// hold what. Of weights on a GPU the host has copies of 256 MiB at the same time, or of the largest
// parameter.
void check_replicas(comm::Communicator& communicator, const ParameterSpace& parameters);

}  // namespace sidestream::parallel
