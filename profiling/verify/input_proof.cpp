#include "profiling/verify/input_proof.hpp"

#include <fmt/format.h>

#include <utility>

namespace sidestream::verify {

InputProof input_proof(std::string finding, std::optional<double> bound_pct,
                       const Verification& runs) {
  return {.finding = std::move(finding),
          .bound_pct = bound_pct,
          .blocks = runs.blocks,
          .step_time = runs.step_time,
          .verdict = verdict_sentence(runs),
          .reason = decide(runs, {}).reason};
}

std::string proof_sentence(const InputProof& proof) {
  const std::string bound =
      proof.bound_pct ? fmt::format(", at most {:.1f} %", *proof.bound_pct) : std::string();
  return fmt::format("Proof of the advice \"{}\"{}: {} ({})", proof.finding, bound, proof.reason,
                     proof.verdict);
}

}  // namespace sidestream::verify
