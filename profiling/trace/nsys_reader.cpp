#include "profiling/trace/nsys_reader.hpp"

#include "core/base/error.hpp"
#include "profiling/trace/base_time.hpp"
#include "profiling/trace/nsys_device_tables.hpp"
#include "profiling/trace/nsys_gpu_metrics.hpp"
#include "profiling/trace/nsys_host_tables.hpp"
#include "profiling/trace/nsys_processes.hpp"
#include "profiling/trace/nsys_strings.hpp"
#include "profiling/trace/sqlite_file.hpp"
#include "profiling/trace/utf8_repair.hpp"

namespace sidestream::trace {
namespace {

void check_is_export(const SqliteFile& file) {
  for (const char* table :
       {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS",
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "CUPTI_ACTIVITY_KIND_MEMCPY"}) {
    if (file.has(table)) return;
  }
  const bool nsys =
      file.has("StringIds") || file.has("META_DATA_EXPORT") || file.has("EXPORT_META_DATA");
  throw core::DataError(core::FileFault{
      file.name(), std::nullopt, "a SQLite export of Nsight Systems with kernels or NVTX ranges",
      nsys ? "an export without either: record with -t cuda,nvtx"
           : "another kind of SQLite database"});
}

// Beside device work these are needed too; an export of host ranks has NVTX ranges alone.
std::vector<std::string> missing_parts(const SqliteFile& file) {
  constexpr const char* kKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
  std::vector<std::string> missing;
  if (!file.has(kKernels)) {
    if (!file.has("StringIds") && file.has("NVTX_EVENTS") &&
        file.columns("NVTX_EVENTS").contains("textId"))
      missing.push_back("no table StringIds: ranges whose names are kept there have none");
    return missing;
  }
  struct Need {
    const char* name;
    const char* without;
  };
  for (const Need& table :
       {Need{"NVTX_EVENTS", "steps and phases are not known"},
        Need{"CUPTI_ACTIVITY_KIND_RUNTIME", "why a device was idle cannot be told"},
        Need{"StringIds", "kernels have no names"}}) {
    if (!file.has(table.name))
      missing.push_back("no table " + std::string(table.name) + ": " + table.without);
  }
  const auto columns = file.columns(kKernels);
  for (const Need& column : {Need{"start", "no kernel counts"}, Need{"end", "no kernel counts"},
                             Need{"deviceId", "devices are taken for one"},
                             Need{"streamId", "streams are taken for one"},
                             Need{"globalPid", "processes are taken for one"},
                             Need{"correlationId", "kernels have no launch"}}) {
    if (!columns.contains(column.name))
      missing.push_back(std::string(kKernels) + " has no column " + column.name + ": " +
                        column.without);
  }
  for (const char* column : {"id", "value"}) {
    if (file.has("StringIds") && !file.columns("StringIds").contains(column))
      missing.push_back("StringIds has no column " + std::string(column) +
                        ": kernels have no names");
  }
  if (!columns.contains("shortName") && !columns.contains("demangledName"))
    missing.push_back(std::string(kKernels) + " has no column shortName: kernels have no names");
  return missing;
}

// As text; empty: not known.
std::string base_time_of(const SqliteFile& file) {
  constexpr const char* kTable = "TARGET_INFO_SESSION_START_TIME";
  if (!file.has(kTable) || !file.columns(kTable).contains("utcEpochNs")) return "";
  SqliteRows rows = file.query("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME");
  return rows.next() ? std::string(rows.text(0)) : "";
}

std::map<int, DeviceProperties> devices_of(const SqliteFile& file) {
  std::map<int, DeviceProperties> devices;
  if (!file.has("TARGET_INFO_GPU")) return devices;
  const auto columns = file.columns("TARGET_INFO_GPU");
  std::string query = "SELECT ";
  query += SqliteFile::first_of(columns, {"cuDevice", "id"});
  for (const char* one : {"name", "smCount", "computeMajor", "computeMinor", "totalMemory"})
    query += "," + SqliteFile::first_of(columns, {one});
  SqliteRows rows = file.query(query + " FROM TARGET_INFO_GPU");
  while (rows.next()) {
    devices[static_cast<int>(rows.integer(0))] = {
        with_valid_utf8(rows.text(1)), static_cast<int>(rows.integer(2)),
        static_cast<int>(rows.integer(3)), static_cast<int>(rows.integer(4)),
        static_cast<std::uint64_t>(rows.integer(5))};
  }
  return devices;
}

}  // namespace

NsysFile read_nsys(const std::filesystem::path& path) {
  const SqliteFile file(path);
  check_is_export(file);
  NsysStrings strings(file);
  NsysProcesses processes;
  SenselessTimes senseless(SenselessTimes::Unit::kRow);
  NsysFile result;
  result.warnings = missing_parts(file);
  for (std::string& warning : missing_host_columns(file))
    result.warnings.push_back(std::move(warning));
  for (std::string& warning : missing_gpu_metric_columns(file))
    result.warnings.push_back(std::move(warning));
  const DeviceRows device = read_device_tables(file, strings, processes, senseless);
  result.events = device.read;
  if (device.nameless_kernels > 0)
    result.warnings.push_back(std::to_string(device.nameless_kernels) +
                              (device.nameless_kernels == 1 ? " kernel has" : " kernels have") +
                              " no name in StringIds: communication among such counts as compute");
  result.events += read_gpu_metrics(file, processes, senseless);
  result.events += read_host_tables(file, strings, processes, senseless);
  for (std::string& warning : senseless.warnings()) result.warnings.push_back(std::move(warning));
  NsysProcesses::Ranks ranks = processes.take(mpi_ranks_of(file, strings));
  result.has_ranks = ranks.known;
  result.timelines = std::move(ranks.timelines);
  if (ranks.helpers > 0)
    result.warnings.push_back(std::to_string(ranks.helpers) +
                              (ranks.helpers == 1 ? " process" : " processes") +
                              " without device work, steps or phases left out");
  const auto devices = devices_of(file);
  const std::string base_time = base_time_of(file);
  for (RankTimeline& timeline : result.timelines) {
    timeline.info.of_nsys = true;
    timeline.info.nameless_kernels = device.nameless_kernels > 0;
    read_base_time(base_time, timeline.info);
    timeline.info.devices = devices;
  }
  return result;
}

}  // namespace sidestream::trace
