// Exit codes of every Sidestream process: scripts and supervisors rely on the numbers.
// The gates of comparisons have theirs: verify::GateCode.
#pragma once

namespace sidestream::core {

enum class ExitCode : int {
  kDone = 0,
  kOther = 1,
  kConfig = 2,      // flags, configuration, run directory
  kData = 3,        // data or trace file
  kCheckpoint = 4,  // checkpoint, also one of another model
  kNumerics = 5,    // NaN, replica drift
  kCollective = 6,  // a collective failed or timed out
  kPeer = 7,        // a peer died
  kMemory = 8,      // out of memory
  kPreempted = 75,  // stopped after a save: start again
};

}  // namespace sidestream::core
