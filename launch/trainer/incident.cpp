#include "launch/trainer/incident.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

namespace sidestream::launch {
namespace {

using Json = nlohmann::ordered_json;

const char* name_of(AnomalyPolicy policy) {
  switch (policy) {
    case AnomalyPolicy::kOff:
    case AnomalyPolicy::kWarn:
      return "warn";
    case AnomalyPolicy::kStop:
      return "stop";
    case AnomalyPolicy::kSkip:
      return "skip";
    case AnomalyPolicy::kRollback:
      return "rollback";
  }
  return "warn";
}

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

std::vector<std::uint64_t> samples_of_rank(int rank, const BatchOfStep& batch,
                                           const data::SampleOrder& order) {
  std::vector<std::uint64_t> samples;
  for (std::int64_t g = 0; g < batch.grad_accumulation; ++g) {
    for (std::int64_t b = 0; b < batch.batch_size; ++b) {
      const std::int64_t place = (g * batch.ranks + rank) * batch.batch_size + b;
      samples.push_back(order.sample(batch.first_index + static_cast<std::uint64_t>(place)));
    }
  }
  return samples;
}

constexpr const char* kAdvice =
    "A lower --lr, more --warmup-steps or a smaller --grad-clip (0 is none at all) usually help; "
    "incidents.jsonl names the samples of the batch";

// fp16 is not too narrow for gradients that are too large without any scale.
constexpr const char* kScaleAdvice =
    "Weights or activations have grown beyond fp16: a lower --lr, more --warmup-steps or a smaller "
    "--grad-clip from an earlier checkpoint, or --precision bf16, which has the range of fp32";

const char* advice_for(const Anomaly& anomaly) {
  return anomaly.kind == Anomaly::Kind::kLossScaleTooSmall ? kScaleAdvice : kAdvice;
}

}  // namespace

Json incident_of(const Anomaly& anomaly, AnomalyPolicy policy, const BatchOfStep& batch,
                 const data::SampleOrder& order) {
  Json incident = {
      {"step", anomaly.values.step},
      {"kind", anomaly.name()},
      {"action", name_of(policy)},
      {"rank", anomaly.values.bad_rank >= 0 ? Json(anomaly.values.bad_rank) : Json(nullptr)},
      {"loss", finite(anomaly.values.loss)},
      {"grad_norm", finite(anomaly.values.grad_norm)},
      {"zscore", anomaly.is_spike() ? Json(anomaly.zscore) : Json(nullptr)},
      {"parameter", anomaly.parameter.empty() ? Json(nullptr) : Json(anomaly.parameter)},
      {"samples", Json::array()}};
  for (int rank = 0; rank < batch.ranks; ++rank)
    incident["samples"].push_back(samples_of_rank(rank, batch, order));
  return incident;
}

// On a GPU the update of a spike is on its way before anybody has seen the loss.
std::string stop_text(const Anomaly& anomaly) {
  const char* weights =
      anomaly.is_spike() ? "Nothing is saved from that step on" : "Weights were not changed";
  return fmt::format("{}. {}. {}", anomaly.text(), weights, advice_for(anomaly));
}

std::string limit_text(const Anomaly& anomaly, std::int64_t limit) {
  return fmt::format("{}: more than {} in a row (--max-skipped-steps). {}", anomaly.text(), limit,
                     advice_for(anomaly));
}

}  // namespace sidestream::launch
