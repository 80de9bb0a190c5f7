#include "launch/reporting/jsonl_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <limits>
#include <sstream>
#include <string>

#include "core/base/error.hpp"
#include "core/base/file.hpp"

namespace sidestream::launch {
namespace {

// Of a log: a run may take millions of steps.
constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

bool ends_with_a_line(int file) {
  const off_t size = ::lseek(file, 0, SEEK_END);
  char last = '\n';
  return size <= 0 || ::pread(file, &last, 1, size - 1) != 1 || last == '\n';
}

}  // namespace

void append_json_line(const std::filesystem::path& path, const nlohmann::ordered_json& object) {
  const core::UniqueFd file(
      ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file) core::fail_to_write("cannot open", path);
  const std::string line =
      object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  core::write_all(file.get(), ends_with_a_line(file.get()) ? line : "\n" + line, path);
  if (::fdatasync(file.get()) != 0) core::fail_to_write("cannot sync", path);
}

std::vector<nlohmann::json> read_json_lines(const std::filesystem::path& path) {
  std::vector<nlohmann::json> objects;
  if (!std::filesystem::exists(path)) return objects;
  std::istringstream lines(core::read_file(path, kNoLimit));
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (object.is_object()) objects.push_back(std::move(object));
  }
  return objects;
}

}  // namespace sidestream::launch
