// For builds without the CUDA toolkit, or with a LibTorch that works on processors only.
#include "core/base/error.hpp"
#include "launch/device/graph_engine.hpp"

namespace sidestream::launch {

std::unique_ptr<GraphEngine> make_graph_engine(const torch::Device& /*device*/,
                                               int /*micro_steps*/) {
  throw core::ConfigError("--cuda-graph on: this build was made without CUDA");
}

bool has_graph_engine() noexcept { return false; }

}  // namespace sidestream::launch
