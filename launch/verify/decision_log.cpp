#include "launch/verify/decision_log.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cerrno>
#include <ctime>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/file.hpp"

namespace sidestream::launch {

void append_decision(const std::filesystem::path& log, const std::filesystem::path& reports,
                     const verify::Verification& one, const verify::Decision& decision) {
  nlohmann::ordered_json line = {
      {"time", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
      {"command", one.settings.command},
      {"version", one.version},
      {"environment", one.environment},
      {"reports", std::filesystem::absolute(reports).lexically_normal().string()},
      {"base", one.settings.base_flags},
      {"new", one.settings.fresh_flags},
      {"verdict", verify::verdict_sentence(one)},
      {"convergence", one.convergence.reason},
      {"accepted", decision.accepted},
      {"reason", decision.reason}};
  const core::UniqueFd file(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file) throw core::Error(core::system_error_text("cannot write", log, errno));
  core::write_all(file.get(), line.dump() + "\n", log);
}

}  // namespace sidestream::launch
