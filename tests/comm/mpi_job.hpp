// Runs a command and looks at what a user would see of it.
#pragma once

#include <sys/wait.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace sidestream::test {

struct Outcome {
  int exit_code = -1;
  std::string output;
  double seconds = 0;
};

// The job may be started by root, as in a container; what Open MPI leaks is its own.
inline Outcome run_command(const std::string& command) {
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
  const auto begin = std::chrono::steady_clock::now();
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  Outcome outcome;
  std::array<char, 4096> chunk{};
  while (std::fgets(chunk.data(), chunk.size(), pipe) != nullptr) outcome.output += chunk.data();
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return outcome;
}

// A program of the build on several ranks; what hangs is killed.
inline Outcome run_on_ranks(int ranks, const std::string& program, const std::string& arguments) {
  return run_command("timeout -k 1 25 " SIDESTREAM_MPIEXEC " --oversubscribe --bind-to none -np " +
                     std::to_string(ranks) + " " + program + " " + arguments);
}
inline Outcome run_on_two_ranks(const std::string& program, const std::string& arguments) {
  return run_on_ranks(2, program, arguments);
}

}  // namespace sidestream::test
