#include "profiling/trace/kineto_reader.hpp"

#include <charconv>

#include "profiling/ranges/phases.hpp"
#include "profiling/ranges/system_counters.hpp"
#include "profiling/trace/decimal.hpp"
#include "profiling/trace/event_times.hpp"
#include "profiling/trace/kineto_fields.hpp"
#include "profiling/trace/kineto_metadata.hpp"
#include "profiling/trace/kineto_stream.hpp"
#include "profiling/trace/senseless_times.hpp"
#include "profiling/trace/track_cache.hpp"

namespace sidestream::trace {
namespace {

std::uint32_t small_of(std::string_view text) {
  return static_cast<std::uint32_t>(integer_of(text, 0));
}

float fraction_of(std::string_view text) {
  float value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Kineto writes 0 where it cannot tell: a kernel of another architecture, or one with clusters.
// More than all of a multiprocessor cannot be occupied.
float occupancy_of(std::string_view text) {
  const float percent = fraction_of(text);
  return percent > 0 && percent <= 100 ? percent : -1;
}

// "[2400, 1, 1]"
std::array<std::uint32_t, 3> triple_of(std::string_view text) {
  std::array<std::uint32_t, 3> triple = {};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::uint32_t& one : triple) {
    while (at < end && (*at < '0' || *at > '9')) ++at;
    at = std::from_chars(at, end, one).ptr;
  }
  return triple;
}

class EventSorter {
 public:
  EventSorter(KinetoFile& file, KinetoDecoder& decoder)
      : timeline_(file.timeline), events_(file.events), decoder_(decoder), tracks_(timeline_) {}

  void add(const KinetoFields& fields) {
    if (fields.phase == "X") return add_complete(fields);
    if (fields.phase == "M") return add_metadata(fields);
    if (fields.phase == "i" || fields.phase == "I") return add_instant(fields);
    if (fields.phase == "C") return add_counter(fields);
    if (fields.phase == "B" || fields.phase == "E")
      timeline_.skip("begin and end as two events");
    else if (fields.phase.empty())
      timeline_.skip("no phase");
  }

  std::vector<std::string> warnings() const { return senseless_.warnings(); }

 private:
  void skip(const KinetoFields& fields, const TimeFault& fault) {
    timeline_.skip(fault.reason);
    senseless_.add(fault, "number " + std::to_string(events_) + " of the file", fields.name);
  }

  void add_complete(const KinetoFields& fields) {
    Event event = event_of(fields);
    if (event.kind == Kind::kOther || event.kind == Kind::kMemory) return;
    const EventTimes times = times_of(fields, EventShape::kSpan);
    if (times.fault) return skip(fields, *times.fault);
    event.start_ns = times.start_ns;
    event.duration_ns = times.duration_ns;
    timeline_.add(event, detail_of(event, fields));
  }

  Event event_of(const KinetoFields& fields) {
    Event event{.kind = kind_of_category(fields.category), .name = fields.name};
    event.track = tracks_.find(fields.process, fields.thread);
    // Before user_annotation existed, steps and other ranges were operators.
    if (event.kind == Kind::kOperator && fields.name.starts_with(ranges::kStepPrefix))
      event.kind = Kind::kHostRange;
    if (event.kind == Kind::kHostRange && fields.open == "true") event.kind = Kind::kUnfinished;
    return event;
  }

  std::uint32_t detail_of(const Event& event, const KinetoFields& fields) {
    if (!fields.has_arguments) return kNone;
    if (event.kind <= Kind::kDeviceSync) return timeline_.add_detail(device_detail(fields));
    if (event.kind == Kind::kRuntime)
      return timeline_.add_correlation(identifier_of(fields.correlation));
    if (event.kind == Kind::kOperator || event.kind == Kind::kHostRange ||
        event.kind == Kind::kUnfinished)
      return timeline_.add_detail(host_detail(fields));
    return kNone;
  }

  DeviceDetail device_detail(const KinetoFields& fields) {
    const LaunchShape shape = {
        .stream = integer_of(fields.stream, 0),
        .bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, integer_of(fields.bytes, 0))),
        .grid = triple_of(fields.grid),
        .block = triple_of(fields.block),
        .registers_per_thread = small_of(fields.registers),
        .shared_memory_bytes = small_of(fields.shared_memory),
        .occupancy_percent = occupancy_of(fields.occupancy),
        .blocks_per_sm = fraction_of(fields.blocks_per_sm),
        .device = static_cast<std::int32_t>(integer_of(fields.device, 0))};
    return {shape, identifier_of(fields.correlation), collective_row(fields)};
  }

  NameId values_of(const KinetoFields& fields) {
    const bool needed = fields.name.find("convolution") != std::string_view::npos;
    return needed ? timeline_.names.intern(fields.values) : kNoName;
  }

