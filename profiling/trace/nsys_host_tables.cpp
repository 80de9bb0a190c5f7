#include "profiling/trace/nsys_host_tables.hpp"

#include <string>
#include <string_view>
#include <vector>

#include "profiling/trace/decimal.hpp"

namespace sidestream::trace {
namespace {

// Types of NVTX_EVENTS rows.
constexpr int kThreadName = 39;
constexpr int kPushPopRange = 59;
constexpr int kStartEndRange = 60;

struct HostRow {
  Kind kind = Kind::kOther;
  std::string_view name;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t global_tid = 0;
  std::uint64_t correlation = 0;
};

// Rows of one thread follow each other: the track is looked up when the thread changes.
struct LastThread {
  std::int64_t global_tid = -1;
  std::vector<std::uint32_t> tracks;  // one for each timeline of the process
};

void find_tracks(std::int64_t global_tid, NsysProcesses& processes, LastThread& last) {
  const std::uint32_t process = NsysProcesses::process_of(global_tid);
  last = {global_tid, {}};
  for (const std::size_t index : processes.of_process(process))
    last.tracks.push_back(processes[index].track(
        std::to_string(process), std::to_string(NsysProcesses::thread_of(global_tid))));
}

// A process that drives several devices shows its host events on each of them.
void add_row(const HostRow& row, NsysProcesses& processes, LastThread& last) {
  if (row.global_tid != last.global_tid) find_tracks(row.global_tid, processes, last);
  std::size_t place = 0;
  for (const std::size_t index : processes.of_process(NsysProcesses::process_of(row.global_tid))) {
    const std::uint32_t track = last.tracks[place++];
    RankTimeline& timeline = processes[index];
    if (row.end_ns < row.start_ns) {
      timeline.skip("negative duration");
      continue;
    }
    const Event event{.kind = row.kind,
                      .name = row.name,
                      .start_ns = row.start_ns,
                      .duration_ns = row.end_ns - row.start_ns,
                      .track = track};
    timeline.add(event,
                 row.kind == Kind::kRuntime ? timeline.add_correlation(row.correlation) : kNone);
  }
}

std::uint64_t read_runtime(const SqliteFile& file, NsysStrings& strings, NsysProcesses& processes) {
  constexpr const char* kTable = "CUPTI_ACTIVITY_KIND_RUNTIME";
  if (!file.has(kTable)) return 0;
  const auto columns = file.columns(kTable);
  SqliteRows rows =
      file.query("SELECT start, end, globalTid, nameId, " +
                 SqliteFile::first_of(columns, {"correlationId"}) + " FROM " + kTable);
  std::uint64_t count = 0;
  LastThread last;
  for (; rows.next(); ++count) {
    add_row({Kind::kRuntime, strings[rows.integer(3)], rows.integer(0), rows.integer(1),
             rows.integer(2), static_cast<std::uint64_t>(rows.integer(4))},
            processes, last);
  }
  return count;
}

std::uint64_t read_ranges(const SqliteFile& file, NsysStrings& strings, NsysProcesses& processes) {
  if (!file.has("NVTX_EVENTS")) return 0;
  const auto columns = file.columns("NVTX_EVENTS");
  const std::string text_id = SqliteFile::first_of(columns, {"textId"});
  SqliteRows rows =
      file.query("SELECT start, end, globalTid, " + SqliteFile::first_of(columns, {"text"}) + ", " +
                 text_id + " FROM NVTX_EVENTS WHERE eventType IN (" +
                 std::to_string(kPushPopRange) + "," + std::to_string(kStartEndRange) + ")");
  std::uint64_t count = 0;
  LastThread last;
  for (; rows.next(); ++count) {
    if (rows.is_null(1)) {
      const auto& of_process = processes.of_process(NsysProcesses::process_of(rows.integer(2)));
      processes[of_process.front()].skip("range without an end");
      continue;
    }
    const std::string_view name = rows.is_null(4) ? rows.text(3) : strings[rows.integer(4)];
    add_row({Kind::kHostRange, name, rows.integer(0), rows.integer(1), rows.integer(2)}, processes,
            last);
  }
  return count;
}

bool is_lock_call(std::string_view name) {
  return name.find("mutex") != std::string_view::npos ||
         name.find("rwlock") != std::string_view::npos ||
         name.find("futex") != std::string_view::npos;
}

std::uint64_t read_locks(const SqliteFile& file, NsysStrings& strings, NsysProcesses& processes) {
  if (!file.has("OSRT_API")) return 0;
  std::string ids;
  for (const std::int64_t id :
       strings.ids_where([](const std::string& text) { return is_lock_call(text); }))
    ids += (ids.empty() ? "" : ",") + std::to_string(id);
  if (ids.empty()) return 0;
  SqliteRows rows = file.query(
      "SELECT start, end, globalTid, nameId FROM OSRT_API WHERE nameId IN (" + ids + ")");
  std::uint64_t count = 0;
  LastThread last;
  for (; rows.next(); ++count) {
    add_row(
        {Kind::kLock, strings[rows.integer(3)], rows.integer(0), rows.integer(1), rows.integer(2)},
        processes, last);
  }
  return count;
}

}  // namespace

std::uint64_t read_host_tables(const SqliteFile& file, NsysStrings& strings,
                               NsysProcesses& processes) {
  return read_runtime(file, strings, processes) + read_ranges(file, strings, processes) +
         read_locks(file, strings, processes);
}

std::map<std::uint32_t, int> mpi_ranks_of(const SqliteFile& file, NsysStrings& strings) {
  constexpr std::string_view kPrefix = "MPI Rank ";
  std::map<std::uint32_t, int> ranks;
  if (!file.has("NVTX_EVENTS")) return ranks;
  const auto columns = file.columns("NVTX_EVENTS");
  SqliteRows rows =
      file.query("SELECT globalTid, " + SqliteFile::first_of(columns, {"text"}) + ", " +
                 SqliteFile::first_of(columns, {"textId"}) +
                 " FROM NVTX_EVENTS WHERE eventType = " + std::to_string(kThreadName));
  while (rows.next()) {
    const std::string_view text = rows.is_null(2) ? rows.text(1) : strings[rows.integer(2)];
    if (!text.starts_with(kPrefix)) continue;
    const std::int64_t rank = integer_of(text.substr(kPrefix.size()), -1);
    if (rank >= 0) ranks[NsysProcesses::process_of(rows.integer(0))] = static_cast<int>(rank);
  }
  return ranks;
}

}  // namespace sidestream::trace
