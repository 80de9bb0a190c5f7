#include "launch/assembly/stepper_assembly.hpp"

#include "core/base/error.hpp"
#include "launch/device/device_feed.hpp"
#include "launch/device/device_step_runner.hpp"
#include "launch/device/eager_steps.hpp"
#include "launch/options/train_parser.hpp"

namespace sidestream::launch {
namespace {

int slots_of_feed(const TrainOptions& options) {
  return options.cuda_graph ? StaticBatches::slots_for(options.parallel.grad_accumulation)
                            : DeviceFeed::kSlots;
}

GraphParts graph_parts(const TrainOptions& options, const DeviceSession& device,
                       std::int64_t first_step) {
  if (!options.cuda_graph) return {};
  return {.engine = make_graph_engine(device.device(), options.parallel.grad_accumulation),
          .eager_because = [faults = options.faults,
                            plan = ProfilePlan(options.record.profile, first_step)](
                               std::int64_t step) { return why_eager(plan, faults, step); }};
}

// Steps on a GPU with the feed that they own.
class FedSteps final : public Stepper {
 public:
  FedSteps(const StepperParts& parts, const StepRunnerConfig& config, const TrainOptions& options,
           const DeviceSession& device)
      : current_stream_(parallel::DeviceTools::of(device.device()).current_stream),
        feed_(parts.loader, device.driver(),
              {.batch_size = options.data.batch_size_per_rank,
               .sequence_length = sequence_length(options),
               .device = device.device(),
               .slots = slots_of_feed(options)},
              current_stream_),
        runner_(
            {.model = parts.model,
             .replicas = parts.replicas,
             .feed = feed_,
             .communicator = parts.communicator,
             .driver = device.driver(),
             .current_stream = current_stream_},
            config, [options](std::int64_t step) { return look_at(options, step); },
            graph_parts(options, device, parts.first_step)) {}

  StepOutcome run(std::int64_t step, const std::function<bool()>& stop_requested) override {
    return runner_.run(step, stop_requested);
  }
  std::optional<GraphUse> graph_use() const override { return runner_.graph_use(); }

 private:
  parallel::CurrentStream current_stream_;
  DeviceFeed feed_;
  DeviceStepRunner runner_;
};

bool is_multiple(std::int64_t step, std::int64_t every) { return every > 0 && step % every == 0; }

}  // namespace

Look look_at(const TrainOptions& options, std::int64_t step) {
  if (!options.late_loss || step == options.steps || is_multiple(step, options.evaluation.every) ||
      is_multiple(step, options.checkpoint.every))
    return Look::kAtOnce;
  return step == 1 || is_multiple(step, options.log_every) ? Look::kLate : Look::kNone;
}

LoaderMemory loader_memory(const TrainOptions& options, const DeviceSession& device) {
  if (!device.on_gpu()) return {};
  LoaderMemory memory{.max_held = DeviceFeed::kBatchesHeld};
  if (!options.data.pin_memory) return memory;
  memory.allocator = pinned_slots(device.driver());
  return memory;
}

data::SlotAllocator pinned_slots(std::shared_ptr<comm::cuda::Driver> driver) {
  const auto allocate = [driver](std::size_t bytes) {
    try {
      return driver->allocate_pinned(bytes);
    } catch (const core::MemoryError& error) {
      throw core::MemoryError(std::string("batches: ") + error.what() +
                              ": --pin-memory off needs none, a smaller --prefetch less");
    }
  };
  return {.allocate = allocate,
          .release = [driver](void* block, std::size_t) { driver->free_pinned(block); }};
}

std::unique_ptr<Stepper> make_stepper(const StepperParts& parts, const StepRunnerConfig& config,
                                      const TrainOptions& options, const DeviceSession& device) {
  if (device.on_gpu()) return std::make_unique<FedSteps>(parts, config, options, device);
  return std::make_unique<StepRunner>(parts.model, parts.replicas, parts.loader, parts.communicator,
                                      config);
}

}  // namespace sidestream::launch
