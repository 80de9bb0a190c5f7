#include "launch/trainer/verdict_json.hpp"

namespace sidestream::launch {
namespace {

using nlohmann::json;

json to_json(const record::RankPhases& rank) {
  json phases = json::object();
  for (std::size_t phase = 0; phase < ranges::kPhaseCount; ++phase) {
    if (rank.phase_ms[phase] > 0) phases[ranges::kPhases[phase].name] = rank.phase_ms[phase];
  }
  return {{"rank", rank.rank},
          {"step_ms", rank.step_ms},
          {"phases_ms", std::move(phases)},
          {"comm_ms", rank.comm_ms},
          {"other_ms", rank.other_ms}};
}

json to_json(const statistics::Straggler& late) {
  const auto or_null = [](const auto& value) { return value ? json(*value) : json(nullptr); };
  return {{"rank", late.rank},
          {"ranks", late.ranks()},
          {"phase", late.phase},
          {"cost_ns_per_step", late.cost_ns_per_step},
          {"cost_low_ns", or_null(late.cost_low_ns)},
          {"cost_high_ns", or_null(late.cost_high_ns)},
          {"steps", late.steps},
          {"steps_last", late.steps_last}};
}

json to_json(const statistics::UsuallyLast& usual) {
  return {{"rank", usual.rank},
          {"median_cost_ns_per_step", usual.median_cost_ns},
          {"steps", usual.steps},
          {"steps_last", usual.steps_last}};
}

json to_json(const statistics::Outlier& one) {
  return {{"step", one.step},
          {"length_ns", one.length_ns},
          {"medians", one.medians},
          {"rank", one.rank},
          {"phase", one.phase.empty() ? json(nullptr) : json(one.phase)}};
}

json to_json(const statistics::Interval& interval) {
  return {{"mean", interval.mean}, {"low", interval.low}, {"high", interval.high}};
}

}  // namespace

json verdict_json(const record::RunVerdict& verdict) {
  const statistics::Bound& bound = verdict.bound;
  json ranks = json::array();
  for (const record::RankPhases& rank : verdict.ranks) ranks.push_back(to_json(rank));
  json outliers = json::array();
  for (const statistics::Outlier& one : verdict.outliers) outliers.push_back(to_json(one));
  return {{"word", bound.word},
          {"runner_up", bound.runner_up},
          {"sure", bound.is_sure()},
          {"lead", bound.lead ? to_json(*bound.lead) : json(nullptr)},
          {"io", bound.io},
          {"cpu", bound.cpu},
          {bound.compute_word, bound.compute},
          {"comm", bound.comm},
          {"processor_wait", verdict.shortage ? json({{"rank", verdict.shortage->rank},
                                                      {"share", verdict.shortage->share}})
                                              : json(nullptr)},
          {"rank_alone", verdict.rank_alone ? json(*verdict.rank_alone) : json(nullptr)},
          {"steps", verdict.steps},
          {"newest_steps", verdict.newest_steps},
          {"uncounted_steps", verdict.uncounted_steps},
          {"outliers", std::move(outliers)},
          {"ranks", std::move(ranks)},
          {"straggler", verdict.straggler ? to_json(*verdict.straggler) : json(nullptr)},
          {"usually_last", verdict.usually_last ? to_json(*verdict.usually_last) : json(nullptr)},
          {"rotating_ns_per_step",
           verdict.rotating_ns_per_step ? json(*verdict.rotating_ns_per_step) : json(nullptr)}};
}

}  // namespace sidestream::launch
