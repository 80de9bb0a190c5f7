// What training on a device needs beside tensors: the optimizer's kernels, and the stream on which
// the calling thread's tensor work is queued. Tests put host loops and a fake stream here.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include <torch/types.h>

#include "comm/work.hpp"
#include "core/base/copy_engine.hpp"
#include "core/optim/device_kernels.hpp"
#include "parallel/config.hpp"
#include "parallel/state_slices.hpp"

namespace sidestream::parallel {

using CurrentStream = std::function<comm::Stream()>;

struct DeviceTools {
  std::shared_ptr<optim::DeviceKernels> kernels = {};  // null: tensors are on the host
  CurrentStream current_stream = [] { return comm::Stream(nullptr); };
  // For StateResidence::kHost; empty: tensors are on the host.
  std::function<std::shared_ptr<core::CopyEngine>()> make_copies = {};
  std::size_t state_slice_elements = kStateSliceElements;
  // Where every tensor of the module has to lie; empty, as with fakes: nobody looks.
  std::optional<torch::Device> place = {};

  // Null where state lies with the weights. Throws ConfigError where there is no device beside the
  // host.
  std::shared_ptr<core::CopyEngine> copies_of_state(const OptimizerConfig& config) const;

  // For tensors on `device`. Throws ConfigError for a device that this build has no kernels for.
  static DeviceTools of(const torch::Device& device);
};

}  // namespace sidestream::parallel
