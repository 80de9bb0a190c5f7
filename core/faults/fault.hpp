// A fault that somebody plants on purpose, and how it is written on a command line:
//
//   kill:rank=1,step=50; slow:rank=0,ms=200; nan:rank=2,step=90,steps=3
//
// KIND:KEY=VALUE,KEY=VALUE; the next one. Keys are optional unless said otherwise.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sidestream::faults {

enum class Kind : std::uint8_t {
  kKill,      // SIGKILL
  kStop,      // SIGSTOP: the process is there and does nothing
  kHang,      // the thread sleeps for ever, the others go on
  kExit,      // _exit(code)
  kThrow,     // an exception without a class of its own
  kMemory,    // std::bad_alloc
  kSlow,      // ms longer, at every step from `step` on (all, unless `steps` says how many)
  kNan,       // the loss is multiplied with NaN
  kSpike,     // the loss is multiplied with `factor`
  kInfGrad,   // the gradients become infinite, the loss stays as it is
  kFlip,      // one bit of the rank's first weight is turned over
  kDiskFull,  // writing a file of a checkpoint fails: no space left
  kDesync,    // one collective too many
};

// Where in a run. What a kind does not say with `at` happens at the place that fits it.
enum class Point : std::uint8_t {
  kStart,       // before MPI starts; step 0
  kSetUp,       // before the data is opened; step 0
  kRestore,     // before a checkpoint is loaded at the start of a run; step 0
  kData,        // before a step takes its batch
  kForward,     // before the forward of a step
  kUpdate,      // before the weights of a step change
  kEvaluation,  // before an evaluation
  kCheckpoint,  // before a checkpoint's files are written
  kCommit,      // before the checkpoint gets its name
};

struct Fault {
  Kind kind = Kind::kKill;
  std::optional<int> rank = {};           // nothing: every rank
  std::optional<std::int64_t> step = {};  // nothing: the first step that comes by
  Point at = Point::kForward;
  std::int64_t steps = 1;           // how often it happens, at most once a step; 0: for ever
  int attempt = 1;                  // of a supervised run: 1 is the first start; 0: all
  std::chrono::milliseconds ms{0};  // slow: how much; kill, stop, exit: so long after the place
  double factor = 100;              // spike
  int code = 17;                    // exit
};

// Throws ConfigError naming the fault, the key and what is possible.
std::vector<Fault> parse_faults(std::string_view text);

// "kill of rank 1 at forward of step 50", for messages and the log.
std::string describe(const Fault& fault);

}  // namespace sidestream::faults
