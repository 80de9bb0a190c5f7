#include "launch/trace/nsys_export.hpp"

#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <system_error>

#include "core/base/error.hpp"
#include "launch/trace/nsys_program.hpp"

extern char** environ;

namespace sidestream::launch {
namespace {

namespace fs = std::filesystem;

constexpr int kNotFound = 127;  // as in a shell

int run_and_wait(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);  // ours is the report's
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, arguments.front(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return kNotFound;
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return kNotFound;
  return WEXITSTATUS(status);
}

}  // namespace

NsysExports::NsysExports(std::vector<trace::TraceFile> files) : files_(std::move(files)) {
  for (trace::TraceFile& file : files_) {
    if (file.kind == trace::FileKind::kNsysReport) replace(file);
  }
}

NsysExports::~NsysExports() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

void NsysExports::replace(trace::TraceFile& file) {
  if (folder_.empty()) {
    std::string name = (fs::temp_directory_path() / "sidestream-trace-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw core::Error("cannot make a folder like " + name);
    folder_ = name;
  }
  // Recordings of several sessions have the same names.
  const fs::path place = folder_ / std::to_string(exported_++);
  fs::create_directory(place);
  const fs::path output = place / (file.path.stem().string() + ".sqlite");
  const std::optional<fs::path> nsys = find_nsys();
  const int code =
      !nsys
          ? kNotFound
          : run_and_wait({nsys->string(), "export", "-t", "sqlite", "--lazy=false", "--quiet=true",
                          "--force-overwrite=true", "-o", output.string(), file.path.string()});
  if (code != 0 || !fs::exists(output)) {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    throw core::DataError(core::FileFault{
        file.path.string(), std::nullopt,
        "nsys on the PATH, beside the CUDA toolkit or under /opt/nvidia that can export the report",
        (code == kNotFound ? std::string("none") : "exit code " + std::to_string(code)) +
            ". Where it was recorded, run: nsys export -t sqlite --lazy=false " +
            file.path.filename().string() + ", and give the .sqlite file"});
  }
  file.path = output;
  file.kind = trace::FileKind::kNsysSqlite;
}

}  // namespace sidestream::launch
