#include "profiling/trace/merge.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "profiling/ranges/system_counters.hpp"
#include "profiling/trace/byte_sink.hpp"
#include "profiling/trace/counter_spans.hpp"
#include "profiling/trace/crossing_events.hpp"
#include "profiling/trace/event_list.hpp"
#include "profiling/trace/event_rewriter.hpp"
#include "profiling/trace/event_times.hpp"
#include "profiling/trace/kineto_fields.hpp"
#include "profiling/trace/kineto_stream.hpp"
#include "profiling/trace/merge_metadata.hpp"
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
  KinetoPass(const RankTimeline& timeline, EventList& events, MergeNames& names,
             const OutputClock& clock, const MergeCut& cut, MergeLosses& losses)
      : crossing_(timeline),
        events_(events),
        names_(names),
        clock_(clock),
        cut_(cut),
        losses_(losses) {}

  void add(std::string_view text) {
    if (decoder_.decode(text, fields_) == KinetoDecoder::Result::kBroken) return add_unreadable();
    if (fields_.phase == "M") return add_metadata();
    const auto shape =
        fields_.duration.data() == nullptr ? EventShape::kInstant : EventShape::kSpan;
    const EventTimes times = times_of(fields_, shape);
    if (times.fault) {
      if (!times.fault->is_absence()) ++losses_.bad_times;
      return;
    }
    const std::int64_t start = times.start_ns, duration = times.duration_ns, end = start + duration;
    const bool sample = fields_.phase == "C" && fields_.category == ranges::kSystemCategory;
    const bool rate = sample && is_rate(fields_.name);
    // A length is of a merged trace: it stands where it should.
    const std::int64_t begin =
        rate && shape == EventShape::kInstant ? spans_.begin_of(fields_.name, end) : start;
    if (start > cut_.last_ns || end < cut_.first_ns) return;
    if (clock_(sample ? end : start) < 0) return add_too_early();
    rewriter_.begin(decoder_.parsed_text());
    replace_times(std::max<std::int64_t>(clock_(begin), 0), clock_(end), rate);
    rewriter_.replace(fields_.process, std::to_string(names_.process()));
    const bool arrow = fields_.phase == "s" || fields_.phase == "f";
    const CrossingEvents::Place place{fields_.process, fields_.thread};
    const int lane = arrow                  ? crossing_.lane_of_arrow(place, start)
                     : fields_.phase == "X" ? crossing_.lane(place, start, duration)
                                            : 0;
    if (fields_.thread.data() != nullptr)
      rewriter_.replace(fields_.thread,
                        std::to_string(names_.thread(fields_.process, fields_.thread, lane)));
    rewriter_.replace(fields_.id, std::to_string(names_.arrow(fields_.id)));
    event_.clear();
    rewriter_.write_to(event_);
    if (arrow) return add_arrow_end();
    events_.add(event_);
  }

  void add_unreadable() { ++losses_.unreadable; }

 private:
  // Both ends went through the clock: what was nested stays nested.
  void replace_times(std::int64_t start_ns, std::int64_t end_ns, bool needs_length) {
    const std::string length = microseconds_text(end_ns - start_ns);
    const bool added = needs_length && fields_.duration.data() == nullptr;
    rewriter_.replace(fields_.time,
                      microseconds_text(start_ns) + (added ? ",\"dur\":" + length : ""));
    rewriter_.replace(fields_.duration, length);
  }

  // The marks that a profiler sets for itself begin before the first event of the run, in every
  // file.
  void add_too_early() {
    const bool mark = fields_.category == "Trace" || fields_.name.starts_with("Iteration Start");
    if (!mark) ++losses_.too_early;
  }

  // Only arrows with both ends: profilers leave halves behind, and a cut makes more of them. One
  // call may have launched several kernels: its end stays for all of theirs, whichever comes first.
  void add_arrow_end() {
    const bool begins = fields_.phase == "s";
    const std::size_t key =
        std::hash<std::string>()(std::string(fields_.category) + ' ' + std::string(fields_.id));
    const auto [place, is_new] = open_arrows_.try_emplace(key);
    std::unique_ptr<WaitingArrow>& waiting = place->second;
    if (!is_new && !waiting && !begins) return events_.add(event_);
    if (!waiting) waiting = std::make_unique<WaitingArrow>();
    if (begins) {
      waiting->begin = event_;
    } else {
      waiting->ends.push_back(event_);
    }
    if (waiting->begin.empty() || waiting->ends.empty()) return;
    events_.add(waiting->begin);
    for (const std::string& end : waiting->ends) events_.add(end);
    waiting.reset();
  }

  void add_metadata() {
    if (fields_.name == "thread_name" && !fields_.label.empty())
      names_.name_thread(fields_.process, fields_.thread, fields_.label);
  }

  CrossingEvents crossing_;
  CounterSpans spans_;
  EventList& events_;
  MergeNames& names_;
  OutputClock clock_;
  MergeCut cut_;
  MergeLosses& losses_;
  KinetoDecoder decoder_;
  KinetoFields fields_;
  EventRewriter rewriter_;
  std::string event_;
  struct WaitingArrow {
    std::string begin;
    std::vector<std::string> ends;
  };
  // By category and id, of which a trace has millions; null: the begin is written, and more ends
  // may come.
  std::unordered_map<std::size_t, std::unique_ptr<WaitingArrow>> open_arrows_;
};

