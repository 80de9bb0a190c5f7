// What the exit code of a command says, for --help. core/base/exit_code.hpp has the numbers.
#pragma once

namespace sidestream::launch {

inline constexpr const char* kExitCodes =
    "Exit codes: 0 done; 2 flags, configuration, run directory; 3 data file;\n"
    "4 checkpoint; 5 numerics; 6 a collective failed or timed out; 7 a peer died;\n"
    "8 out of memory; 75 stopped after a save, start again; 1 anything else.\n"
    "Of verify: 10 slower, 12 cannot be judged, 13 learns worse.\n";

}  // namespace sidestream::launch
