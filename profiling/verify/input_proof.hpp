// What came of the runs that prove or refute that the base waits for input.
#pragma once

#include <optional>
#include <string>

#include "profiling/verify/verification.hpp"

namespace sidestream::verify {

// `runs`: the base against itself with --fix-batch on. `finding` is what the advice said,
// `bound_pct` the most that it promised.
InputProof input_proof(std::string finding, std::optional<double> bound_pct,
                       const Verification& runs);

// "Proof of "...": ..."
std::string proof_sentence(const InputProof& proof);

}  // namespace sidestream::verify
