#include "profiling/trace/merge.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "profiling/ranges/trace_metadata.hpp"
#include "profiling/trace/byte_sink.hpp"
#include "profiling/trace/decimal.hpp"
#include "profiling/trace/event_list.hpp"
#include "profiling/trace/event_rewriter.hpp"
#include "profiling/trace/kineto_fields.hpp"
#include "profiling/trace/kineto_stream.hpp"
#include "profiling/trace/merge_names.hpp"
#include "profiling/trace/merge_store.hpp"
#include "profiling/trace/trace_files.hpp"

namespace sidestream::trace {
namespace {

// Times of one timeline on the clock of the output.
struct OutputClock {
  RankClock clock;
  std::int64_t base_ns = 0;
  std::int64_t origin_ns = 0;

  std::int64_t operator()(std::int64_t time_ns) const {
    return clock.to_common(time_ns + base_ns) - origin_ns;
  }
};

class KinetoPass {
 public:
  KinetoPass(EventList& events, MergeNames& names, const OutputClock& clock, const MergeCut& cut)
      : events_(events), names_(names), clock_(clock), cut_(cut) {}

  void add(std::string_view text) {
    if (decoder_.decode(text, fields_) == KinetoDecoder::Result::kBroken) return;
    if (fields_.phase == "M") return add_metadata();
    const auto start = nanoseconds_of_microseconds(fields_.time);
    const auto duration = nanoseconds_of_microseconds(fields_.duration).value_or(0);
    if (!start || duration < 0 || *start > cut_.last_ns || *start + duration < cut_.first_ns)
      return;
    const std::int64_t time_ns = clock_(*start);
    if (time_ns < 0) return;  // the profiler's own spans begin before the first event of the run
    rewriter_.begin(decoder_.parsed_text());
    rewriter_.replace(fields_.time, microseconds_text(time_ns));
    rewriter_.replace(fields_.process, std::to_string(names_.process()));
    if (fields_.thread.data() != nullptr)
      rewriter_.replace(fields_.thread,
                        std::to_string(names_.thread(fields_.process, fields_.thread)));
    rewriter_.replace(fields_.id, std::to_string(names_.arrow(fields_.id)));
    event_.clear();
    rewriter_.write_to(event_);
    const bool arrow = fields_.phase == "s" || fields_.phase == "f";
    if (arrow) return add_arrow_end();
    events_.add(event_);
  }

 private:
  // Only arrows with both ends: profilers leave halves behind, and a cut makes more of them.
  void add_arrow_end() {
    const std::string key = std::string(fields_.category) + ' ' + std::string(fields_.id);
    const auto [other, is_first] = open_arrows_.try_emplace(key, fields_.phase, event_);
    if (is_first || other->second.first == fields_.phase) return;
    events_.add(other->second.second);
    events_.add(event_);
    open_arrows_.erase(other);
  }

  void add_metadata() {
    if (fields_.name == "thread_name" && !fields_.label.empty())
      names_.name_thread(fields_.process, fields_.thread, fields_.label);
  }

