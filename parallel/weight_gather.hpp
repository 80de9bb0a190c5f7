// After an update of slices: the new weights of all ranks' slices to every rank, bucket by bucket,
// those first that the next forward needs first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/communicator.hpp"
#include "parallel/device_tools.hpp"
#include "parallel/parameter_space.hpp"

namespace sidestream::parallel {

class WeightGather {
 public:
  // The communicator and the parameters, which are sharded, must outlive this. model: as
  // GradientSpace has it.
  WeightGather(comm::Communicator& communicator, const ParameterSpace& parameters, int model,
               CurrentStream current_stream)
      : communicator_(communicator),
        parameters_(parameters),
        model_(model),
        current_stream_(std::move(current_stream)) {}
  // Waits for what is in flight, since the memory belongs to it; a failure is dropped, somebody
  // else reports it.
  ~WeightGather();
  WeightGather(const WeightGather&) = delete;
  WeightGather& operator=(const WeightGather&) = delete;

  // Collective, does not block. This rank's slices hold its new weights. Gradients are ready in
  // about the reverse order of use: the last bucket is gathered first.
  void start();

  // The weights of the parameter are new, as far as the current stream goes; blocks a host rank.
  // Nothing to do when they have been waited for. Throws CollectiveError, PeerError.
  void wait_for(std::size_t parameter);
  // Of all parameters.
  void finish();
  // What was started never runs: it was captured, and the capture has failed.
  void abandon() { in_flight_.clear(); }

  // How long the calling thread was blocked since the last call.
  std::int64_t take_blocked_ns();

 private:
  void wait_for_bucket(std::size_t bucket);

  comm::Communicator& communicator_;
  const ParameterSpace& parameters_;
  int model_;
  CurrentStream current_stream_;
  std::vector<comm::Work> in_flight_;  // by bucket; nothing where it has been waited for
  std::int64_t blocked_ns_ = 0;
};

}  // namespace sidestream::parallel
