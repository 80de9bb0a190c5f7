#include "launch/assembly/rank_plan.hpp"

#include "launch/assembly/assembly.hpp"
#include "launch/options/train_parser.hpp"
#include "model/language_model.hpp"
#include "model/shapes_only.hpp"

namespace sidestream::launch {
namespace {

// Even the largest preset costs nothing here.
std::vector<parallel::ParameterShape> shapes_of(const model::ModelConfig& config) {
  const model::ShapesOnly no_memory;
  std::vector<parallel::ParameterShape> shapes;
  for (const auto& parameter : model::make_language_model(config)->named_parameters()) {
    shapes.push_back({parameter.key(), parameter.value().sizes().vec()});
  }
  return shapes;
}

// fp32 weights and moments in their own type, spread over the ranks; the first one has all weights
// (checkpointer.hpp). After the last step nothing is copied, unless it has to be gathered from
// slices.
SnapshotBytes snapshot_bytes(const TrainOptions& options,
                             const std::vector<parallel::ParameterShape>& shapes,
                             const parallel::DataParallelConfig& config, int ranks) {
  const bool gathers = config.state_sharing == parallel::StateSharing::kSharded && ranks > 1;
  const CheckpointOptions& checkpoints = options.checkpoint;
  const bool between_steps = checkpoints.saves_between(0, options.steps);
  if (!gathers && !(checkpoints.asynchronous && between_steps)) return {};
  std::size_t elements = 0;
  for (const parallel::ParameterShape& shape : shapes) elements += shape.elements();
  const std::size_t weights = elements * sizeof(float);
  const std::size_t moments =
      elements * core::size_of(config.optimizer.state_dtype) *
      static_cast<std::size_t>(parallel::moments_per_parameter(config.optimizer));
  const std::size_t all = weights + moments;
  return {.first_rank = std::max(weights, all / static_cast<std::size_t>(ranks)), .all_ranks = all};
}

}  // namespace

RankPlanner::RankPlanner(const TrainOptions& options, const PlanPlace& place)
    : place_(place), shapes_(shapes_of(options.model.config)) {}

parallel::DataParallelConfig RankPlanner::config(const TrainOptions& options) const {
  parallel::DataParallelConfig config = data_parallel_config(options);
  config.state_sharing = parallel::settled_sharing(config, place_.share);
  return config;
}

RankPlan RankPlanner::plan(const TrainOptions& options) const {
  const parallel::DataParallelConfig settled = config(options);
  const SnapshotBytes snapshot = snapshot_bytes(options, shapes_, settled, place_.ranks);
  return {.state = parallel::plan_memory(shapes_, settled, place_.ranks),
          .activations = activations_of(options),
          .snapshot = snapshot,
          .copied_bytes = snapshot.on_host(place_.ranks_on_host)};
}

model::ActivationMemory activations_of(const TrainOptions& options) {
  const bool narrow =
      options.precision == Precision::kBf16 || options.precision == Precision::kFp16;
  return model::activation_memory(options.model.config,
                                  {.batch = options.data.batch_size_per_rank,
                                   .sequence_length = sequence_length(options),
                                   .element_bytes = narrow ? 2 : 4,
                                   .on_cpu = options.device != Device::kCuda});
}

}  // namespace sidestream::launch
