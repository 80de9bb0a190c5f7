#include "launch/recording/phase_verdict.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace sidestream::launch {
namespace {

using nlohmann::json;

// All ranks together send no more than this many steps, and each at least what a verdict needs.
constexpr std::size_t kMostStepsOfAll = 1 << 16;

std::size_t steps_to_send(int ranks) {
  return std::clamp<std::size_t>(kMostStepsOfAll / static_cast<std::size_t>(ranks),
                                 record::kLeastStepsForVerdict, record::PhaseHistory::kMostSteps);
}

json json_of(const std::vector<record::StepTimes>& steps) {
  json list = json::array();
  for (const record::StepTimes& step : steps)
    list.push_back({step.number, step.step, step.window_ns, step.comm_ns, step.phase_ns});
  return list;
}

std::vector<record::StepTimes> steps_from(const json& list) {
  std::vector<record::StepTimes> steps;
  for (const json& step : list) {
    steps.push_back({.number = step.at(0),
                     .step = step.at(1),
                     .window_ns = step.at(2),
                     .comm_ns = step.at(3),
                     .phase_ns = step.at(4)});
  }
  return steps;
}

std::string text_of(const record::RankAccount& account) {
  const record::PhaseTotals& totals = account.totals;
  const json wait = account.processor_wait ? json(*account.processor_wait) : json(nullptr);
  return json({{totals.steps, totals.window_ns, totals.io_ns, totals.compute_ns, totals.comm_ns,
                totals.uncounted_steps},
               json_of(account.newest),
               wait,
               json_of(account.longest_before)})
      .dump();
}

record::RankAccount account_from(const std::string& text) {
  const json value = json::parse(text);
  const json& totals = value.at(0);
  record::RankAccount account{.totals = {.steps = totals.at(0),
                                         .window_ns = totals.at(1),
                                         .io_ns = totals.at(2),
                                         .compute_ns = totals.at(3),
                                         .comm_ns = totals.at(4),
                                         .uncounted_steps = totals.at(5)},
                              .newest = steps_from(value.at(1)),
                              .longest_before = steps_from(value.at(3))};
  if (!value.at(2).is_null()) account.processor_wait = value.at(2).get<double>();
  return account;
}

}  // namespace

std::optional<record::RunVerdict> verdict_of_all_ranks(comm::Communicator& communicator,
                                                       const record::Recorder& recorder,
                                                       std::optional<double> processor_wait) {
  const std::size_t most = steps_to_send(communicator.size());
  const record::RankAccount mine{.totals = recorder.totals(),
                                 .newest = recorder.history().newest(most),
                                 .longest_before = recorder.history().longest_before(most),
                                 .processor_wait = processor_wait};
  const std::vector<std::string> texts =
      communicator.exchange(text_of(mine), {.purpose = "accounts of phases"});
  if (communicator.rank() != 0) return std::nullopt;
  std::vector<record::RankAccount> ranks;
  for (const std::string& text : texts) ranks.push_back(account_from(text));
  return record::find_verdict(ranks);
}

std::optional<record::RunVerdict> verdict_of_rank_alone(int rank,
                                                        const record::Recorder& recorder) {
  const record::RankAccount mine{.totals = recorder.totals(),
                                 .newest = recorder.history().newest(steps_to_send(1)),
                                 .longest_before = recorder.history().longest_before()};
  std::optional<record::RunVerdict> verdict = record::find_verdict(std::span(&mine, 1));
  if (!verdict) return std::nullopt;
  verdict->rank_alone = rank;
  for (record::RankPhases& one : verdict->ranks) one.rank = rank;
  for (statistics::Outlier& one : verdict->outliers) one.rank = rank;
  return verdict;
}

}  // namespace sidestream::launch
