#include "launch/verify/output_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "core/base/build_id.hpp"
#include "core/base/error.hpp"
#include "profiling/verify/recorded_run.hpp"

namespace sidestream::launch {
namespace {

namespace fs = std::filesystem;

// What the files of configuration say now, not where they lie: they may change between two calls.
// Another number of blocks is another verification: adding blocks until a difference shows would
// show one where there is none.
std::string identity_of(const VerifyOptions& options) {
  const nlohmann::ordered_json json = {{"schema", 2},
                                       {"program", core::program_identity()},
                                       {"base_settings", settings_of(options, Side::kBase)},
                                       {"new_settings", settings_of(options, Side::kNew)},
                                       {"np", options.ranks},
                                       {"hosts", options.hosts},
                                       {"common", options.common},
                                       {"base", options.base},
                                       {"new", options.fresh},
                                       {"blocks", options.blocks},
                                       {"steps", options.steps},
                                       {"seed", options.seed}};
  return json.dump(1) + "\n";
}

// What somebody else keeps there is not mixed with runs. One that was interrupted at its very start
// has left no more than a lock and an empty folder.
void require_own(const fs::path& root, const fs::path& log) {
  if (!fs::is_directory(root) || fs::exists(root / "verification.json")) return;
  for (const auto& entry : fs::directory_iterator(root)) {
    const fs::path name = entry.path().filename();
    if (name == "runs" || name == "lock" || entry.path() == log) continue;
    throw core::ConfigError(
        fmt::format("--out: {} holds {}, and no verification. Give a new folder", root.string(),
                    name.string()));
  }
}

}  // namespace

OutputFolder::OutputFolder(const VerifyOptions& options) : root_(options.output) {
  try {
    require_own(root_, decision_log_of(options));
    fs::create_directories(root_ / "runs");
    claim(identity_of(options));
  } catch (const fs::filesystem_error& error) {
    throw core::ConfigError(
        fmt::format("--out: cannot make {}: {}", root_.string(), error.code().message()));
  } catch (const core::ConfigError&) {
    throw;
  } catch (const core::Error& error) {
    throw core::ConfigError(fmt::format("--out: {}", error.what()));
  }
}

void OutputFolder::claim(const std::string& identity) {
  const fs::path lock = root_ / "lock";
  lock_.reset(open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock_) throw core::Error(core::system_error_text("cannot write", lock, errno));
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0)
    throw core::ConfigError(
        fmt::format("--out: another verification is running in {}", root_.string()));
  const fs::path file = root_ / "verification.json";
  if (fs::exists(file) && !nlohmann::json::accept(core::read_file(file)))
    throw core::ConfigError(
        fmt::format("--out: {} is damaged: it does not say which verification {} holds. Give a new "
                    "folder",
                    file.string(), root_.string()));
  if (fs::exists(file) && core::read_file(file) != identity)
    throw core::ConfigError(
        fmt::format("--out: {} holds another verification (other flags, steps, blocks, content of "
                    "the configuration, or "
                    "build of the program). Give a new folder",
                    root_.string()));
  if (!fs::exists(file) && !fs::is_empty(root_ / "runs"))
    throw core::ConfigError(fmt::format(
        "--out: {} holds runs, but no verification. Give a new folder", root_.string()));
  core::write_file_atomically(file, identity);
}

fs::path default_output(const VerifyOptions& options) {
  std::uint32_t hash = 2166136261;  // FNV-1a
  for (const char one : identity_of(options))
    hash = (hash ^ static_cast<unsigned char>(one)) * 16777619;
  return fs::path("runs") / fmt::format("verify_{:08x}", hash);
}

fs::path absolute_folder(const fs::path& folder) {
  return (fs::absolute(folder) / "").lexically_normal().parent_path();
}

fs::path decision_log_of(const VerifyOptions& options) {
  if (!options.log.empty()) return options.log;
  return absolute_folder(options.output).parent_path() / "decisions.jsonl";
}

void check_log(const fs::path& log) {
  std::error_code ignored;  // what is in the way is told by the attempt to write
  if (log.has_parent_path()) fs::create_directories(log.parent_path(), ignored);
  const core::UniqueFd file(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file)
    throw core::ConfigError(
        fmt::format("--log: {}", core::system_error_text("cannot write", log, errno)));
}

bool is_finished(const PlannedRun& run) {
  try {
    return verify::read_recorded_run(run.folder).exit_code == 0;
  } catch (const core::Error&) {
    return false;
  }
}

std::map<std::string, std::string> environment_of_first(const std::vector<PlannedRun>& runs) {
  for (const PlannedRun& run : runs) {
    try {
      return verify::read_recorded_run(run.folder).environment;
    } catch (const core::Error&) {
      continue;  // not made yet, or it failed before it wrote its record
    }
  }
  return {};
}

fs::path output_file(const PlannedRun& run) { return run.folder.string() + ".log"; }

}  // namespace sidestream::launch
