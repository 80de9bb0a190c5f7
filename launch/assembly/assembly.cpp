#include "launch/assembly/assembly.hpp"

#include "core/base/error.hpp"
#include "launch/options/train_parser.hpp"

namespace sidestream::launch {

namespace {

comm::DeviceWish wish_of(Device device) {
  switch (device) {
    case Device::kAuto:
      return comm::DeviceWish::kAuto;
    case Device::kCpu:
      return comm::DeviceWish::kCpu;
    case Device::kCuda:
      return comm::DeviceWish::kCuda;
  }
  return comm::DeviceWish::kCpu;
}

core::DType parameter_dtype(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
    case Precision::kTf32:
      return core::DType::kFloat32;
    case Precision::kBf16:
      return core::DType::kBFloat16;
    case Precision::kFp16:
      return core::DType::kFloat16;
  }
  throw core::Error("no such precision");
}

optim::LossScaleConfig loss_scale_config(const TrainOptions& options) {
  optim::LossScaleConfig config;
  if (options.precision != Precision::kFp16) return config;
  const std::optional<double> fixed = options.loss_scale.fixed();
  config.kind = fixed ? optim::LossScaling::kFixed : optim::LossScaling::kDynamic;
  if (fixed) config.scale = *fixed;
  if (options.loss_scale.interval) config.interval = *options.loss_scale.interval;
  return config;
}

}  // namespace

comm::CommunicatorConfig communicator_config(const TrainOptions& options) {
  comm::CommunicatorConfig config = options.comm;
  config.device = wish_of(options.device);
  config.timeout_setup = options.timeouts.setup;
  config.timeout_collective = options.timeouts.step;
  config.setup_flag = "--timeout-setup";
  config.collective_flag = "--timeout-step";
  return config;
}

parallel::DataParallelConfig data_parallel_config(const TrainOptions& options) {
  parallel::DataParallelConfig config = options.parallel;
  config.parameter_dtype = parameter_dtype(options.precision);
  config.loss_scale = loss_scale_config(options);
  config.optimizer.rounding_seed = options.seed;
  const bool has_windows = options.device != Device::kCuda && options.comm.shared_memory;
  if (!has_windows)
    config.state_sharing = parallel::settled_sharing(config, parallel::RanksShare::kNothing);
  return config;
}

optim::ScheduleConfig schedule_config(const TrainOptions& options) {
  return {.kind = optim::parse_schedule_kind(options.schedule.kind),
          .lr = options.schedule.lr,
          .min_lr_ratio = options.schedule.min_lr_ratio,
          .steps = options.steps,
          .warmup_steps = options.schedule.warmup_steps};
}

std::int64_t tokens_per_step(const TrainOptions& options, int world_size) {
  return options.data.batch_size_per_rank * sequence_length(options) *
         options.parallel.grad_accumulation * world_size;
}

}  // namespace sidestream::launch
