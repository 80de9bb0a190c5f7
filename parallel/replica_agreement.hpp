// What all ranks must agree on: collective checks and hand-overs at the start and, for the bucket
// order, after step 1.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "parallel/config.hpp"
#include "parallel/parameter_list.hpp"
#include "parallel/parameter_space.hpp"

namespace sidestream::parallel {

// Collective: the trainable parameters of the module, the same on all ranks, before anything is
// moved or allocated. Throws AgreedError on all ranks together when one rank's module or
// configuration cannot be used, or names, shapes, dtypes or what decides about collectives differ
// from rank 0's; the message names the first difference and the rank. Where a place is given, all
// tensors of the module have to be there, frozen parameters and buffers included.
std::vector<Parameter> agreed_parameters(comm::Communicator& communicator,
                                         const torch::nn::Module& module,
                                         const DataParallelConfig& config,
                                         const std::optional<torch::Device>& place);

// Collective, blocks: rank 0's master weights to all ranks, and weights are rounded from them
// again; weights that the ranks share only have to be there. Or rank 0's tensors as they are.
void broadcast_parameters(comm::Communicator& communicator, ParameterSpace& parameters,
                          const comm::CollectiveOptions& options);
void broadcast_tensors(comm::Communicator& communicator, const std::vector<Parameter>& tensors,
                       const comm::CollectiveOptions& options);

// Collective, blocks. Throws AgreedError that names a rank whose list is another than rank 0's.
void require_same_order(comm::Communicator& communicator, const std::vector<std::string>& names);

// Collective, blocks: rank 0's order. Throws Error when it is no permutation of the same
// parameters.
std::vector<std::size_t> agree_on_order(comm::Communicator& communicator,
                                        const std::vector<std::size_t>& observed);

}  // namespace sidestream::parallel
