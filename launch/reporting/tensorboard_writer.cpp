#include "launch/reporting/tensorboard_writer.hpp"

#include <unistd.h>

#include "core/base/host_name.hpp"
#include "launch/reporting/crc32c.hpp"
#include "launch/reporting/protobuf_encoder.hpp"

namespace sidestream::launch {
namespace {

// Field numbers of event.proto and summary.proto.
constexpr int kEventWallTime = 1, kEventStep = 2, kEventFileVersion = 3, kEventSummary = 5,
              kEventSessionLog = 7;
constexpr int kSummaryValue = 1, kValueTag = 1, kValueSimple = 2;
constexpr int kSessionStatus = 1, kSessionStart = 1;

double wall_time_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

ProtobufEncoder event_at(std::int64_t step) {
  ProtobufEncoder event;
  event.fixed64(kEventWallTime, wall_time_s()).varint(kEventStep, static_cast<std::uint64_t>(step));
  return event;
}

std::filesystem::path new_path(const std::filesystem::path& folder) {
  const auto seconds = static_cast<std::int64_t>(wall_time_s());
  const std::string name = "events.out.tfevents." + std::to_string(seconds) + "." +
                           core::host_name() + "." + std::to_string(getpid());
  std::filesystem::path path = folder / name;
  for (int i = 1; std::filesystem::exists(path); ++i)
    path = folder / (name + "." + std::to_string(i));
  return path;
}

std::string little_endian(std::uint64_t value, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

}  // namespace

TensorBoardWriter::TensorBoardWriter(const std::filesystem::path& folder, std::int64_t resumed_step)
    : file_(new_path(folder), AppendedFile::Content::kRecords) {
  write_record(event_at(0).bytes(kEventFileVersion, "brain.Event:2").content());
  if (resumed_step > 0) rewind(resumed_step);
  file_.finish();
}

void TensorBoardWriter::rewind(std::int64_t step) {
  const ProtobufEncoder start = ProtobufEncoder().varint(kSessionStatus, kSessionStart);
  write_record(event_at(step + 1).bytes(kEventSessionLog, start.content()).content());
}

void TensorBoardWriter::write(std::int64_t step, const std::vector<Scalar>& scalars) {
  ProtobufEncoder summary;
  for (const Scalar& scalar : scalars) {
    ProtobufEncoder value;
    value.bytes(kValueTag, scalar.tag).fixed32(kValueSimple, static_cast<float>(scalar.value));
    summary.bytes(kSummaryValue, value.content());
  }
  write_record(event_at(step).bytes(kEventSummary, summary.content()).content());
}

void TensorBoardWriter::write(const StepMetrics& metrics) {
  std::vector<Scalar> scalars = {{"train/loss", metrics.loss},
                                 {"train/grad_norm", metrics.grad_norm},
                                 {"train/lr", metrics.lr},
                                 {"speed/batch_cost_s", metrics.batch_cost_s},
                                 {"speed/reader_cost_s", metrics.reader_cost_s},
                                 {"speed/samples_per_s", metrics.samples_per_s},
                                 {"speed/tokens_per_s", metrics.tokens_per_s}};
  if (metrics.mfu) scalars.push_back({"speed/mfu", *metrics.mfu});
  if (metrics.memory_bytes)
    scalars.push_back({"memory/peak_bytes", static_cast<double>(*metrics.memory_bytes)});
  if (metrics.val_loss) scalars.push_back({"eval/loss", *metrics.val_loss});
  if (metrics.loss_scale) scalars.push_back({"train/loss_scale", *metrics.loss_scale});
  write(metrics.step, scalars);
}

void TensorBoardWriter::write_record(std::string_view event) {
  const std::string length = little_endian(event.size(), 8);
  std::string record = length + little_endian(masked_crc32c(length), 4);
  record += event;
  record += little_endian(masked_crc32c(event), 4);
  file_.append(record);
}

}  // namespace sidestream::launch
