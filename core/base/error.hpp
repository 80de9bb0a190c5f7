// The exceptions of Sidestream: one root, one class per documented exit code.
//
// A message says what failed, what was expected, what was found and what to do next. `main` turns
// an Error into one line and its exit code; no other place decides about exit codes.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "core/base/exit_code.hpp"

namespace sidestream::core {

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, ExitCode code = ExitCode::kOther)
      : std::runtime_error(message), code_(code) {}

  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

// An error that all ranks have thrown together: no rank is left behind in a collective, nobody has
// to be aborted, and rank 0 alone prints it.
class AgreedError : public Error {
 public:
  using Error::Error;
};

// A flag, a configuration file or a run directory that cannot be used.
class ConfigError : public Error {
 public:
  explicit ConfigError(const std::string& message) : Error(message, ExitCode::kConfig) {}
};

// Where a file went wrong: "FILE, byte OFFSET: expected EXPECTED, found FOUND".
struct FileFault {
  std::string file;
  std::optional<std::uint64_t> offset_bytes;
  std::string expected;
  std::string found;

  std::string text() const;
};

// A data file that cannot be used.
class DataError : public Error {
 public:
  explicit DataError(const std::string& message) : Error(message, ExitCode::kData) {}
  explicit DataError(const FileFault& fault) : Error(fault.text(), ExitCode::kData) {}
};

// A checkpoint that cannot be used, or belongs to another model.
class CheckpointError : public Error {
 public:
  explicit CheckpointError(const std::string& message) : Error(message, ExitCode::kCheckpoint) {}
  explicit CheckpointError(const FileFault& fault) : Error(fault.text(), ExitCode::kCheckpoint) {}
};

// A loss or gradient that is not finite, replicas that differ.
class NumericsError : public Error {
 public:
  explicit NumericsError(const std::string& message) : Error(message, ExitCode::kNumerics) {}
};

// A collective operation that failed or ran past its deadline.
class CollectiveError : public Error {
 public:
  explicit CollectiveError(const std::string& message) : Error(message, ExitCode::kCollective) {}
};

// Another rank reported a failure; its own message has the cause.
class PeerError : public Error {
 public:
  explicit PeerError(const std::string& message) : Error(message, ExitCode::kPeer) {}
};

class MemoryError : public Error {
 public:
  explicit MemoryError(const std::string& message) : Error(message, ExitCode::kMemory) {}
};

}  // namespace sidestream::core
