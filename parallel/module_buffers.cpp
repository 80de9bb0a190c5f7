#include "parallel/module_buffers.hpp"

#include <vector>

#include "parallel/device_tools.hpp"
#include "parallel/parameter_list.hpp"
#include "parallel/replica_agreement.hpp"
#include "parallel/tensor_place.hpp"

namespace sidestream::parallel {

void broadcast_buffers(const torch::nn::Module& module, comm::Communicator& communicator) {
  const std::vector<Parameter> buffers = buffer_tensors(module);
  if (buffers.empty()) return;
  const torch::Device place = place_of(communicator);
  require_place(buffers, place);
  const DeviceTools tools = DeviceTools::of(place);
  broadcast_tensors(communicator, buffers, {.after = tools.current_stream()});
}

}  // namespace sidestream::parallel
