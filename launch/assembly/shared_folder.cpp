#include "launch/assembly/shared_folder.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <random>
#include <string>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/checkpoint/run_directory.hpp"
#include "launch/assembly/run_start.hpp"

namespace sidestream::launch {
namespace {

namespace fs = std::filesystem;

// A file with a name that nobody has looked for before, so that no cache of a network file system
// knows it. Goes with this object.
class Token {
 public:
  explicit Token(const fs::path& folder)
      : path_(folder /
              fmt::format(".probe.{:08x}{:08x}", std::random_device()(), std::random_device()())) {
    core::write_file_atomically(path_, "");
  }
  ~Token() {
    std::error_code ignored;  // what is left is empty, and nobody reads it
    fs::remove(path_, ignored);
  }
  Token(const Token&) = delete;
  Token& operator=(const Token&) = delete;

  std::string name() const { return path_.filename().string(); }

 private:
  fs::path path_;
};

void require_seen(const fs::path& token) {
  std::error_code error;
  if (fs::exists(token, error)) return;
  throw core::ConfigError(fmt::format(
      "--run-dir: expected to find what rank 0 has just written into {}, found {}. All ranks write "
      "checkpoints there: name a folder on a file system that all hosts share, as an absolute path",
      token.parent_path().string(), error ? error.message() : "nothing of it"));
}

}  // namespace

void require_shared_run_directory(Session& session, const TrainOptions& options) {
  comm::Communicator& communicator = session.communicator();
  if (communicator.size() == 1) return;
  const fs::path folder = checkpoint::RunPaths(options.run_dir).checkpoints();
  std::optional<Token> token;
  agree_on_setup(session, options, [&] {
    if (session.is_first_rank()) token.emplace(folder);
  });
  const std::string name =
      communicator.exchange(token ? token->name() : "", {.purpose = "run directory"}).front();
  agree_on_setup(session, options, [&] {
    if (session.is_first_rank()) return;
    require_seen(folder / name);
    if (communicator.topology().local_rank == 0) checkpoint::probe_writing(folder);
  });
}

}  // namespace sidestream::launch
