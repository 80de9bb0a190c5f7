#include "profiling/trace/nsys_host_tables.hpp"

#include <string>
#include <string_view>

#include "profiling/trace/decimal.hpp"
#include "profiling/trace/nsys_host_rows.hpp"

namespace sidestream::trace {
namespace {

// Types of NVTX_EVENTS rows.
constexpr int kThreadName = 39;
constexpr int kPushPopRange = 59;
constexpr int kStartEndRange = 60;

std::uint64_t read_runtime(const SqliteFile& file, NsysStrings& strings, NsysHostRows& host) {
  constexpr const char* kTable = "CUPTI_ACTIVITY_KIND_RUNTIME";
  if (!file.has(kTable)) return 0;
  const auto columns = file.columns(kTable);
  SqliteRows rows =
      file.query("SELECT start, end, globalTid, nameId, " +
                 SqliteFile::first_of(columns, {"correlationId"}) + " FROM " + kTable);
  std::uint64_t count = 0;
  for (; rows.next(); ++count) {
    host.add({Kind::kRuntime, strings[rows.integer(3)], rows.integer(0), rows.integer(1),
              rows.integer(2), static_cast<std::uint64_t>(rows.integer(4))});
  }
  return count;
}

std::uint64_t read_ranges(const SqliteFile& file, NsysStrings& strings, NsysProcesses& processes,
                          NsysHostRows& host) {
  if (!file.has("NVTX_EVENTS")) return 0;
  const auto columns = file.columns("NVTX_EVENTS");
  const std::string text_id = SqliteFile::first_of(columns, {"textId"});
  SqliteRows rows =
      file.query("SELECT start, end, globalTid, " + SqliteFile::first_of(columns, {"text"}) + ", " +
                 text_id + " FROM NVTX_EVENTS WHERE eventType IN (" +
                 std::to_string(kPushPopRange) + "," + std::to_string(kStartEndRange) + ")");
  std::uint64_t count = 0;
  for (; rows.next(); ++count) {
    if (rows.is_null(1)) {
      const auto& of_process = processes.of_process(NsysProcesses::process_of(rows.integer(2)));
      processes[of_process.front()].skip("range without an end");
      continue;
    }
    const std::string_view name = rows.is_null(4) ? rows.text(3) : strings[rows.integer(4)];
    host.add({Kind::kHostRange, name, rows.integer(0), rows.integer(1), rows.integer(2)});
  }
  return count;
}

bool is_lock_call(std::string_view name) {
  return name.find("mutex") != std::string_view::npos ||
         name.find("rwlock") != std::string_view::npos ||
         name.find("futex") != std::string_view::npos;
}

std::uint64_t read_locks(const SqliteFile& file, NsysStrings& strings, NsysHostRows& host) {
  if (!file.has("OSRT_API")) return 0;
  std::string ids;
  for (const std::int64_t id :
       strings.ids_where([](const std::string& text) { return is_lock_call(text); }))
    ids += (ids.empty() ? "" : ",") + std::to_string(id);
  if (ids.empty()) return 0;
  SqliteRows rows = file.query(
      "SELECT start, end, globalTid, nameId FROM OSRT_API WHERE nameId IN (" + ids + ")");
  std::uint64_t count = 0;
  for (; rows.next(); ++count) {
    host.add(
        {Kind::kLock, strings[rows.integer(3)], rows.integer(0), rows.integer(1), rows.integer(2)});
  }
  return count;
}

}  // namespace

std::uint64_t read_host_tables(const SqliteFile& file, NsysStrings& strings,
                               NsysProcesses& processes) {
  NsysHostRows host(processes);
  return read_runtime(file, strings, host) + read_ranges(file, strings, processes, host) +
         read_locks(file, strings, host);
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
