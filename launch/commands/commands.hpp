// The commands of `sidestream`, one file each. Every function returns the exit code of the process.
#pragma once

#include <string>
#include <vector>

namespace sidestream::launch {

// argv of the process is passed on to MPI; arguments are the words after the command.
struct CommandCall {
  int& argc;
  char**& argv;
  std::vector<std::string> arguments;
};

int run_train(const CommandCall& call);
int run_prepare(const CommandCall& call);
int run_generate(const CommandCall& call);
int run_bench(const CommandCall& call);
int run_summary(const CommandCall& call);
int run_verify(const CommandCall& call);
int run_doctor(const CommandCall& call);

}  // namespace sidestream::launch
