#include "launch/recording/window_file.hpp"

#include <fmt/format.h>

#include <array>
#include <map>
#include <set>

#include "launch/recording/json_text.hpp"
#include "launch/recording/operator_modules.hpp"
#include "profiling/ranges/trace_metadata.hpp"
#include "profiling/trace/decimal.hpp"
#include "profiling/trace/event_list.hpp"
#include "profiling/trace/event_rewriter.hpp"
#include "profiling/trace/kineto_fields.hpp"
#include "profiling/trace/kineto_stream.hpp"

namespace sidestream::launch {
namespace {

// Of Kineto's own keys these go into the file. All else stays out: its name of the file is a path
// of this machine, and without a GPU it reports an error that is none.
constexpr std::array<std::string_view, 8> kKeptKeys = {
    "schemaVersion",       "deviceProperties",    "displayTimeUnit", "cuda_runtime_version",
    "cuda_driver_version", "baseTimeNanoseconds", "cupti_version",   "hip_runtime_version"};

OperatorPlace place_of(const trace::KinetoFields& fields) {
  const std::int64_t start = trace::nanoseconds_of_microseconds(fields.time).value_or(0);
  return {.thread_id = trace::integer_of(fields.thread, -1),
          .start_ns = start,
          .end_ns = start + trace::nanoseconds_of_microseconds(fields.duration).value_or(0),
          .sequence = trace::integer_of(fields.sequence, -1),
          .is_backward = fields.name.starts_with("autograd::engine::evaluate_function")};
}

class WindowWriter {
 public:
  WindowWriter(const WindowParts& parts, const TraceOrigin& origin)
      : parts_(parts), origin_(origin), modules_(parts.modules) {}

  WrittenWindow write(const std::filesystem::path& file) {
    look_through();
    const TraceClock clock{record::WallClock(parts_.recording.begin, parts_.recording.end),
                           trace::integer_of(metadata_["baseTimeNanoseconds"], 0)};
    if (parts_.modules != "off") add_layers(clock);
    trace::ByteSink sink(file);
    sink.write(head());
    trace::EventList events(sink);
    const TakeEvent take = [&](std::string_view event) { events.add(event); };
    pass_through(take);
    write_thread_names(without_known_threads(), origin_, take);
    write_recorded_ranges(parts_.recording, parts_.names, clock, origin_, StepRanges::kLeftOut,
                          take);
    write_counters(parts_.samples.kept, clock, origin_, take);
    take(fmt::format(
        R"({{"ph":"M","name":"process_labels","pid":{},"tid":0,"ts":0,"args":{{"labels":"rank {}"}}}})",
        origin_.process_id, origin_.rank));
    events.flush();
    sink.write("\n]}\n");
    sink.finish();
    return {.any_layer = modules_.any_layer(), .other_layer = modules_.other_layer()};
  }

 private:
  // What has to be known before the first event is written.
  void look_through() {
    trace::visit_kineto(
        parts_.raw_file,
        {.event =
             [this](std::string_view text) {
               if (!decode(text)) return;
               if (fields_.phase == "X" && fields_.category == "cpu_op")
                 modules_.note(place_of(fields_));
               if (fields_.phase == "M" && fields_.name == "thread_name")
                 named_threads_.insert(trace::integer_of(fields_.thread, -1));
             },
         .metadata = [this](std::string_view key,
                            std::string_view text) { metadata_.emplace(key, text); },
         .skipped = [](const std::string&) {}});
  }

  // Times of layers become those of the file: nanoseconds since its base.
  void add_layers(const TraceClock& clock) {
    const auto in_file = [&](std::int64_t monotonic_ns) {
      return clock.wall.realtime_ns(monotonic_ns) - clock.base_ns;
    };
    for (const record::ThreadRanges& thread : parts_.recording.threads) {
      for (const record::RangeRecord& range : thread.ranges) {
        if (record::is_step(range.name) || record::is_phase(range.name)) continue;
        modules_.add_layer(thread.thread_id, in_file(range.start_ns), in_file(range.end_ns),
                           parts_.names.text(range.name));
      }
    }
  }

  std::string head() const {
    std::string text = "{";
    for (const std::string_view key : kKeptKeys) {
      const auto found = metadata_.find(std::string(key));
      if (found != metadata_.end()) text += fmt::format("{}:{},", json_text(key), found->second);
    }
    text += "\"distributedInfo\":" + distributed_info_text(origin_);
    text += fmt::format(",{}:{}", json_text(ranges::kMetadataObject),
                        metadata_text(parts_.recording, parts_.samples.dropped, parts_.figures));
    return text + ",\"traceEvents\":[";
  }

  void pass_through(const TakeEvent& take) {
    trace::visit_kineto(parts_.raw_file, {.event =
                                              [&](std::string_view text) {
                                                if (decode(text)) take(completed());
                                              },
                                          .metadata = [](std::string_view, std::string_view) {},
                                          .skipped = [](const std::string&) {}});
  }

  bool decode(std::string_view text) {
    return decoder_.decode(text, fields_) != trace::KinetoDecoder::Result::kBroken;
  }

  // The event as it stands, with what the profiler left out.
  std::string_view completed() {
    rewriter_.begin(decoder_.parsed_text());
    event_.clear();
    rewriter_.write_to(event_);
    if (fields_.phase != "X" || fields_.category != "cpu_op") return event_;
    const std::string more = further_arguments();
    constexpr std::string_view kArguments = "\"args\": {";
    const std::size_t at = event_.rfind(kArguments);
    if (!more.empty() && at != std::string::npos) event_.insert(at + kArguments.size(), more);
    return event_;
  }

  std::string further_arguments() {
    std::string text;
    const auto id = static_cast<std::uint64_t>(trace::integer_of(fields_.external_id, 0));
    if (const auto notes = parts_.notes.find(id); notes != parts_.notes.end()) {
      if (notes->second.flops > 0) text += fmt::format("\"flops\":{},", notes->second.flops);
      if (!notes->second.stack.empty())
        text += "\"Call stack\":" + json_text(notes->second.stack) + ",";
    }
    if (parts_.modules == "off") return text;
    const std::string_view module = modules_.module_of(place_of(fields_));
    if (!module.empty()) text += "\"Module Hierarchy\":" + json_text(module) + ",";
    return text;
  }

  record::Recording without_known_threads() const {
    record::Recording rest = parts_.recording;
    std::erase_if(rest.threads, [this](const record::ThreadRanges& thread) {
      return named_threads_.contains(thread.thread_id);
    });
    return rest;
  }

  const WindowParts& parts_;
  const TraceOrigin& origin_;
  std::map<std::string, std::string> metadata_;
  std::set<std::int64_t> named_threads_;
  OperatorModules modules_;
  trace::KinetoDecoder decoder_;
  trace::KinetoFields fields_;
  trace::EventRewriter rewriter_;
  std::string event_;
};

}  // namespace

WrittenWindow write_window(const WindowParts& parts, const TraceOrigin& origin,
                           const std::filesystem::path& file) {
  return WindowWriter(parts, origin).write(file);
}

}  // namespace sidestream::launch
