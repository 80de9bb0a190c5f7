#include "launch/verify/child_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/error.hpp"
#include "core/base/file.hpp"

namespace sidestream::launch {
namespace {

constexpr int kNotFound = 127;

// After fork: system calls only.
[[noreturn]] void become(char** words, int output) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execvp(words[0], words);
  _exit(kNotFound);
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& words,
                           const std::filesystem::path& output) {
  const core::UniqueFd file(
      open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
  if (!file) throw core::Error(core::system_error_text("cannot write", output, errno));
  std::vector<std::string> copies = words;
  std::vector<char*> arguments;
  for (std::string& word : copies) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) become(arguments.data(), file.get());
  if (pid_ < 0) throw core::Error(core::system_error_text("cannot start", words.front(), errno));
}

ChildProcess::~ChildProcess() {
  constexpr int kTries = 50;  // of 100 ms: mpirun needs a moment to end its ranks
  send(SIGTERM);
  for (int i = 0; i < kTries && !exit_code(); ++i) usleep(100'000);
  if (exit_code_) return;
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::optional<int> ChildProcess::exit_code() {
  if (exit_code_) return exit_code_;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) == pid_)
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return exit_code_;
}

void ChildProcess::send(int signal) const {
  if (!exit_code_) kill(pid_, signal);
}

}  // namespace sidestream::launch
