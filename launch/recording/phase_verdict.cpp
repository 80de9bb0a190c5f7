#include "launch/recording/phase_verdict.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sidestream::launch {
namespace {

using nlohmann::json;

std::string text_of(const record::PhaseTotals& totals) {
  return json({totals.steps, totals.window_ns, totals.io_ns, totals.compute_ns, totals.comm_ns})
      .dump();
}

record::PhaseTotals totals_from(const std::string& text) {
  const json value = json::parse(text);
  return {.steps = value.at(0),
          .window_ns = value.at(1),
          .io_ns = value.at(2),
          .compute_ns = value.at(3),
          .comm_ns = value.at(4)};
}

}  // namespace

std::optional<record::PhaseVerdict> agreed_verdict(comm::Communicator& communicator,
                                                   const record::PhaseTotals& mine) {
  std::vector<record::PhaseTotals> ranks;
  for (const std::string& one : communicator.exchange(text_of(mine)))
    ranks.push_back(totals_from(one));
  return record::find_verdict(ranks);
}

}  // namespace sidestream::launch
