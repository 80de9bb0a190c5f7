#include "profiling/trace/nsys_strings.hpp"

#include "profiling/trace/utf8_repair.hpp"

namespace sidestream::trace {
namespace {

// cudaLaunchKernel_v7000 is cudaLaunchKernel: the suffix is the interface's version.
std::string without_version(std::string text) {
  const std::size_t at = text.rfind("_v");
  const bool call = text.starts_with("cu") && at != std::string::npos && at + 2 < text.size();
  if (call && text.find_first_not_of("0123456789", at + 2) == std::string::npos) text.resize(at);
  return text;
}

}  // namespace

NsysStrings::NsysStrings(const SqliteFile& file) {
  if (!file.has("StringIds")) return;
  const auto columns = file.columns("StringIds");
  if (!columns.contains("id") || !columns.contains("value")) return;
  SqliteRows rows = file.query("SELECT id, value FROM StringIds");
  while (rows.next()) texts_[rows.integer(0)] = without_version(with_valid_utf8(rows.text(1)));
}

std::string_view NsysStrings::operator[](std::int64_t id) {
  std::string& text = texts_[id];
  if (text.empty()) {
    text = "name " + std::to_string(id);
    made_up_.insert(id);
  }
  return text;
}

}  // namespace sidestream::trace
