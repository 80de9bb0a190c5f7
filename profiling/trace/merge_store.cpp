#include "profiling/trace/merge_store.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "profiling/ranges/system_counters.hpp"
#include "profiling/trace/counter_spans.hpp"
#include "profiling/trace/event_rewriter.hpp"

namespace sidestream::trace {
namespace {

// Kineto's words, so that tools that read its traces know them; it has none for the launch of a
// graph, whose time is no kernel's.
const char* category_of(Kind kind) {
  switch (kind) {
    case Kind::kKernel:
      return "kernel";
    case Kind::kGraph:
      return "gpu_graph";
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

// Members of a JSON object.
class Members {
 public:
  void add(std::string_view key, std::int64_t value) { add_text(key, std::to_string(value)); }
  void add(std::string_view key, std::string_view value) { add_text(key, quoted(value)); }
  void add_known(std::string_view key, std::int64_t value) {
    if (value >= 0) add(key, value);
  }
  void add_text(std::string_view key, const std::string& json) {
    text_ += (text_.empty() ? "" : ",") + quoted(key) + ":" + json;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Our own keys, and PyTorch's word for the operation.
void add_collective(const RankTimeline& timeline, std::size_t row, Members& members) {
  const CollectiveDetail* detail = timeline.collective(row);
  if (detail == nullptr) return;
  if (detail->name != kNoName) members.add("Collective name", timeline.names[detail->name]);
  members.add_known("bucket", detail->bucket);
  members.add_known("sequence", detail->sequence);
  members.add_known("payload bytes", detail->bytes);
  if (detail->group_size > 0) members.add("Group size", detail->group_size);
}

std::string arguments_of(const RankTimeline& timeline, std::size_t row) {
  Members members;
  if (const std::uint64_t correlation = timeline.correlation(row); correlation != 0)
    members.add_text("correlation", std::to_string(correlation));
  if (const auto device = timeline.device(row)) {
    members.add("device", device->device);
    members.add("stream", device->stream);
    if (device->bytes > 0) members.add_text("bytes", std::to_string(device->bytes));
  }
  add_collective(timeline, row, members);
  return members.text();
}

std::string number_text(double value) {
  char text[32] = {};
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

}  // namespace

StoreWriter::StoreWriter(const RankTimeline& timeline, MergeNames& names, const MergeCut& cut)
    : timeline_(timeline), names_(names), crossing_(timeline) {
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

std::vector<std::string> StoreWriter::events_of(std::size_t row, std::int64_t start_ns,
                                                std::int64_t end_ns) {
  const Track& track = timeline_.tracks()[timeline_.track_of(row)];
  const int lane = crossing_.lane({track.process, track.thread}, timeline_.start_ns(row),
                                  timeline_.duration_ns(row));
  const std::string place = ",\"pid\":" + std::to_string(names_.process()) + ",\"tid\":" +
                            std::to_string(names_.thread(track.process, track.thread, lane)) +
                            ",\"ts\":" + microseconds_text(start_ns);
  std::vector<std::string> events = {"{\"ph\":\"X\",\"cat\":\"" +
                                     std::string(category_of(timeline_.kind(row))) +
                                     "\",\"name\":" + quoted(timeline_.name(row)) + place +
                                     ",\"dur\":" + microseconds_text(end_ns - start_ns) +
                                     ",\"args\":{" + arguments_of(timeline_, row) + "}}"};
  const std::uint64_t correlation = timeline_.correlation(row);
  if (correlation == 0 || !tied_.contains(correlation)) return events;
  const bool launch = timeline_.kind(row) == Kind::kRuntime;
  events.push_back("{\"ph\":\"" + std::string(launch ? "s" : "f\",\"bp\":\"e") +
                   "\",\"cat\":\"ac2g\",\"name\":\"ac2g\"" + ",\"id\":" +
                   std::to_string(names_.arrow(std::to_string(correlation))) + place + "}");
  return events;
}

std::string StoreWriter::counter_event(std::size_t first, std::size_t& end, std::int64_t start_ns,
                                       std::int64_t time_ns) const {
  const auto& readings = timeline_.counters();
  const CounterReading one = readings[first];
  Members values;
  for (end = first; end < readings.size() && readings[end].counter == one.counter &&
                    readings[end].time_ns == one.time_ns;
       ++end)
    values.add_text(timeline_.names[readings[end].series], number_text(readings[end].value));
  const std::string_view name = timeline_.names[one.counter];
  const std::string length =
      is_rate(name) ? ",\"dur\":" + microseconds_text(time_ns - start_ns) : "";
  return R"({"ph":"C","cat":")" + std::string(ranges::kSystemCategory) + R"(","name":)" +
         quoted(name) + ",\"pid\":" + std::to_string(names_.process()) +
         ",\"tid\":0,\"ts\":" + microseconds_text(start_ns) + length + ",\"args\":{" +
         values.text() + "}}";
}

}  // namespace sidestream::trace
