// A file that cannot be written, and why: what fails next fails for the same reason.
#pragma once

#include <string>
#include <utility>

#include "core/base/error.hpp"

namespace sidestream::core {

// With the exit code of the configuration: where we write is the user's choice, as a flag is.
class WriteError : public Error {
 public:
  WriteError(const std::string& message, std::string reason)
      : Error(message, ExitCode::kConfig), reason_(std::move(reason)) {}

  // The system's text: "No space left on device".
  const std::string& reason() const noexcept { return reason_; }

 private:
  std::string reason_;
};

}  // namespace sidestream::core
