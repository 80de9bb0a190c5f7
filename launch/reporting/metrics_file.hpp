// metrics.jsonl: one JSON object a logged step, appended; survives kills and is continued on
// resume.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "launch/reporting/appended_file.hpp"
#include "launch/reporting/step_metrics.hpp"

namespace sidestream::launch {

// One line without line break. Empty values and numbers that are not finite become null; val_loss
// is left out where nothing was evaluated, loss_scale and left_out without a loss scale.
std::string metrics_line(const StepMetrics& metrics);

// Every complete line. A last line without line break is a write that a kill cut short: it is left
// out. Throws DataError (file, byte, expected, found) for any other line that is no such object,
// Error for a file that cannot be read.
std::vector<StepMetrics> read_metrics(const std::filesystem::path& path);

class MetricsWriter {
 public:
  // Continues the file after `resumed_step` (0: a new run). Lines of later steps are dropped: those
  // steps are taken again, and a reader would see them twice. Throws as read_metrics, and Error
  // when the file cannot be written; later that is trouble of file().
  explicit MetricsWriter(const std::filesystem::path& path, std::int64_t resumed_step = 0);
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  // One write a line, so that a killed process tears at most the last one; on disk after a few
  // seconds.
  void write(const StepMetrics& metrics);

  // What could not be read of the file when it was opened, or cut the last time: how many lines
  // were dropped, and the copy of the file that has them still. For people; empty where there was
  // nothing of that kind.
  const std::string& damage() const noexcept { return damage_; }

  // Drops the lines of later steps, which are taken again. Throws Error, and leaves all as it is,
  // where the file cannot be written now.
  void rewind(std::int64_t step);

  AppendedFile& file() noexcept { return file_; }

 private:
  AppendedFile file_;
  std::string damage_;
};

}  // namespace sidestream::launch
