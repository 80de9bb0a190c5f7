// Where the time of a run went, over all its starts: what follows from RUN/ettr.jsonl, one line an
// event, appended by rank 0 (ettr_ledger) and by launch/supervise.
//
// Events have `event` and `at` (seconds since 1970), and since when the machine has run: `boot`, a
// part of its boot id, and `up_s`, the seconds since then, which nobody can set back. `attempt` is
// the number of the start; in a supervised run `supervisor` says whose number it is.
//   launched {}                                          by the supervisor
//   started  {step, training_s, startup_s, restore_s}    before the first step
//   progress {step, training_s, stall_s, evaluation_s}   every few seconds, and after saves
//   finished {step, training_s, stall_s, evaluation_s, code}     the run's own end
//   ended    {code}                                      the supervisor has seen the end
// training_s is the time inside steps that a checkpoint of that step keeps; the other sums are of
// this start alone. A start that was killed has no `finished`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "launch/trainer/ettr_lines.hpp"

namespace sidestream::launch {

// All in seconds; the parts add up to wall_s.
struct EttrAccount {
  double wall_s = 0;
  double productive_s = 0;  // steps whose effect is in the weights now
  double replayed_s = 0;    // steps that were lost, and trained again
  double startup_s = 0;     // from launch to the first step, without restoring
  double restore_s = 0;
  double checkpoint_stall_s = 0;
  double evaluation_s = 0;
  // From the last sign of progress to the end of the ranks: of a rank 0 that was killed with the
  // steps after its last line, of up to five seconds, but for those that a checkpoint has.
  double detection_s = 0;
  double idle_s = 0;   // nothing ran: back-off, queues
  double other_s = 0;  // between steps: lines, votes, recordings
  std::int64_t starts = 0;
  std::int64_t failures = 0;  // starts that ended other than done or preempted

  // Effective training time: productive over wall.
  double ettr() const noexcept { return wall_s > 0 ? productive_s / wall_s : 0; }
  // Nothing without failures.
  std::optional<double> mtbf_s() const noexcept;
};

// Puts right what was written after the time of day was set: `at` of a line becomes that of the
// first line of the same boot, plus what has passed since then.
void settle_clocks(std::vector<nlohmann::json>& ledger);

// Of the whole ledger up to `now_s`. Lines that are none of these events are left out. A run on
// another host than its supervisor's, with another time of day, is shifted to lie between the
// launch and the end that the supervisor has seen.
EttrAccount account_of(const std::vector<nlohmann::json>& ledger, double now_s);

// As far as a ledger can be believed.
struct FoundAccount {
  std::optional<EttrAccount> account = {};  // nothing without an event, or where it does not add up
  std::vector<std::string> faults = {};     // what of the ledger was left out, for people
};

// Of the ledger in `path`. Throws Error for a file that cannot be read.
FoundAccount found_account(const std::filesystem::path& path, EttrLines ledger);

// Of a run directory's ettr.jsonl, up to its last line. Throws Error for a file that cannot be
// read.
FoundAccount read_account(const std::filesystem::path& ledger);

nlohmann::ordered_json to_json(const EttrAccount& account);
std::string describe(const EttrAccount& account);  // one line for people

}  // namespace sidestream::launch
