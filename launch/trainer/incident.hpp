// An anomaly as it is written down and told: what happened, what was done about it, and which
// samples were in the batch.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "core/data/sample_order.hpp"
#include "launch/trainer/anomaly.hpp"

namespace sidestream::launch {

// The batch of a step: index first_index + (g R + r) B + b of the order is row b of rank r in
// micro-step g.
struct BatchOfStep {
  std::uint64_t first_index = 0;  // samples taken before the step
  std::int64_t batch_size = 1;
  std::int64_t grad_accumulation = 1;
  int ranks = 1;
};

// One line of incidents.jsonl. `samples` has a list a rank: numbers of samples in the training
// split; sample i is tokens i T .. i T + T of its shards in name order.
nlohmann::ordered_json incident_of(const Anomaly& anomaly, AnomalyPolicy policy,
                                   const BatchOfStep& batch, const data::SampleOrder& order);

// For the error that ends the run.
std::string stop_text(const Anomaly& anomaly);
std::string limit_text(const Anomaly& anomaly, std::int64_t limit);

}  // namespace sidestream::launch
