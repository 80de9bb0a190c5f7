#include "profiling/advice/ncu_csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/file.hpp"

namespace sidestream::advice {
namespace {

using Row = std::vector<std::string>;

struct NumberedRow {
  std::size_t offset = 0;
  Row cells;
  bool open = false;  // the file ended inside of quotes
};

// RFC 4180; a quoted cell may hold commas, quotes and line breaks.
class CsvReader {
 public:
  CsvReader(const std::string& text, std::string file) : text_(text), file_(std::move(file)) {}

  bool next(NumberedRow& row) {
    if (at_ >= text_.size()) return false;
    row = {at_, {""}};
    bool quoted = false;
    for (; at_ < text_.size(); ++at_) {
      const char one = text_[at_];
      if (one == '"') {
        if (quoted && at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
          row.cells.back() += text_[at_++];
        } else {
          quoted = !quoted;
        }
      } else if (one == ',' && !quoted) {
        row.cells.emplace_back();
      } else if (one == '\n' && !quoted) {
        ++at_;
        return true;
      } else if (one != '\r') {
        row.cells.back() += one;
      }
    }
    row.open = quoted;
    return true;
  }

  // A row that lacks cells of the header was cut: what is left of it may be half a number.
  bool next_of(const Row& header, NumberedRow& row) {
    if (!next(row)) return false;
    if (!row.open && (row.cells.size() >= header.size() || row.cells.size() <= 1)) return true;
    throw core::DataError(core::FileFault{file_, row.offset,
                                          fmt::format("{} cells as in the header", header.size()),
                                          fmt::format("{}: the file was cut", row.cells.size())});
  }

 private:
  const std::string& text_;
  std::string file_;
  std::size_t at_ = 0;
};

std::optional<std::size_t> column(const Row& header, const std::string& name) {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header.begin());
}

constexpr const char* kDigits = "0123456789";

bool is_whole_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of(kDigits) == text.npos;
}

// "1,234" and "1,234.5". By hand, as all that reads these files: std::regex calls itself for each
// letter, and a cell is as long as a file likes.
bool has_thousands(std::string_view text) {
  const std::size_t point = text.find('.');
  if (point != text.npos && !is_whole_number(text.substr(point + 1))) return false;
  std::string_view whole = text.substr(0, point);
  for (; whole.size() > 3; whole.remove_suffix(4)) {
    const std::string_view last = whole.substr(whole.size() - 4);
    if (last.front() != ',' || !is_whole_number(last.substr(1))) return false;
  }
  return is_whole_number(whole);
}

// "1,234.5"; nothing for "n/a", for the "nan" and "inf" of a counter that could not be read, and
// for "4,00", which is of a language with another point.
std::optional<double> metric_value(std::string text) {
  if (text.find(',') != std::string::npos) {
    if (!has_thousands(text)) return std::nullopt;
    std::erase(text, ',');
  }
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  // Counters count, and take time: none is below 0.
  const bool whole = !text.empty() && end == text.c_str() + text.size();
  if (!whole || !std::isfinite(value) || value < 0) return std::nullopt;
  return value;
}

double factor_of(const std::string& unit) {
  static const std::map<std::string, double> factors = {
      {"nsecond", 1e-9}, {"ns", 1e-9},   {"usecond", 1e-6}, {"us", 1e-6},  {"msecond", 1e-3},
      {"ms", 1e-3},      {"Kbyte", 1e3}, {"Mbyte", 1e6},    {"Gbyte", 1e9}};
  const auto found = factors.find(unit);
  return found == factors.end() ? 1 : found->second;
}

void set_metric(NcuLaunch& launch, const std::string& name, const std::string& text,
                const std::string& unit) {
  const auto value = metric_value(text);
  if (value) launch.metrics[name] = *value * factor_of(unit);
}

std::string cell(const Row& row, std::size_t at) { return at < row.size() ? row[at] : ""; }

// A row a launch.
std::vector<NcuLaunch> read_wide(CsvReader& reader, const Row& header, std::size_t kernel) {
  std::vector<NcuLaunch> launches;
  NumberedRow units, row;
  if (!reader.next_of(header, units)) return launches;
  while (reader.next_of(header, row)) {
    if (cell(row.cells, kernel).empty()) continue;
    NcuLaunch launch{.kernel = row.cells[kernel], .metrics = {}};
    for (std::size_t at = 0; at < header.size(); ++at) {
      if (header[at].find("__") != std::string::npos)
        set_metric(launch, header[at], cell(row.cells, at), cell(units.cells, at));
    }
    launches.push_back(std::move(launch));
  }
  return launches;
}

// A row a metric; rows of one launch carry the same ID.
std::vector<NcuLaunch> read_long(CsvReader& reader, const Row& header, std::size_t kernel) {
  const std::size_t id = *column(header, "ID"), name = *column(header, "Metric Name");
  const auto unit = column(header, "Metric Unit"), value = column(header, "Metric Value");
  std::vector<NcuLaunch> launches;
  std::string current;
  NumberedRow row;
  while (value && reader.next_of(header, row)) {
    if (cell(row.cells, kernel).empty()) continue;
    if (launches.empty() || cell(row.cells, id) != current)
      launches.push_back({row.cells[kernel], {}});
    current = cell(row.cells, id);
    set_metric(launches.back(), cell(row.cells, name), cell(row.cells, *value),
               unit ? cell(row.cells, *unit) : "");
  }
  return launches;
}