  EventList& events_;
  MergeNames& names_;
  OutputClock clock_;
  MergeCut cut_;
  KinetoDecoder decoder_;
  KinetoFields fields_;
  EventRewriter rewriter_;
  std::string event_;
  std::unordered_map<std::string, std::pair<std::string, std::string>>
      open_arrows_;  // phase, event
};

std::int64_t first_start(const TraceSet& set, const std::vector<MergeCut>& cuts) {
  std::int64_t first = INT64_MAX;
  for (std::size_t i = 0; i < set.timelines.size(); ++i) {
    const RankTimeline& timeline = set.timelines[i];
    if (cuts[i].leave_out) continue;
    const OutputClock clock{set.clock.of(timeline.info.rank), timeline.info.base_ns, 0};
    for (std::size_t row = 0; row < timeline.size(); ++row) {
      if (timeline.end_ns(row) >= cuts[i].first_ns && timeline.start_ns(row) <= cuts[i].last_ns)
        first = std::min(first, clock(timeline.start_ns(row)));
    }
  }
  return first == INT64_MAX ? 0 : first;
}

std::string clock_text(const TraceSet& set) {
  std::string text = "\"clock\":{\"method\":\"" + set.clock.method + "\",\"offset_us\":{";
  std::string offsets, drifts;
  for (const int rank : set.ranks()) {
    const RankClock clock = set.clock.of(rank);
    const std::string key = (offsets.empty() ? "\"" : ",\"") + std::to_string(rank) + "\":";
    offsets += key + microseconds_text(clock.offset_ns);
    drifts += key + std::to_string(clock.drift_ppm);
  }
  text += offsets + "},\"drift_ppm\":{" + drifts + "}";
  if (set.clock.has_residual) {
    text += ",\"residual_us_p50\":" + std::to_string(set.clock.residual_us_p50);
    text += ",\"residual_us_p95\":" + std::to_string(set.clock.residual_us_p95);
  }
  return text + "}";
}

// Tells our own readers what this file is.
std::string own_object(const TraceSet& set, const std::vector<MergeCut>& cuts) {
  std::set<int> ranks;
  for (std::size_t i = 0; i < set.timelines.size(); ++i) {
    if (!cuts[i].leave_out) ranks.insert(set.timelines[i].info.rank);
  }
  std::string text = "\"";
  text += ranges::kMetadataObject;
  text += "\":{\"";
  text += ranges::kMergedRanks;
  return text + "\":" + std::to_string(ranks.size()) + "}";
}

void merge_one(const RankTimeline& timeline, const OutputClock& clock, const MergeCut& cut,
               MergeNames& names, EventList& events) {
  const bool kineto = find_traces({timeline.info.path}).front().kind == FileKind::kKineto;
  if (!kineto) {
    StoreWriter writer(timeline, names, cut);
    for (std::size_t row = 0; row < timeline.size(); ++row) {
      if (timeline.end_ns(row) < cut.first_ns || timeline.start_ns(row) > cut.last_ns) continue;
      for (const std::string& event : writer.events_of(row, clock(timeline.start_ns(row))))
        events.add(event);
    }
    return;
  }
  KinetoPass pass(events, names, clock, cut);
  visit_kineto(timeline.info.path, {.event = [&](std::string_view text) { pass.add(text); },
                                    .metadata = [](std::string_view, std::string_view) {},
                                    .skipped = [](const std::string&) {}});
}

}  // namespace

MergeResult merge_traces(const TraceSet& set, const std::vector<MergeCut>& cuts,
                         const std::filesystem::path& output) {
  ByteSink sink(output);
  const std::int64_t origin_ns = first_start(set, cuts);
  sink.write("{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":" +
             std::to_string(origin_ns) + "," + clock_text(set) + "," + own_object(set, cuts) +
             ",\"traceEvents\":[");
  EventList events(sink);
  std::map<int, MergeNames> names;
  const std::vector<int> ranks = set.ranks();
  for (std::size_t i = 0; i < set.timelines.size(); ++i) {
    if (cuts[i].leave_out) continue;
    const RankTimeline& timeline = set.timelines[i];
    const int rank = timeline.info.rank;
    const auto place =
        static_cast<int>(std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin());
    MergeNames& of_rank =
        names.try_emplace(rank, rank, place, static_cast<int>(set.timelines.size())).first->second;
    of_rank.begin_file(static_cast<int>(i));
    merge_one(timeline, {set.clock.of(rank), timeline.info.base_ns, origin_ns}, cuts[i], of_rank,
              events);
  }
  for (const auto& [rank, of_rank] : names)
    of_rank.write([&](const std::string& event) { events.add(event); });
  events.flush();
  sink.write("\n]}\n");
  sink.finish();
  return {events.count(), static_cast<int>(names.size())};
}

}  // namespace sidestream::trace