// Where the events go, for as long as nobody asks to stop.
struct MergeOutput {
  EventList& events;
  MergeLosses& losses;
  const StopRequested& stop_requested;

  void stop_if_asked() const {
    if (stop_requested && stop_requested())
      throw core::Error("merge: stopped as asked; nothing was left behind");
  }
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

// Of a timeline that has no JSON of its own.
void merge_store(const RankTimeline& timeline, const OutputClock& clock, const MergeCut& cut,
                 MergeNames& names, const MergeOutput& output) {
  StoreWriter writer(timeline, names, cut);
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    output.stop_if_asked();
    if (!cut.touches(timeline.start_ns(row), timeline.end_ns(row))) continue;
    for (const std::string& event :
         writer.events_of(row, clock(timeline.start_ns(row)), clock(timeline.end_ns(row))))
      output.events.add(event);
  }
  CounterSpans spans;
  for (std::size_t first = 0, end = 0; first < timeline.counters().size(); first = end) {
    const CounterReading one = timeline.counters()[first];
    const std::int64_t at_ns = one.time_ns, time_ns = clock(at_ns);
    const std::int64_t begin_ns = clock(spans.begin_of(timeline.names[one.counter], at_ns));
    const std::string event =
        writer.counter_event(first, end, std::max<std::int64_t>(begin_ns, 0), time_ns);
    output.stop_if_asked();
    if (!cut.touches(at_ns, at_ns)) continue;
    if (time_ns < 0)
      ++output.losses.too_early;
    else
      output.events.add(event);
  }
}

void merge_one(const RankTimeline& timeline, const OutputClock& clock, const MergeCut& cut,
               MergeNames& names, const MergeOutput& output) {
  const bool kineto = find_traces({timeline.info.path}).front().kind == FileKind::kKineto;
  if (!kineto) return merge_store(timeline, clock, cut, names, output);
  KinetoPass pass(timeline, output.events, names, clock, cut, output.losses);
  visit_kineto(timeline.info.path, {.event =
                                        [&](std::string_view text) {
                                          output.stop_if_asked();
                                          pass.add(text);
                                        },
                                    .metadata = [](std::string_view, std::string_view) {},
                                    .skipped = [&](const std::string&) { pass.add_unreadable(); }});
}

}  // namespace

MergeResult merge_traces(const TraceSet& set, const std::vector<MergeCut>& cuts,
                         const std::filesystem::path& output, const StopRequested& stop_requested) {
  ByteSink sink(output);
  const std::int64_t origin_ns = first_start(set, cuts);
  sink.write("{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":" +
             std::to_string(origin_ns) + "," + merge_metadata(set, cuts) + ",\"traceEvents\":[");
  EventList events(sink);
  std::map<int, MergeNames> names;
  MergeLosses losses;
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
              {events, losses, stop_requested});
  }
  for (const auto& [rank, of_rank] : names)
    of_rank.write([&](const std::string& event) { events.add(event); });
  events.flush();
  sink.write("\n]}\n");
  sink.finish();
  return {events.count(), losses, static_cast<int>(names.size())};
}

}  // namespace sidestream::trace
