// Where the tensors of a module have to lie: a communicator hands their addresses to a library that
// does not ask whose they are.
#pragma once

#include <vector>

#include <torch/types.h>

#include "comm/communicator.hpp"
#include "parallel/parameter_list.hpp"

namespace sidestream::parallel {

// Where collectives of this communicator find their buffers.
torch::Device place_of(const comm::Communicator& communicator);

// Throws ConfigError that names the first of the tensors that lies elsewhere, and what to do.
void require_place(const std::vector<Parameter>& tensors, const torch::Device& place);

}  // namespace sidestream::parallel
