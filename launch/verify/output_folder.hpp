// The folder of a verification: claimed, so that two of them never mix, and gone on with after an
// interruption.
//   OUT/verification.json  what is verified     OUT/runs/block_001_base  run directories, each with
//   OUT/runs/block_001_base.log  what it printed  OUT/report.{html,json,md,txt}
//   OUT/../decisions.jsonl  every decision of the verifications beside each other
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/file.hpp"
#include "launch/options/verify_options.hpp"
#include "launch/verify/plan.hpp"

namespace sidestream::launch {

class OutputFolder {
 public:
  // Throws ConfigError (with the system's text) when it cannot be made or written, is in use, or
  // holds something else.
  explicit OutputFolder(const VerifyOptions& options);

  std::filesystem::path file(const char* name) const { return root_ / name; }

 private:
  void claim(const std::string& identity);

  std::filesystem::path root_;
  core::UniqueFd lock_;
};

// runs/verify_NNNNNNNN, by what is verified: the same command goes on where it stopped.
std::filesystem::path default_output(const VerifyOptions& options);

// Without a last slash: the same for "report" and "report/".
std::filesystem::path absolute_folder(const std::filesystem::path& folder);

// The decision log: as it was asked for, else beside the output folder, so that verifications that
// lie beside each other know what was tried.
std::filesystem::path decision_log_of(const VerifyOptions& options);

// Makes the folder of the log. Throws ConfigError when decisions cannot be added to it: before the
// runs, not after them.
void check_log(const std::filesystem::path& log);

// A run that ended well: it is not repeated.
bool is_finished(const PlannedRun& run);

// Machine and build, as the first of these runs that left a record wrote them; empty: none did.
std::map<std::string, std::string> environment_of_first(const std::vector<PlannedRun>& runs);

// What the run prints goes here, beside its directory.
std::filesystem::path output_file(const PlannedRun& run);

}  // namespace sidestream::launch
