// The store: all events of one rank and one window, one column a property.
//
// Times are those of the file. `base_ns` and a clock model turn them into the common clock; within
// one rank nothing needs it. Rows keep the order of the file. A detail exists only for the kinds
// that have one: `detail` is its row in the column of that kind's family. What many events have in
// common, texts and the shapes of launches, is kept once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profiling/trace/column.hpp"
#include "profiling/trace/distinct.hpp"
#include "profiling/trace/event.hpp"
#include "profiling/trace/narrow_column.hpp"

namespace sidestream::trace {

struct DeviceProperties {
  std::string name;
  std::int32_t sm_count = 0;
  std::int32_t compute_major = 0;
  std::int32_t compute_minor = 0;
  std::uint64_t memory_bytes = 0;
};

// What the run says about itself (profiling/ranges/trace_metadata.hpp); 0: it does not.
struct RunFigures {
  double flops_per_token = 0;
  double flops_per_token_palm = 0;
  double tokens_per_step = 0;
  double peak_flops_per_s = 0;
  double unprofiled_step_ms = 0;
  double unprofiled_step_deviation_ms = 0;
  double unprofiled_steps = 0;
  double unprofiled_data_wait_ms = 0;
  std::optional<bool> profiled = {};
  int merged_ranks = 0;  // in this one file; 0: it is of one rank
};

struct RankInfo {
  int rank = 0;
  int world_size = 0;             // 0: the file does not say
  std::string senseless_rank;     // what the file says instead of a rank, as JSON; empty: nothing
  std::string file;               // its name without folders: what reports show
  std::string path;               // as it was given: for reading it again
  std::string window;             // folder that tells windows of one run apart
  std::string backend;            // of the process group; empty: not said
  bool of_nsys = false;           // an export of Nsight Systems
  bool nameless_kernels = false;  // of which nobody can say whether they communicate
  // Add to a time of this file for nanoseconds since 1970; 0 when not known.
  std::int64_t base_ns = 0;
  std::string senseless_base;  // what the file says instead of such a time; empty: nothing
  std::map<int, DeviceProperties> devices = {};
  bool says_no_device = false;  // it lists the devices of its host, and there are none
  int cuda_driver = 0;          // newest version that the driver knows, 12090 for 12.9; 0: not said
  int cuda_runtime = 0;         // version that the program runs with
  RunFigures figures = {};
  // Of our recorder: ranges that found no room, the room in which they would have (0: not known),
  // and the time since 1970 from which on none is missing; nothing: not known.
  std::uint64_t dropped_ranges = 0;
  std::uint64_t dropped_samples = 0;  // of the system
  std::uint64_t record_ranges_needed = 0;
  std::optional<std::int64_t> complete_from_ns = {};
};

// A thread of a process, or a stream of a device.
struct Track {
  std::string process;
  std::string thread;
  std::string name;
};

class RankTimeline {
 public:
  RankInfo info;
  NameTable names;
  std::map<std::string, std::uint64_t> skipped;  // reason -> events

  void add(const Event& event, std::uint32_t detail = kNone) {
    kind_.push_back(event.kind);
    name_.push_back(names.intern(event.name));
    start_.push_back(event.start_ns);
    duration_.push_back(static_cast<std::uint64_t>(event.duration_ns));
    track_.push_back(event.track);
    detail_.push_back(detail);
  }
  std::uint32_t add_detail(const DeviceDetail& detail) {
    launched_by_.push_back(detail.correlation);
    return append(device_, {shapes_.intern(detail), detail.collective});
  }
  std::uint32_t add_detail(const HostDetail& detail) {
    return append(host_, {detail.sequence, texts_.intern(detail), detail.collective});
  }
  // Sizes that no buffer and no job has (negative, a pebibyte and more) are not known.
  std::uint32_t add_detail(const CollectiveDetail& detail);
  std::uint32_t add_detail(const MemoryDetail& detail) { return append(memory_, detail); }
  // Of a kernel that the file says nothing about.
  void add_collective(std::size_t kernel_row, const CollectiveDetail& detail);
  std::uint32_t add_correlation(std::uint64_t correlation) {
    correlation_.push_back(correlation);
    return static_cast<std::uint32_t>(correlation_.size() - 1);
  }

  void add_counter(const CounterReading& reading) { counters_.push_back(reading); }
  const Column<CounterReading>& counters() const noexcept { return counters_; }

  // Number of the track with these texts, made when it is new.
  std::uint32_t track(std::string_view process, std::string_view thread);
  std::vector<Track>& tracks() noexcept { return tracks_; }
  const std::vector<Track>& tracks() const noexcept { return tracks_; }

  std::size_t size() const noexcept { return kind_.size(); }
  Kind kind(std::size_t row) const { return kind_[row]; }
  NameId name_id(std::size_t row) const { return name_[row]; }
  std::string_view name(std::size_t row) const { return names[name_[row]]; }
  std::int64_t start_ns(std::size_t row) const { return start_[row]; }
  std::int64_t duration_ns(std::size_t row) const {
    return static_cast<std::int64_t>(duration_[row]);
  }
  std::int64_t end_ns(std::size_t row) const { return start_[row] + duration_ns(row); }
  std::uint32_t track_of(std::size_t row) const { return track_[row]; }
  // Empty, or null, when the row has none. Pointers are good until something is added.
  std::optional<DeviceDetail> device(std::size_t row) const;
  std::optional<HostDetail> host(std::size_t row) const;
  const MemoryDetail* memory(std::size_t row) const;
  const CollectiveDetail* collective(std::size_t row) const;
  // The number that ties a runtime call to what it launched; 0: none.
  std::uint64_t correlation(std::size_t row) const;

  void skip(const std::string& reason, std::uint64_t count = 1) { skipped[reason] += count; }

 private:
  struct DeviceRow {
    std::uint32_t shape;
    std::uint32_t collective;
  };
  struct HostRow {
    std::int64_t sequence;
    std::uint32_t texts;
    std::uint32_t collective;
  };

  template <typename T>
  static std::uint32_t append(Column<T>& column, const std::type_identity_t<T>& value) {
    column.push_back(value);
    return static_cast<std::uint32_t>(column.size() - 1);
  }

  Column<Kind> kind_;
  NarrowColumn<NameId> name_;
  Column<std::int64_t> start_;
  NarrowColumn<std::uint64_t> duration_;
  NarrowColumn<std::uint32_t> track_;
  Column<std::uint32_t> detail_;
  Column<DeviceRow> device_;
  NarrowColumn<std::uint64_t> launched_by_;  // correlations, row for row with device_
  Distinct<LaunchShape> shapes_;
  Column<HostRow> host_;
  Distinct<CallTexts> texts_;
  Column<CollectiveDetail> collective_;
  Column<MemoryDetail> memory_;
  NarrowColumn<std::uint64_t> correlation_;
  Column<CounterReading> counters_;
  std::vector<Track> tracks_;
  std::unordered_map<std::string, std::uint32_t> track_of_key_;
};

}  // namespace sidestream::trace
