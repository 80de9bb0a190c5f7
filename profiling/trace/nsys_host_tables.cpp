#include "profiling/trace/nsys_host_tables.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiling/ranges/phase_named.hpp"
#include "profiling/trace/decimal.hpp"
#include "profiling/trace/free_lane.hpp"
#include "profiling/trace/most_ranks.hpp"
#include "profiling/trace/nsys_columns.hpp"
#include "profiling/trace/nsys_host_rows.hpp"
#include "profiling/trace/nsys_payloads.hpp"
#include "profiling/trace/nsys_times.hpp"
#include "profiling/trace/utf8_repair.hpp"

namespace sidestream::trace {
namespace {

// Types of NVTX_EVENTS rows.
constexpr int kThreadName = 39;
constexpr int kPushPopRange = 59;
constexpr int kStartEndRange = 60;

constexpr NsysColumns kCallColumns = {"start", "end", "globalTid", "nameId"};
constexpr NsysColumns kRangeColumns = {"start", "end", "globalTid", "eventType"};

void add_timed(NsysHostRows& host, const char* table, HostRow row, const NsysTimes& times) {
  if (times.fault) return host.leave_out(row, *times.fault, table);
  row.start_ns = times.start_ns;
  row.duration_ns = times.duration_ns;
  host.add(std::move(row));
}

bool any_with_several_devices(const NsysProcesses& processes) {
  std::set<std::uint32_t> seen;
  for (const NsysProcesses::Device& one : processes.devices()) {
    if (!seen.insert(one.process).second) return true;
  }
  return false;
}

// Rows of a table have no order: who needs one asks for it, and what it costs.
enum class RowOrder { kAny, kByStart };

std::uint64_t read_runtime(const SqliteFile& file, RowOrder order, NsysStrings& strings,
                           NsysHostRows& host) {
  constexpr const char* kTable = "CUPTI_ACTIVITY_KIND_RUNTIME";
  if (!file.has(kTable)) return 0;
  const auto columns = file.columns(kTable);
  if (!has_all(columns, kCallColumns)) return 0;
  SqliteRows rows = file.query("SELECT start, end, globalTid, nameId, " +
                               SqliteFile::first_of(columns, {"correlationId"}) + " FROM " +
                               kTable + (order == RowOrder::kByStart ? " ORDER BY start" : ""));
  std::uint64_t count = 0;
  for (; rows.next(); ++count)
    add_timed(host, kTable,
              {.kind = Kind::kRuntime,
               .name = strings[rows.integer(3)],
               .global_tid = rows.integer(2),
               .correlation = static_cast<std::uint64_t>(rows.integer(4))},
              nsys_times_of(rows, 0, 1));
  return count;
}

// Ranges in flight at the same time: each gets the first lane that is free. To be asked in the
// order of their start.
class Lanes {
 public:
  int take(std::uint32_t process, const NsysTimes& times) {
    std::vector<std::int64_t>& busy_until = lanes_[process];
    const std::size_t lane =
        take_lane(busy_until, times.start_ns, times.start_ns + times.duration_ns);
    if (busy_until.size() > kMost) busy_until.pop_back();
    return static_cast<int>(std::min(lane + 1, kMost));
  }

 private:
  static constexpr std::size_t kMost = 64;

  std::map<std::uint32_t, std::vector<std::int64_t>> lanes_;
};

// Names of StringIds are repaired once; those that stand in a row nearly always need it not.
std::string_view valid_name(std::string_view text, std::string& repaired) {
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char one) { return one >= ' ' && one <= '~'; });
  if (plain) return text;
  return repaired = with_valid_utf8(text);
}

// Ranges that are pushed and popped nest on their thread. Those with a start and an end may end on
// another one, overlap each other, and say nothing about what the thread did meanwhile.
std::uint64_t read_ranges(const SqliteFile& file, int type, NsysStrings& strings,
                          NsysHostRows& host) {
  constexpr const char* kTable = "NVTX_EVENTS";
  if (!file.has(kTable)) return 0;
  const auto columns = file.columns(kTable);
  if (!has_all(columns, kRangeColumns)) return 0;
  const std::string text_id = SqliteFile::first_of(columns, {"textId"});
  SqliteRows rows =
      file.query("SELECT start, end, globalTid, " + SqliteFile::first_of(columns, {"text"}) + ", " +
                 text_id + ", " + NsysPayloads::columns_of(columns) + " FROM " + kTable +
                 " WHERE eventType = " + std::to_string(type) +
                 (type == kStartEndRange ? " ORDER BY start" : ""));
  constexpr int kFirstPayloadColumn = 5;
  std::uint64_t count = 0;
  Lanes lanes;
  std::string repaired;
  const NsysPayloads payloads(file, strings);
  for (; rows.next(); ++count) {
    HostRow row{
        .kind = Kind::kHostRange,
        .name = rows.is_null(4) ? valid_name(rows.text(3), repaired) : strings[rows.integer(4)],
        .global_tid = rows.integer(2)};
    const NsysTimes times = nsys_times_of(rows, 0, 1);
    if (ranges::is_collective_name(row.name)) row.payload = payloads.of(rows, kFirstPayloadColumn);
    if (type == kStartEndRange && !times.fault)
      row.lane = lanes.take(NsysProcesses::process_of(row.global_tid), times);
    add_timed(host, kTable, std::move(row), times);
  }
  return count;
}

