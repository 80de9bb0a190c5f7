#include "launch/assembly/stage_guard.hpp"

#include "core/checkpoint/run_directory.hpp"

namespace sidestream::launch {

StageGuard::StageGuard(Session& session, const TrainOptions& options, const Stage& stage)
    : step_(stage.step),
      heartbeat_(session.communicator()),
      guard_(session, options.timeouts, heartbeat_,
             checkpoint::RunPaths(options.run_dir).flight() / stage.name) {}

}  // namespace sidestream::launch
