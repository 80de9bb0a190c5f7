// The lines of RUN/ettr.jsonl that an account can be drawn up of; what they hold is in
// ettr_account.hpp.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sidestream::launch {

struct EttrLines {
  std::vector<nlohmann::json> lines;
  std::vector<std::string> faults;  // what was left out, for people: a sentence, if any
};

// Every line that is an object with figures that can be: seconds are neither negative nor more than
// thirty years, and every line has its time. Of the progress of a start the first and the newest
// lines: weeks have hundreds of thousands in between. Lines that kills have torn are left out
// without a word. Nothing where there is no file. Throws Error for a file that cannot be read.
EttrLines read_ettr_lines(const std::filesystem::path& path);

}  // namespace sidestream::launch