class Mean {
 public:
  void add(const NcuLaunch& launch, const char* metric) {
    const auto found = launch.metrics.find(metric);
    if (found == launch.metrics.end()) return;
    sum_ += found->second;
    ++count_;
  }
  std::optional<double> value() const {
    return count_ == 0 ? std::nullopt : std::optional(sum_ / count_);
  }

 private:
  double sum_ = 0;
  int count_ = 0;
};

std::optional<double> mean_of(const std::vector<const NcuLaunch*>& launches, const char* metric) {
  Mean mean;
  for (const NcuLaunch* launch : launches) mean.add(*launch, metric);
  return mean.value();
}

struct Named {
  const char* metric;
  const char* name;
};

constexpr const char* kDuration = "gpu__time_duration.sum";
constexpr const char* kDramBytes = "dram__bytes.sum";
constexpr const char* kCompute = "sm__throughput.avg.pct_of_peak_sustained_elapsed";
constexpr const char* kMemory = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed";
constexpr const char* kTensor = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active";
constexpr const char* kOccupancy = "sm__warps_active.avg.pct_of_peak_sustained_active";
constexpr const char* kL2Hits = "lts__t_sector_hit_rate.pct";
constexpr const char* kSectors =
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio";
constexpr const char* kConflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum";
struct Instruction {
  const char* metric;
  double flops;  // an FMA is two; those of half precision work on pairs
};
constexpr std::array<Instruction, 9> kInstructions = {
    {{"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", 1},
     {"smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", 1},
     {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 2},
     {"smsp__sass_thread_inst_executed_op_hadd_pred_on.sum", 2},
     {"smsp__sass_thread_inst_executed_op_hmul_pred_on.sum", 2},
     {"smsp__sass_thread_inst_executed_op_hfma_pred_on.sum", 4},
     {"smsp__sass_thread_inst_executed_op_dadd_pred_on.sum", 1},
     {"smsp__sass_thread_inst_executed_op_dmul_pred_on.sum", 1},
     {"smsp__sass_thread_inst_executed_op_dfma_pred_on.sum", 2}}};
constexpr std::array<Named, 4> kLimits = {{{"launch__occupancy_limit_registers", "registers"},
                                           {"launch__occupancy_limit_shared_mem", "shared memory"},
                                           {"launch__occupancy_limit_blocks", "blocks"},
                                           {"launch__occupancy_limit_warps", "warps"}}};
constexpr std::array<Named, 7> kStalls = {
    {{"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
      "long scoreboard (global memory)"},
     {"smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio",
      "short scoreboard (shared memory)"},
     {"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", "barrier"},
     {"smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio",
      "math pipe throttle"},
     {"smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio", "MIO throttle"},
     {"smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", "wait"},
     {"smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio", "LG throttle"}}};

NcuCounters counters_of(const std::vector<const NcuLaunch*>& launches) {
  NcuCounters all{.launches = static_cast<int>(launches.size()),
                  .duration_s = mean_of(launches, kDuration),
                  .dram_bytes = mean_of(launches, kDramBytes),
                  .compute_percent = mean_of(launches, kCompute),
                  .memory_percent = mean_of(launches, kMemory),
                  .tensor_percent = mean_of(launches, kTensor),
                  .occupancy_percent = mean_of(launches, kOccupancy),
                  .l2_hit_percent = mean_of(launches, kL2Hits),
                  .sectors_per_request = mean_of(launches, kSectors),
                  .bank_conflicts = mean_of(launches, kConflicts)};
  for (const Instruction& one : kInstructions) {
    const auto value = mean_of(launches, one.metric);
    if (value) all.flops = all.flops.value_or(0) + one.flops * *value;
  }
  double least = 1e300, most = 0;
  for (const Named& limit : kLimits) {
    const auto value = mean_of(launches, limit.metric);
    if (!value || *value >= least) continue;
    least = *value;
    all.occupancy_limiter = limit.name;
  }
  for (const Named& stall : kStalls) {
    const auto value = mean_of(launches, stall.metric);
    if (!value || *value <= most) continue;
    most = *value;
    all.top_stall = stall.name;
  }
  return all;
}

std::vector<NcuLaunch> with_metrics(std::vector<NcuLaunch> launches,
                                    const std::filesystem::path& file, std::size_t offset) {
  for (const NcuLaunch& launch : launches) {
    for (const auto& [metric, value] : launch.metrics) {
      if (metric != kDuration && ncu_metrics().find(metric) != std::string::npos) return launches;
    }
  }
  throw core::DataError(core::FileFault{
      file.string(), offset, "a metric that is used, such as dram__bytes.sum",
      "none with a value: take the --metrics of the command that `roofline` prints"});
}

void erase_all(std::string& text, const std::string& part) {
  for (std::size_t at; (at = text.find(part)) != std::string::npos;) text.erase(at, part.size());
}

