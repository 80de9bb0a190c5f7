#include "launch/recording/recording_losses.hpp"

#include <fmt/format.h>

namespace sidestream::launch {
namespace {

std::string lost_ranges_text(const RecordingLosses& losses, const RecordOptions& options,
                             int rank) {
  std::string help;
  if (losses.room_needed > 0 &&
      losses.room_needed <= static_cast<std::uint64_t>(kMostRangesPerThread))
    help = fmt::format("--record-ranges {} (now {}) has room for them all; ", losses.room_needed,
                       options.ranges_per_thread);
  help += "SIGUSR2 in between writes what is there and makes room";
  if (!options.every_second_step()) help += "; --record alternate needs half of it";
  if (!options.profile) help += "; --profile records some steps in the middle";
  return fmt::format(
      "warning: {} ranges of rank {} found no room in the recorder, which keeps the newest of each "
      "thread: reports leave out the steps that lack some. {}",
      losses.ranges, rank, help);
}

std::string lost_samples_text(const RecordingLosses& losses, const RecordOptions& options,
                              int rank) {
  const std::string help =
      options.sample_hz > 1 ? fmt::format("; a --sample-hz below {} needs less", options.sample_hz)
                            : "";
  return fmt::format(
      "warning: {} samples of the system of rank {} found no room in the recorder, which keeps the "
      "newest. SIGUSR2 in between writes what is there and makes room{}",
      losses.samples, rank, help);
}

}  // namespace

std::vector<std::string> warnings_of(const RecordingLosses& losses, const RecordOptions& options,
                                     int rank) {
  std::vector<std::string> warnings;
  if (losses.ranges > 0) warnings.push_back(lost_ranges_text(losses, options, rank));
  if (losses.samples > 0) warnings.push_back(lost_samples_text(losses, options, rank));
  return warnings;
}

}  // namespace sidestream::launch
