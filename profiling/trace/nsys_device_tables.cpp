#include "profiling/trace/nsys_device_tables.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>

#include "profiling/trace/nsys_times.hpp"

namespace sidestream::trace {
namespace {

struct DeviceTable {
  const char* name;
  Kind kind;
};

constexpr std::array<DeviceTable, 4> kTables = {
    {{"CUPTI_ACTIVITY_KIND_KERNEL", Kind::kKernel},
     {"CUPTI_ACTIVITY_KIND_MEMCPY", Kind::kMemcpy},
     {"CUPTI_ACTIVITY_KIND_MEMSET", Kind::kMemset},
     {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", Kind::kGraph}}};

// Order of the columns in the query below.
enum Field {
  kStart,
  kEnd,
  kDevice,
  kStream,
  kCorrelation,
  kProcess,
  kName,
  kShortName,
  kBytes,
  kCopyKind,
  kRegisters,
  kStaticShared,
  kDynamicShared,
  kGridX,
  kGridY,
  kGridZ,
  kBlockX,
  kBlockY,
  kBlockZ
};

std::string query_of(const SqliteFile& file, const char* table) {
  const auto columns = file.columns(table);
  const auto pick = [&](std::initializer_list<const char*> names) {
    return SqliteFile::first_of(columns, names);
  };
  std::string query = "SELECT " + pick({"start"}) + "," + pick({"end"}) + "," + pick({"deviceId"}) +
                      "," + pick({"streamId"}) + "," + pick({"correlationId"}) + "," +
                      pick({"globalPid"}) + "," +
                      pick({"demangledName", "shortName", "mangledName"}) + "," +
                      pick({"shortName", "demangledName", "mangledName"}) + "," + pick({"bytes"}) +
                      "," + pick({"copyKind"}) + "," + pick({"registersPerThread"}) + "," +
                      pick({"staticSharedMemory"}) + "," + pick({"dynamicSharedMemory"});
  for (const char* one : {"gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"})
    query += "," + pick({one});
  return query + " FROM " + table;
}

// CUpti_ActivityMemcpyKind, with the words that Kineto uses.
std::string_view copy_name(std::int64_t kind) {
  constexpr std::array<std::string_view, 11> names = {
      "Memcpy (unknown)", "Memcpy HtoD", "Memcpy DtoH", "Memcpy HtoA", "Memcpy AtoH", "Memcpy AtoA",
      "Memcpy AtoD",      "Memcpy DtoA", "Memcpy DtoD", "Memcpy HtoH", "Memcpy PtoP"};
  return kind >= 0 && kind < static_cast<std::int64_t>(names.size())
             ? names[static_cast<std::size_t>(kind)]
             : names[0];
}

std::string_view name_of_row(const SqliteRows& rows, Kind kind, NsysStrings& strings) {
  switch (kind) {
    case Kind::kKernel:
      return strings[rows.integer(kName)];
    case Kind::kMemcpy:
      return copy_name(rows.integer(kCopyKind));
    case Kind::kMemset:
      return "Memset";
    default:
      return "CUDA graph";
  }
}

std::uint32_t small(const SqliteRows& rows, int column) {
  return static_cast<std::uint32_t>(rows.integer(column));
}

DeviceDetail detail_of(const SqliteRows& rows, Kind kind) {
  DeviceDetail detail;
  detail.correlation = static_cast<std::uint64_t>(rows.integer(kCorrelation));
  detail.stream = rows.integer(kStream);
  detail.bytes = static_cast<std::uint64_t>(rows.integer(kBytes));
  detail.device = static_cast<std::int32_t>(rows.integer(kDevice));
  if (kind != Kind::kKernel) return detail;
  detail.registers_per_thread = small(rows, kRegisters);
  detail.shared_memory_bytes = small(rows, kStaticShared) + small(rows, kDynamicShared);
  detail.grid = {small(rows, kGridX), small(rows, kGridY), small(rows, kGridZ)};
  detail.block = {small(rows, kBlockX), small(rows, kBlockY), small(rows, kBlockZ)};
  return detail;
}

std::uint32_t stream_track(RankTimeline& timeline, std::int64_t stream) {
  const std::uint32_t track = timeline.track("device", std::to_string(stream));
  timeline.tracks()[track].name = "stream " + std::to_string(stream);
  return track;
}

// Short name -> full names of kernels that share it.
using KernelNames = std::map<std::int64_t, std::set<std::int64_t>>;

// A kernel goes by its short name, unless several kernels (templates, mostly) share it. Returns how
// many are left without a name.
std::size_t shorten_names(const KernelNames& names, NsysStrings& strings,
                          NsysProcesses& processes) {
  std::size_t nameless = 0;
  for (const auto& [short_name, full_names] : names) {
    if (full_names.size() != 1 || *full_names.begin() == short_name || !strings.knows(short_name)) {
      nameless += static_cast<std::size_t>(std::ranges::count_if(
          full_names, [&](std::int64_t name) { return !strings.knows(name); }));
      continue;
    }
    for (std::size_t i = 0; i < processes.size(); ++i) {
      NameTable& table = processes[i].names;
      table.rename(table.find(strings[*full_names.begin()]), strings[short_name]);
    }
  }
  return nameless;
}

DeviceRows read_table(const SqliteFile& file, const DeviceTable& table, NsysStrings& strings,
                      NsysProcesses& processes, SenselessTimes& senseless) {
  DeviceRows result;
  KernelNames names;
  std::unordered_set<std::int64_t> seen;
  RankTimeline* timeline = nullptr;
  std::pair<std::int64_t, std::int64_t> of_timeline;
  std::int64_t of_track = INT64_MIN;
  std::uint32_t track = 0;
  SqliteRows rows = file.query(query_of(file, table.name));
  for (; rows.next(); ++result.read) {
    const std::pair process_device{rows.integer(kProcess), rows.integer(kDevice)};
    if (timeline == nullptr || process_device != of_timeline) {
      timeline = &processes.of_device(NsysProcesses::process_of(process_device.first),
                                      static_cast<int>(process_device.second));
      of_timeline = process_device;
      of_track = INT64_MIN;
    }
    const NsysTimes times = nsys_times_of(rows, kStart, kEnd);
    if (times.fault) {
      timeline->skip(times.fault->reason);
      senseless.add(*times.fault, table.name, name_of_row(rows, table.kind, strings));
      continue;
    }
    if (of_track != rows.integer(kStream)) {
      of_track = rows.integer(kStream);
      track = stream_track(*timeline, of_track);
    }
    if (table.kind == Kind::kKernel && seen.insert(rows.integer(kName)).second)
      names[rows.integer(kShortName)].insert(rows.integer(kName));
    timeline->add({.kind = table.kind,
                   .name = name_of_row(rows, table.kind, strings),
                   .start_ns = times.start_ns,
                   .duration_ns = times.duration_ns,
                   .track = track},
                  timeline->add_detail(detail_of(rows, table.kind)));
  }
  result.nameless_kernels = shorten_names(names, strings, processes);
  return result;
}

}  // namespace

DeviceRows read_device_tables(const SqliteFile& file, NsysStrings& strings,
                              NsysProcesses& processes, SenselessTimes& senseless) {
  DeviceRows all;
  for (const DeviceTable& table : kTables) {
    if (!file.has(table.name)) continue;
    const DeviceRows rows = read_table(file, table, strings, processes, senseless);
    all.read += rows.read;
    all.nameless_kernels += rows.nameless_kernels;
  }
  return all;
}

}  // namespace sidestream::trace
