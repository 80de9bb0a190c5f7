#include "launch/verify/proof_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"

namespace sidestream::launch {
namespace {

bool sets_fix_batch(const std::vector<std::string>& flags) {
  return std::any_of(flags.begin(), flags.end(), [](const std::string& word) {
    return word.substr(0, word.find('=')) == "--fix-batch";
  });
}

// Null when there is nothing to prove.
const advice::Finding* finding_to_prove(const VerifyOptions& options, const ExaminedRun& base) {
  if (!options.prove) return nullptr;
  for (const auto* flags : {&options.common, &options.base, &options.fresh}) {
    if (sets_fix_batch(*flags)) return nullptr;
  }
  const advice::Finding* first = advice::first_of_run(base.advice().findings);
  return first != nullptr && advice::is_waiting_for_input(*first->rule) ? first : nullptr;
}

}  // namespace

ProofOutcome make_proof(const VerifyOptions& options, const ExaminedRun& base,
                        const StopRequest& stop, RunProgress& progress) {
  const advice::Finding* finding = finding_to_prove(options, base);
  if (finding == nullptr) return {};
  const std::vector<PlannedRun> plan = plan_proof(options);
  progress.say(
      fmt::format("the first advice for the base is \"{}\": {} more runs, with "
                  "--fix-batch on in turns, prove or refute it (--prove off leaves them out)",
                  finding->rule->title, plan.size()));
  progress.expect(static_cast<int>(plan.size()));
  try {
    auto sides = make_runs(options, plan, stop, progress);
    if (!sides) return {.stopped = true};
    const auto bound = finding->what.bound;
    return {.proof = ProofRuns{.finding = finding->rule->title,
                               .bound_pct = bound ? std::optional(*bound * 100) : std::nullopt,
                               .sides = std::move(*sides)}};
  } catch (const core::Error& error) {
    progress.say(error.what());
    progress.say("the verdict does not need this run: it is given without the proof");
    return {};
  }
}

}  // namespace sidestream::launch
