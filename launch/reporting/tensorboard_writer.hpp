// Scalars in the file format that TensorBoard reads: events.out.tfevents.SECONDS.HOST.PID.
//
// Each record is u64 length, masked CRC-32C of it, an Event in Protocol Buffers, masked CRC-32C of
// that (tensorflow/core/lib/io/record_writer.h, tensorflow/core/util/event.proto).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "launch/reporting/appended_file.hpp"
#include "launch/reporting/step_metrics.hpp"

namespace sidestream::launch {

struct Scalar {
  std::string tag;
  double value = 0;  // stored as float
};

class TensorBoardWriter {
 public:
  // Starts a new file. On resume TensorBoard forgets what older files of the folder say about steps
  // after `resumed_step`: they are taken again. Throws WriteError when it cannot; later that is
  // trouble of file().
  explicit TensorBoardWriter(const std::filesystem::path& folder, std::int64_t resumed_step = 0);

  // One event, one write. Values that are not finite are kept: TensorBoard shows them.
  void write(std::int64_t step, const std::vector<Scalar>& scalars);

  // Tags train/loss, train/grad_norm, train/lr, speed/..., and eval/loss where there is one.
  void write(const StepMetrics& metrics);

  // Steps after this one are taken again.
  void rewind(std::int64_t step);

  const std::filesystem::path& path() const noexcept { return file_.path(); }
  AppendedFile& file() noexcept { return file_; }

 private:
  void write_record(std::string_view event);

  AppendedFile file_;
};

}  // namespace sidestream::launch
