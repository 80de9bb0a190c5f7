#include "launch/doctor/model_need.hpp"

#include "model/config.hpp"
#include "parallel/memory_plan.hpp"

namespace sidestream::launch::doctor {

ModelNeed need_of_example(int ranks_on_host) {
  ModelNeed need;
  const std::int64_t parameters = model::parameter_count(model::preset(need.model));
  const auto plan = parallel::plan_memory({{need.model, {parameters}}}, {}, ranks_on_host);
  need.rank_bytes = static_cast<std::int64_t>(plan.total_bytes());
  constexpr int kStored = 3;  // weights and two moments
  need.checkpoint_bytes = kStored * parameters * static_cast<std::int64_t>(sizeof(float));
  return need;
}

}  // namespace sidestream::launch::doctor
