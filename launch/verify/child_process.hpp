// One program started beside this one: its output goes to a file, and it does not outlive us.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sidestream::launch {

class ChildProcess {
 public:
  // In a session of its own, so that the terminal's Ctrl-C reaches this program only. Throws
  // core::Error with the system's text; a program that is not there ends with 127.
  ChildProcess(const std::vector<std::string>& words, const std::filesystem::path& output);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();  // ends it when it still runs, and waits

  // The exit code, 128 + signal when it was killed; nothing while it runs.
  std::optional<int> exit_code();
  void send(int signal) const;

 private:
  pid_t pid_ = -1;
  std::optional<int> exit_code_;
};

}  // namespace sidestream::launch
