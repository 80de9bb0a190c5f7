// What an exception means for people and scripts: an exit code and one message without a backtrace.
#pragma once

#include <exception>
#include <string>

#include "core/base/exit_code.hpp"

namespace sidestream::launch {

struct Failure {
  core::ExitCode code = core::ExitCode::kOther;
  std::string message;
  bool peer_is_gone = false;  // a peer's process has ended: it says nothing itself
};

// Own errors carry their code; running out of memory is recognised in LibTorch's and the
// language's.
Failure describe_failure(const std::exception& error);

}  // namespace sidestream::launch
