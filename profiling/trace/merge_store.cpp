#include "profiling/trace/merge_store.hpp"

#include <nlohmann/json.hpp>

#include "profiling/trace/event_rewriter.hpp"

namespace sidestream::trace {
namespace {

// Kineto's words, so that tools that read its traces know them.
const char* category_of(Kind kind) {
  switch (kind) {
    case Kind::kKernel:
    case Kind::kGraph:
      return "kernel";
    case Kind::kMemcpy:
      return "gpu_memcpy";
    case Kind::kMemset:
      return "gpu_memset";
    case Kind::kRuntime:
      return "cuda_runtime";
    case Kind::kHostRange:
      return "user_annotation";
    default:
      return "lock";
  }
}

std::string quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string arguments_of(const RankTimeline& timeline, std::size_t row) {
  const std::uint64_t correlation = timeline.correlation(row);
  std::string text = correlation == 0 ? "" : "\"correlation\":" + std::to_string(correlation);
  const auto device = timeline.device(row);
  if (!device) return text;
  if (!text.empty()) text += ",";
  text += "\"device\":" + std::to_string(device->device) +
          ",\"stream\":" + std::to_string(device->stream);
  if (device->bytes > 0) text += ",\"bytes\":" + std::to_string(device->bytes);
  return text;
}

}  // namespace

StoreWriter::StoreWriter(const RankTimeline& timeline, MergeNames& names, const MergeCut& cut)
    : timeline_(timeline), names_(names) {
  std::unordered_set<std::uint64_t> on_device;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.device(row).has_value() &&
        cut.touches(timeline.start_ns(row), timeline.end_ns(row)))
      on_device.insert(timeline.correlation(row));
  }
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.kind(row) == Kind::kRuntime && on_device.contains(timeline.correlation(row)) &&
        cut.touches(timeline.start_ns(row), timeline.end_ns(row)))
      tied_.insert(timeline.correlation(row));
  }
  for (const Track& track : timeline.tracks()) {
    if (!track.name.empty()) names_.name_thread(track.process, track.thread, track.name);
  }
}

std::vector<std::string> StoreWriter::events_of(std::size_t row, std::int64_t time_ns) {
  const Track& track = timeline_.tracks()[timeline_.track_of(row)];
  const std::string place = ",\"pid\":" + std::to_string(names_.process()) + ",\"tid\":" +
                            std::to_string(names_.thread(track.process, track.thread)) +
                            ",\"ts\":" + microseconds_text(time_ns);
  std::vector<std::string> events = {"{\"ph\":\"X\",\"cat\":\"" +
                                     std::string(category_of(timeline_.kind(row))) +
                                     "\",\"name\":" + quoted(timeline_.name(row)) + place +
                                     ",\"dur\":" + microseconds_text(timeline_.duration_ns(row)) +
                                     ",\"args\":{" + arguments_of(timeline_, row) + "}}"};
  const std::uint64_t correlation = timeline_.correlation(row);
  if (correlation == 0 || !tied_.contains(correlation)) return events;
  const bool launch = timeline_.kind(row) == Kind::kRuntime;
  events.push_back("{\"ph\":\"" + std::string(launch ? "s" : "f\",\"bp\":\"e") +
                   "\",\"cat\":\"ac2g\",\"name\":\"ac2g\"" + ",\"id\":" +
                   std::to_string(names_.arrow(std::to_string(correlation))) + place + "}");
  return events;
}

}  // namespace sidestream::trace
