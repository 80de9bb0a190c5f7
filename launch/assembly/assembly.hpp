// Turns options into the objects of a training run: the one place that asks which flag is on.
#pragma once

#include <cstdint>

#include "comm/factory.hpp"
#include "core/optim/schedule.hpp"
#include "launch/options/train_options.hpp"
#include "parallel/config.hpp"

namespace sidestream::launch {

comm::CommunicatorConfig communicator_config(const TrainOptions& options);
parallel::DataParallelConfig data_parallel_config(const TrainOptions& options);
optim::ScheduleConfig schedule_config(const TrainOptions& options);

// B T G R.
std::int64_t tokens_per_step(const TrainOptions& options, int world_size);

}  // namespace sidestream::launch