  HostDetail host_detail(const KinetoFields& fields) {
    const CallTexts texts = {.shapes = timeline_.names.intern(fields.dimensions),
                             .types = timeline_.names.intern(fields.types),
                             .values = values_of(fields),
                             .stack = timeline_.names.intern(fields.stack),
                             .module = timeline_.names.intern(fields.module)};
    return {texts, integer_of(fields.sequence, -1), collective_row(fields)};
  }

  std::uint32_t collective_row(const KinetoFields& fields) {
    if (fields.collective.empty() && fields.payload_bytes.empty()) return kNone;
    std::string group(fields.group_name);
    if (!fields.group_ranks.empty()) group += ":" + std::string(fields.group_ranks);
    return timeline_.add_detail(CollectiveDetail{
        .name = timeline_.names.intern(fields.collective),
        .group = timeline_.names.intern(group),
        .dtype = timeline_.names.intern(fields.dtype),
        .elements_in = integer_of(fields.elements_in, -1),
        .elements_out = integer_of(fields.elements_out, -1),
        .bytes = integer_of(fields.payload_bytes, -1),
        .bucket = integer_of(fields.bucket, -1),
        .sequence = integer_of(fields.collective_sequence, -1),
        .group_size = static_cast<std::int32_t>(integer_of(fields.group_size, 0))});
  }

  // Of the instants only allocations are kept.
  void add_instant(const KinetoFields& fields) {
    if (fields.name != "[memory]") return;
    const EventTimes times = times_of(fields, EventShape::kInstant);
    if (times.fault) return skip(fields, *times.fault);
    constexpr std::int64_t kLargest = std::int64_t{1} << 50;
    const std::int64_t bytes = integer_of(fields.memory_bytes, 0);
    if (bytes > kLargest || bytes < -kLargest) return timeline_.skip("size out of range");
    Event event{.kind = Kind::kMemory, .name = fields.name, .start_ns = times.start_ns};
    event.track = tracks_.find(fields.process, fields.thread);
    const bool on_device = integer_of(fields.device_type, 0) != 0;
    timeline_.add(
        event, timeline_.add_detail(MemoryDetail{
                   .address = identifier_of(fields.address),
                   .bytes = bytes,
                   .allocated_bytes = integer_of(fields.allocated, -1),
                   .reserved_bytes = integer_of(fields.reserved, -1),
                   .device = on_device ? static_cast<int>(integer_of(fields.device_id, 0)) : -1}));
  }

  void add_counter(const KinetoFields& fields) {
    // Of a merged trace (counter_spans.hpp): the reading is of the end.
    const bool spans =
        fields.category == ranges::kSystemCategory && fields.duration.data() != nullptr;
    const EventTimes times = times_of(fields, spans ? EventShape::kSpan : EventShape::kInstant);
    if (times.fault) return skip(fields, *times.fault);
    const std::int64_t time_ns = times.start_ns + times.duration_ns;
    const NameId counter = timeline_.names.intern(fields.name);
    decoder_.visit_numbers([&](std::string_view series, double value) {
      timeline_.add_counter({counter, timeline_.names.intern(series), time_ns, value});
    });
  }

  void add_metadata(const KinetoFields& fields) {
    if (fields.name != "thread_name" || fields.label.empty()) return;
    timeline_.tracks()[tracks_.find(fields.process, fields.thread)].name = fields.label;
  }

  RankTimeline& timeline_;
  const std::uint64_t& events_;  // that were met, with the one at hand
  KinetoDecoder& decoder_;
  TrackCache tracks_;
  SenselessTimes senseless_{SenselessTimes::Unit::kEvent};
};

}  // namespace

KinetoFile read_kineto(const std::filesystem::path& path) {
  KinetoFile file;
  KinetoDecoder decoder;
  EventSorter sorter(file, decoder);
  KinetoFields fields;
  KinetoVisitor visitor;
  visitor.event = [&](std::string_view text) {
    ++file.events;
    const KinetoDecoder::Result result = decoder.decode(text, fields);
    if (result == KinetoDecoder::Result::kBroken) return file.timeline.skip("broken JSON");
    if (result == KinetoDecoder::Result::kRepaired)
      file.timeline.skip("text that is no UTF-8 or has control characters, repaired");
    sorter.add(fields);
  };
  visitor.metadata = [&](std::string_view key, std::string_view text) {
    file.has_rank = read_kineto_metadata(key, text, file.timeline.info) || file.has_rank;
  };
  visitor.skipped = [&](const std::string& reason) {
    ++file.events;
    file.timeline.skip(reason);
  };
  visit_kineto(path, visitor);
  file.warnings = sorter.warnings();
  if (const std::uint64_t dropped = file.timeline.info.dropped_samples)
    file.timeline.skip("sample of the system that found no room in the recorder", dropped);
  return file;
}

}  // namespace sidestream::trace
