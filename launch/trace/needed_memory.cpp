#include "launch/trace/needed_memory.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <system_error>

#include "core/base/real.hpp"
#include "profiling/report/table.hpp"

namespace sidestream::launch {
namespace {

// Traces of operators took 0.6 to 1.2 bytes a byte of JSON, and gzip packs them 10 to 20 times.
constexpr double kLeastShare = 0.6;
constexpr double kLeastPacking = 10;

// Of a database some tables are read, row by row: how much of it that is, nobody knows before.
double least_bytes(const trace::TraceFile& file) {
  if (file.kind != trace::FileKind::kKineto) return 0;
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(file.path, error);
  if (error) return 0;
  const double packing = file.path.extension() == ".gz" ? kLeastPacking : 1;
  return core::real(size) * packing * kLeastShare;
}

}  // namespace

std::optional<std::string> memory_warning(const std::vector<trace::TraceFile>& files,
                                          const core::HostMemory& memory) {
  double needed_bytes = 0;
  for (const trace::TraceFile& file : files) needed_bytes += least_bytes(file);
  const double free_bytes = core::real(memory.usable_bytes());
  if (!memory.is_known() || needed_bytes <= free_bytes) return std::nullopt;
  return fmt::format(
      "the events of {} file{} take {} of memory or more, and {} are free: give the files of fewer "
      "ranks or windows, or record fewer steps",
      files.size(), files.size() == 1 ? "" : "s", report::bytes_text(needed_bytes),
      report::bytes_text(free_bytes));
}

}  // namespace sidestream::launch