bool is_lock_call(std::string_view name) {
  return name.find("mutex") != std::string_view::npos ||
         name.find("rwlock") != std::string_view::npos ||
         name.find("futex") != std::string_view::npos;
}

std::uint64_t read_locks(const SqliteFile& file, NsysStrings& strings, NsysHostRows& host) {
  constexpr const char* kTable = "OSRT_API";
  if (!file.has(kTable) || !has_all(file.columns(kTable), kCallColumns)) return 0;
  std::string ids;
  for (const std::int64_t id :
       strings.ids_where([](const std::string& text) { return is_lock_call(text); }))
    ids += (ids.empty() ? "" : ",") + std::to_string(id);
  if (ids.empty()) return 0;
  SqliteRows rows = file.query("SELECT start, end, globalTid, nameId FROM " + std::string(kTable) +
                               " WHERE nameId IN (" + ids + ")");
  std::uint64_t count = 0;
  for (; rows.next(); ++count)
    add_timed(
        host, kTable,
        {.kind = Kind::kLock, .name = strings[rows.integer(3)], .global_tid = rows.integer(2)},
        nsys_times_of(rows, 0, 1));
  return count;
}

}  // namespace

std::uint64_t read_host_tables(const SqliteFile& file, NsysStrings& strings,
                               NsysProcesses& processes, SenselessTimes& senseless) {
  NsysHostRows host(processes, senseless);
  const RowOrder calls = any_with_several_devices(processes) ? RowOrder::kByStart : RowOrder::kAny;
  return read_runtime(file, calls, strings, host) +
         read_ranges(file, kPushPopRange, strings, host) +
         read_ranges(file, kStartEndRange, strings, host) + read_locks(file, strings, host);
}

namespace {

// Newer exports; the columns as the documentation of nsys export names them.
std::map<std::uint32_t, int> ranks_of_table(const SqliteFile& file) {
  std::map<std::uint32_t, int> ranks;
  if (!file.has("MPI_RANKS") || !has_all(file.columns("MPI_RANKS"), {"globalTid", "rank"}))
    return ranks;
  SqliteRows rows = file.query("SELECT globalTid, rank FROM MPI_RANKS WHERE rank IS NOT NULL");
  while (rows.next()) {
    const std::int64_t rank = rows.integer(1);
    if (is_rank_number(rank))
      ranks[NsysProcesses::process_of(rows.integer(0))] = static_cast<int>(rank);
  }
  return ranks;
}

}  // namespace

std::vector<std::string> missing_host_columns(const SqliteFile& file) {
  std::vector<std::string> warnings;
  note_missing(file, "CUPTI_ACTIVITY_KIND_RUNTIME", kCallColumns, warnings);
  note_missing(file, "NVTX_EVENTS", kRangeColumns, warnings);
  note_missing(file, "OSRT_API", kCallColumns, warnings);
  return warnings;
}

std::map<std::uint32_t, int> mpi_ranks_of(const SqliteFile& file, NsysStrings& strings) {
  constexpr std::string_view kPrefix = "MPI Rank ";
  std::map<std::uint32_t, int> ranks = ranks_of_table(file);
  if (!ranks.empty() || !file.has("NVTX_EVENTS")) return ranks;
  const auto columns = file.columns("NVTX_EVENTS");
  if (!has_all(columns, kRangeColumns)) return ranks;
  SqliteRows rows =
      file.query("SELECT globalTid, " + SqliteFile::first_of(columns, {"text"}) + ", " +
                 SqliteFile::first_of(columns, {"textId"}) +
                 " FROM NVTX_EVENTS WHERE eventType = " + std::to_string(kThreadName));
  while (rows.next()) {
    const std::string_view text = rows.is_null(2) ? rows.text(1) : strings[rows.integer(2)];
    if (!text.starts_with(kPrefix)) continue;
    const std::int64_t rank = integer_of(text.substr(kPrefix.size()), -1);
    if (is_rank_number(rank))
      ranks[NsysProcesses::process_of(rows.integer(0))] = static_cast<int>(rank);
  }
  return ranks;
}

}  // namespace sidestream::trace
