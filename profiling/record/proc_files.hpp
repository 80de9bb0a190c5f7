// The files of /proc that say what a process, its threads and its machine use. Parsers take text
// and give running totals; what a kernel does not tell is 0.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sidestream::record {

struct ThreadTimes {
  std::string name;
  std::int64_t run_ns = 0;   // on a processor
  std::int64_t wait_ns = 0;  // ready, and none was free
};

using ThreadTable = std::map<std::int64_t, ThreadTimes>;  // by the system's number

struct SystemTotals {
  std::int64_t monotonic_ns = 0;
  ThreadTable threads;
  std::int64_t resident_bytes = 0;
  std::int64_t process_read_bytes = 0;  // from storage
  std::int64_t process_written_bytes = 0;
  double machine_busy_s = 0;  // of all processors
  double machine_total_s = 0;
  std::vector<double> core_busy_s;            // by processor
  std::map<std::string, double> disk_busy_s;  // with a request in work
  std::int64_t available_bytes = 0;
  std::int64_t disk_read_bytes = 0;
  std::int64_t disk_written_bytes = 0;
  std::int64_t network_received_bytes = 0;  // without the loopback
  std::int64_t network_sent_bytes = 0;
  std::int64_t loopback_bytes = 0;
};

// "1234 567 89": nanoseconds on a processor, nanoseconds of waiting, slices.
void read_schedstat(std::string_view text, ThreadTimes& times);
void read_statm(std::string_view text, std::int64_t page_bytes, SystemTotals& totals);
void read_process_io(std::string_view text, SystemTotals& totals);
void read_machine_stat(std::string_view text, double ticks_per_s, SystemTotals& totals);
void read_meminfo(std::string_view text, SystemTotals& totals);
// Whole disks only: partitions would count twice. Sectors of these files are 512 bytes.
void read_diskstats(std::string_view text, SystemTotals& totals);
// counts: whether an interface other than the loopback carries bytes that no other one has carried.
void read_network(std::string_view text, const std::function<bool(std::string_view name)>& counts,
                  SystemTotals& totals);
// Of the interfaces in this folder of sysfs: with a device, or, where none has one (a container),
// those that stand on no other one.
std::function<bool(std::string_view name)> own_interfaces(const std::filesystem::path& interfaces);

// Of this process.
ThreadTable read_threads(const std::filesystem::path& proc = "/proc");

// All of them, of this process.
SystemTotals read_system(const std::filesystem::path& proc = "/proc");

}  // namespace sidestream::record
