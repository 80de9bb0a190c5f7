#include "profiling/report/table_json.hpp"

#include <algorithm>

namespace sidestream::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kRows = 1000;

Json json_of(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return *whole;
  if (const auto* real = std::get_if<double>(&cell)) return *real;
  return nullptr;
}

}  // namespace

Json json_rows(const Table& table) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < std::min(kRows, table.rows.size()); ++i) {
    Json row = Json::array();
    for (const Cell& cell : table.rows[i]) row.push_back(json_of(cell));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace sidestream::report
