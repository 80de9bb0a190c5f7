#include "launch/trainer/ettr_lines.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "launch/trainer/ettr_account.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::launch {
namespace {

using Line = nlohmann::json;

Line progress_line(double at, double training_s) {
  return {{"event", "progress"}, {"at", at}, {"training_s", training_s}, {"stall_s", 2}};
}

// A line every few seconds, for weeks: they say no more than the last of them.
TEST(EttrLinesTest, progress_in_between_is_not_kept_and_changes_no_account) {
  std::vector<Line> ledger = {
      {{"event", "launched"}, {"at", 100.0}, {"attempt", 1}},
      {{"event", "started"}, {"at", 107.0}, {"training_s", 0}, {"startup_s", 5}}};
  for (int line = 0; line < 1000; ++line)
    ledger.push_back(
        progress_line(110 + line, line < 500 ? line : line - 400));  // 400 s taken back
  ledger.push_back({{"event", "ended"}, {"at", 1111.0}, {"attempt", 1}, {"code", 137}});
  const core::ScratchFolder scratch;
  std::ofstream file(scratch / "ettr.jsonl");
  for (const Line& line : ledger) file << line.dump() << "\n";
  file.close();

  const EttrLines kept = read_ettr_lines(scratch / "ettr.jsonl");

  EXPECT_LT(kept.lines.size(), 10u);
  const EttrAccount account = account_of(kept.lines, 1111);
  EXPECT_EQ(to_json(account), to_json(account_of(ledger, 1111)));
  EXPECT_DOUBLE_EQ(account.replayed_s, 399);
  EXPECT_DOUBLE_EQ(account.productive_s, 599);
}

}  // namespace
}  // namespace sidestream::launch
