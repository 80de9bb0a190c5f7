#include "profiling/record/proc_files.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <system_error>
#include <vector>

#include "profiling/record/clock.hpp"

namespace sidestream::record {
namespace {

constexpr std::int64_t kSectorBytes = 512;

std::int64_t number_of(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.empty()) return words;
    words.push_back(line.substr(0, line.find_first_of(" \t")));
    line.remove_prefix(words.back().size());
  }
}

template <typename Take>
void for_each_line(std::string_view text, const Take& take) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    take(line);
  }
}

// "Name: 123 kB" of files with one value a line.
std::int64_t value_named(std::string_view text, std::string_view name) {
  std::int64_t value = 0;
  for_each_line(text, [&](std::string_view line) {
    const auto words = words_of(line);
    if (words.size() >= 2 && words[0] == name) value = number_of(words[1]);
  });
  return value;
}

// sda, nvme0n1, vda; no sda1, nvme0n1p1, loop0, ram0, dm-0.
bool is_whole_disk(std::string_view name) {
  const auto ends_in_digit = [](std::string_view word) {
    return !word.empty() && word.back() >= '0' && word.back() <= '9';
  };
  if (name.starts_with("nvme") || name.starts_with("mmcblk"))
    return name.find('p', 4) == std::string_view::npos;
  if (name.starts_with("sd") || name.starts_with("vd") || name.starts_with("xvd"))
    return !ends_in_digit(name);
  return false;
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

void read_schedstat(std::string_view text, ThreadTimes& times) {
  const auto words = words_of(text);
  if (words.size() < 2) return;
  times.run_ns = number_of(words[0]);
  times.wait_ns = number_of(words[1]);
}

void read_statm(std::string_view text, std::int64_t page_bytes, SystemTotals& totals) {
  const auto words = words_of(text);
  if (words.size() >= 2) totals.resident_bytes = number_of(words[1]) * page_bytes;
}

void read_process_io(std::string_view text, SystemTotals& totals) {
  totals.process_read_bytes = value_named(text, "read_bytes:");
  totals.process_written_bytes = value_named(text, "write_bytes:");
}

// "cpu user nice system idle iowait irq softirq steal ..." in ticks of all processors, then the
// same of cpu0, cpu1 and so on; those that are switched off are missing.
void read_machine_stat(std::string_view text, double ticks_per_s, SystemTotals& totals) {
  constexpr std::size_t kIdle = 4, kIoWait = 5, kSteal = 8;
  for_each_line(text, [&](std::string_view line) {
    if (!line.starts_with("cpu")) return;
    const auto words = words_of(line);
    if (words.size() <= kSteal) return;
    std::int64_t all = 0;
    for (std::size_t i = 1; i <= kSteal; ++i) all += number_of(words[i]);
    const std::int64_t idle = number_of(words[kIdle]) + number_of(words[kIoWait]);
    const double busy_s = static_cast<double>(all - idle) / ticks_per_s;
    if (words[0] == "cpu") {
      totals.machine_total_s = static_cast<double>(all) / ticks_per_s;
      totals.machine_busy_s = busy_s;
      return;
    }
    constexpr std::int64_t kMostCores = 1 << 16;
    const std::int64_t core = number_of(words[0].substr(3));
    if (core < 0 || core >= kMostCores) return;
    if (totals.core_busy_s.size() <= static_cast<std::size_t>(core))
      totals.core_busy_s.resize(static_cast<std::size_t>(core) + 1);
    totals.core_busy_s[static_cast<std::size_t>(core)] = busy_s;
  });
}

void read_meminfo(std::string_view text, SystemTotals& totals) {
  totals.available_bytes = value_named(text, "MemAvailable:") * 1024;
}

void read_diskstats(std::string_view text, SystemTotals& totals) {
  for_each_line(text, [&](std::string_view line) {
    const auto words = words_of(line);
    if (words.size() < 10 || !is_whole_disk(words[2])) return;
    totals.disk_read_bytes += number_of(words[5]) * kSectorBytes;
    totals.disk_written_bytes += number_of(words[9]) * kSectorBytes;
    constexpr std::size_t kBusyMilliseconds = 12;
    if (words.size() > kBusyMilliseconds)
      totals.disk_busy_s[std::string(words[2])] =
          static_cast<double>(number_of(words[kBusyMilliseconds])) / 1000;
  });
}

// Bridges, bonds and VLANs have a link to each one that they stand on.
std::function<bool(std::string_view)> own_interfaces(const std::filesystem::path& interfaces) {
  namespace fs = std::filesystem;
  std::set<std::string, std::less<>> physical, lowest;
  std::error_code gone;
  for (const fs::directory_entry& one : fs::directory_iterator(interfaces, gone)) {
    const std::string name = one.path().filename().string();
    if (fs::exists(one.path() / "device", gone)) physical.insert(name);
    const fs::directory_iterator links(one.path(), gone);
    const bool stands_on_another = std::any_of(begin(links), end(links), [](const auto& link) {
      return link.path().filename().string().starts_with("lower_");
    });
    if (!stands_on_another) lowest.insert(name);
  }
  if (physical.empty() && lowest.empty()) return [](std::string_view) { return true; };
  return [own = physical.empty() ? lowest : physical](std::string_view name) {
    return own.contains(name);
  };
}

void read_network(std::string_view text, const std::function<bool(std::string_view)>& counts,
                  SystemTotals& totals) {
  for_each_line(text, [&](std::string_view line) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return;
    const auto name = words_of(line.substr(0, colon));
    const auto words = words_of(line.substr(colon + 1));
    if (name.size() != 1 || words.size() < 9) return;
    if (name[0] == "lo") {
      totals.loopback_bytes += number_of(words[0]);
      return;
    }
    if (!counts(name[0])) return;
    totals.network_received_bytes += number_of(words[0]);
    totals.network_sent_bytes += number_of(words[8]);
  });
}

ThreadTable read_threads(const std::filesystem::path& proc) {
  ThreadTable threads;
  std::error_code gone;  // threads end while they are being listed
  for (std::filesystem::directory_iterator entry(proc / "self/task", gone), end;
       !gone && entry != end; entry.increment(gone)) {
    ThreadTimes times;
    read_schedstat(text_of(entry->path() / "schedstat"), times);
    times.name = text_of(entry->path() / "comm");
    while (!times.name.empty() && times.name.back() == '\n') times.name.pop_back();
    threads[number_of(entry->path().filename().string())] = std::move(times);
  }
  return threads;
}

SystemTotals read_system(const std::filesystem::path& proc) {
  SystemTotals totals;
  totals.monotonic_ns = monotonic_ns();
  totals.threads = read_threads(proc);
  read_statm(text_of(proc / "self/statm"), ::sysconf(_SC_PAGESIZE), totals);
  read_process_io(text_of(proc / "self/io"), totals);
  read_machine_stat(text_of(proc / "stat"), static_cast<double>(::sysconf(_SC_CLK_TCK)), totals);
  read_meminfo(text_of(proc / "meminfo"), totals);
  read_diskstats(text_of(proc / "diskstats"), totals);
  static const auto counts = own_interfaces("/sys/class/net");  // looked at once: files of a minute
  read_network(text_of(proc / "net/dev"), counts, totals);
  return totals;
}

}  // namespace sidestream::record