// Where the list of the function's arguments begins: the first bracket outside of any template that
// is not the anonymous namespace's.
std::size_t end_of_name(const std::string& kernel) {
  int depth = 0;
  for (std::size_t at = 0; at < kernel.size(); ++at) {
    depth += kernel[at] == '<' ? 1 : kernel[at] == '>' ? -1 : 0;
    if (kernel[at] == '(' && depth == 0 && kernel.compare(at, 11, "(anonymous ") != 0) return at;
  }
  return kernel.size();
}

// true is 1, and 16u is 16.
std::string_view plain_value(std::string_view word) {
  if (word == "true") return "1";
  if (word == "false") return "0";
  const std::size_t digits = std::min(word.find_first_not_of(kDigits), word.size());
  const bool is_number = digits > 0 && word.find_first_not_of("uUlL", digits) == word.npos;
  return is_number ? word.substr(0, digits) : word;
}

std::string with_plain_values(std::string_view key) {
  constexpr const char* kOfWord = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
  std::string plain;
  while (!key.empty()) {
    const std::size_t end = std::min(key.find_first_not_of(kOfWord), key.size());
    plain += plain_value(key.substr(0, end));
    if (end < key.size()) plain += key[end];
    key.remove_prefix(std::min(end + 1, key.size()));
  }
  return plain;
}

}  // namespace

std::vector<NcuLaunch> read_ncu_csv(const std::filesystem::path& file) {
  std::string text;
  try {
    text = core::read_file(file);
  } catch (const core::Error& error) {
    throw core::DataError(error.what());
  }
  CsvReader reader(text, file.string());
  NumberedRow row;
  while (reader.next(row)) {
    const auto kernel = column(row.cells, "Kernel Name");
    if (!kernel || !column(row.cells, "ID")) continue;
    const Row header = row.cells;
    auto launches = column(header, "Metric Name") ? read_long(reader, header, *kernel)
                                                  : read_wide(reader, header, *kernel);
    if (!launches.empty()) return with_metrics(std::move(launches), file, row.offset);
    throw core::DataError(core::FileFault{file.string(), row.offset, "launches after the header",
                                          "none: did the regular expression match a kernel?"});
  }
  const bool refused = text.find("ERR_NVGPUCTRPERM") != std::string::npos;
  throw core::DataError(core::FileFault{
      file.string(), 0, "the CSV of ncu, with the columns ID and Kernel Name",
      refused
          ? "ERR_NVGPUCTRPERM: this machine refuses counters to users; run ncu as root, or load "
            "the driver with NVreg_RestrictProfilingToAdminUsers=0"
          : "none. Make it with ncu --csv --page raw"});
}

std::string function_of(const std::string& kernel) {
  // The only bracket that opens no list of arguments.
  const std::string anonymous = "(anonymous namespace)::";
  std::string name = kernel;
  for (std::size_t at; (at = name.find(anonymous)) != std::string::npos;)
    name.erase(at, anonymous.size());
  name = name.substr(0, name.find_first_of("<("));
  const std::size_t scope = name.rfind("::");
  if (scope != std::string::npos) name = name.substr(scope + 2);
  const std::size_t blank = name.rfind(' ');
  return blank == std::string::npos ? name : name.substr(blank + 1);
}

std::string kernel_key(const std::string& kernel) {
  std::string name = kernel.substr(0, end_of_name(kernel));
  for (const char* part : {"(anonymous namespace)::", "<unnamed>::", "(unsigned int)", "(int)",
                           "(unsigned long)", "(long)", "(bool)"})
    erase_all(name, part);
  std::string key;
  int depth = 0;
  for (const char one : name) {
    depth += one == '<' ? 1 : one == '>' ? -1 : 0;
    if (one == ' ' && depth == 0) key.clear();  // what is returned stands before the name
    if (one != ' ') key += one;
  }
  return with_plain_values(key);
}

NcuByKernel counters_by_kernel(const std::vector<NcuLaunch>& launches) {
  std::map<std::string, std::vector<const NcuLaunch*>> groups;
  for (const NcuLaunch& launch : launches) groups[kernel_key(launch.kernel)].push_back(&launch);
  NcuByKernel result;
  for (const auto& [key, group] : groups) result[key] = counters_of(group);
  return result;
}

std::optional<NcuCounters> counters_for(const NcuByKernel& counters, const std::string& kernel) {
  for (const std::string& key : {kernel_key(kernel), function_of(kernel)}) {
    const auto found = counters.find(key);
    if (found != counters.end()) return found->second;
  }
  return std::nullopt;
}

std::string ncu_metrics() {
  std::string all;
  const auto add = [&](const char* metric) {
    all += (all.empty() ? "" : ",") + std::string(metric);
  };
  for (const char* metric : {kDuration, kDramBytes, kCompute, kMemory, kTensor, kOccupancy, kL2Hits,
                             kSectors, kConflicts})
    add(metric);
  for (const Instruction& one : kInstructions) add(one.metric);
  for (const Named& limit : kLimits) add(limit.metric);
  for (const Named& stall : kStalls) add(stall.metric);
  return all;
}

}  // namespace sidestream::advice
