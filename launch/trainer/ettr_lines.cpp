#include "launch/trainer/ettr_lines.hpp"

#include <fmt/format.h>

#include <array>
#include <sstream>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/json_fault.hpp"
#include "launch/reporting/jsonl_file.hpp"

namespace sidestream::launch {
namespace {

using nlohmann::json;

constexpr core::NumberBounds kTimeOfDay = {0, 1e11};
constexpr core::NumberBounds kCode = {-1000, 1e6};  // negative: a signal that ended the launcher

struct Figure {
  const char* key;
  core::NumberBounds bounds;
};
constexpr std::array<Figure, 9> kFigures = {{{"at", kTimeOfDay},
                                             {"up_s", core::bounds::kSeconds},
                                             {"attempt", core::bounds::kCount},
                                             {"training_s", core::bounds::kSeconds},
                                             {"startup_s", core::bounds::kSeconds},
                                             {"restore_s", core::bounds::kSeconds},
                                             {"stall_s", core::bounds::kSeconds},
                                             {"evaluation_s", core::bounds::kSeconds},
                                             {"code", kCode}}};

// Throws DataError with the first that cannot be.
void check_figures(const json& line, const core::JsonPlace& place) {
  for (const Figure& figure : kFigures)
    core::maybe_number_within(line, figure.key, figure.bounds, place);
}

std::string fault_text(const std::string& first, int lines) {
  return lines == 1 ? first + ": this line is left out"
                    : fmt::format("{}: this line is left out, and {} more", first, lines - 1);
}

}  // namespace

EttrLines read_ettr_lines(const std::filesystem::path& path) {
  EttrLines found;
  if (!core::is_there(path)) return found;
  std::istringstream lines(read_log(path));
  std::string first_fault;
  int left_out = 0;
  std::uint64_t offset_bytes = 0;
  for (std::string line; std::getline(lines, line); offset_bytes += line.size() + 1) {
    json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) continue;
    try {
      check_figures(object, {path.string(), offset_bytes, "a line of the ledger"});
      found.lines.push_back(std::move(object));
    } catch (const core::DataError& error) {
      if (left_out++ == 0) first_fault = error.what();
    }
  }
  if (left_out > 0) found.faults.push_back(fault_text(first_fault, left_out));
  return found;
}

}  // namespace sidestream::launch
