// The trainer's part of RUN/ettr.jsonl, by rank 0; what its events say is in ettr_account.hpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "launch/reporting/appended_file.hpp"
#include "launch/trainer/ettr_account.hpp"

namespace sidestream::launch {

class EttrLedger {
 public:
  struct Sums {
    std::int64_t step = 0;
    double training_s = 0;
    double stall_s = 0;
    double evaluation_s = 0;
  };

  // Which start of a run this is.
  struct StartName {
    int attempt = 1;
    std::string supervisor = {};  // that has given the number; empty: nobody
    static StartName of_this_process();
  };

  // Appends `started`. A ledger that cannot be written is trouble of file().
  EttrLedger(std::filesystem::path path, StartName name, const Sums& start, double restore_s);

  enum class When { kEveryFewSeconds, kNow };
  void progress(const Sums& sums, When when);
  void finished(const Sums& sums, int code);

  // Up to now. Throws Error where the file cannot be read.
  FoundAccount account() const;

  AppendedFile& file() noexcept { return file_; }

 private:
  nlohmann::ordered_json line_of(const char* event) const;
  nlohmann::ordered_json line_of(const char* event, const Sums& sums) const;

  AppendedFile file_;
  StartName name_;
  std::chrono::steady_clock::time_point last_line_;
};

}  // namespace sidestream::launch
