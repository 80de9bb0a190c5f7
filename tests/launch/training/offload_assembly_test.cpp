// What --offload needs of a host.
#include "launch/assembly/offload_assembly.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "launch/assembly/dry_run.hpp"
#include "launch/options/train_parser.hpp"

namespace sidestream::launch {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;

TrainOptions options_of(const std::string& offload) {
  return parse_train_options({"--data", "synthetic", "--model", "gpt2-124m", "--device", "cuda",
                              "--precision", "bf16", "--offload", offload});
}

std::string message_of(const std::string& offload, const PinnedNeed& need) {
  try {
    require_host_memory(options_of(offload), need);
  } catch (const core::ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(OffloadAssemblyTest, host_memory_that_suffices_is_taken) {
  const PinnedNeed need{.ranks = 4, .rank_bytes = 2 * kGibibyte, .other_bytes = kGibibyte};

  EXPECT_EQ(message_of("optimizer", need), "") << "what there is, is not known";
  PinnedNeed known = need;
  known.usable_bytes = 9 * kGibibyte;
  EXPECT_EQ(message_of("optimizer", known), "");
  known.usable_bytes = 9 * kGibibyte - 1;
  EXPECT_NE(message_of("optimizer", known), "");
  known.rank_bytes = 0;
  EXPECT_EQ(message_of("none", known), "");
}

TEST(OffloadAssemblyTest, shortage_says_need_and_have) {
  const PinnedNeed need{.ranks = 4,
                        .rank_bytes = 2 * kGibibyte,
                        .other_bytes = kGibibyte,
                        .usable_bytes = 6 * kGibibyte};

  const std::string text = message_of("residuals,optimizer", need);

  EXPECT_THAT(text, HasSubstr("--offload residuals,optimizer needs 8.0 GiB of pinned memory"));
  EXPECT_THAT(text, HasSubstr("4 rank(s), and 1.0 GiB beside it; 6.0 GiB are free"));
  EXPECT_THAT(text, HasSubstr("--optimizer-state-dtype bf16"));
  EXPECT_THAT(message_of("residuals", need), HasSubstr("--batch-size-per-rank"));
}

DryRunPlace place(std::int64_t host_bytes) {
  DryRunPlace place{.ranks_on_host = 2, .host_bytes = host_bytes};
  place.launcher.size = 2;
  return place;
}

TEST(OffloadAssemblyTest, dry_run_has_a_line_for_the_host) {
  EXPECT_THAT(dry_run_text(options_of("none"), place(64 * kGibibyte)), Not(HasSubstr("Pinned")));

  const std::string text = dry_run_text(options_of("residuals,optimizer"), place(64 * kGibibyte));

  EXPECT_THAT(text, HasSubstr("Pinned memory of each host: "));
  EXPECT_THAT(text, HasSubstr(" MiB for 2 rank(s), each 1424.1 MiB of optimizer state and 120.0 "
                              "MiB of blocks' inputs (--offload); 65536.0 MiB are free"));
  EXPECT_THAT(text, HasSubstr("  two buffers          96.0 MiB"));
  EXPECT_THAT(text, HasSubstr("  moments               0.0 MiB"));
}

// With 12 sequences of 1024 tokens: inputs and targets of 8 bytes, of four batches that are held
// and four ahead.
TEST(OffloadAssemblyTest, dry_run_for_a_gpu_counts_libraries_and_pinned_batches) {
  const auto text_of = [](const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {
        "--data", "synthetic", "--model", "gpt2-124m", "--batch-size-per-rank", "12"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return dry_run_text(parse_train_options(arguments), place(64 * kGibibyte));
  };

  EXPECT_THAT(text_of({"--device", "cuda"}),
              AllOf(HasSubstr("  and libraries      1024.0 MiB of CUDA, cuBLAS and NCCL"),
                    HasSubstr("  on the host           1.5 MiB pinned for batches")));
  EXPECT_THAT(text_of({"--device", "cuda", "--pin-memory", "off"}), Not(HasSubstr("pinned for")));
  EXPECT_THAT(text_of({"--device", "cpu"}),
              AllOf(Not(HasSubstr("and libraries")), Not(HasSubstr("pinned for"))));
}

TEST(OffloadAssemblyTest, dry_run_for_a_gpu_says_where_there_is_none) {
  DryRunPlace with_gpu = place(64 * kGibibyte);
  with_gpu.has_gpu = true;
  constexpr const char* kWords = "No GPU was found on this machine: planned for one all the same";

  EXPECT_THAT(dry_run_text(options_of("none"), place(64 * kGibibyte)), HasSubstr(kWords));
  EXPECT_THAT(dry_run_text(options_of("none"), with_gpu), Not(HasSubstr(kWords)));
  EXPECT_THAT(dry_run_text(parse_train_options({"--data", "synthetic", "--device", "cpu"}),
                           place(64 * kGibibyte)),
              Not(HasSubstr(kWords)));
}

TEST(OffloadAssemblyTest, dry_run_of_what_the_host_has_not_is_refused) {
  EXPECT_THROW(dry_run_text(options_of("optimizer"), place(kGibibyte)), core::ConfigError);
}

// What --device auto comes to where there is no GPU; a run refuses the same.
TEST(OffloadAssemblyTest, dry_run_on_processors_refuses_what_needs_a_gpu) {
  const auto refused = [](const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {"--data", "synthetic", "--device", "auto"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    try {
      dry_run_text(parse_train_options(arguments), place(64 * kGibibyte));
    } catch (const core::ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };

  EXPECT_EQ(refused({}), "");
  EXPECT_THAT(refused({"--offload", "optimizer"}), HasSubstr("--offload optimizer"));
  EXPECT_THAT(refused({"--precision", "fp16"}), HasSubstr("use bf16"));
  EXPECT_THAT(refused({"--precision", "tf32"}), HasSubstr("fp32 or bf16"));
  EXPECT_THAT(refused({"--cuda-graph", "on"}), HasSubstr("needs a GPU"));
}

}  // namespace
}  // namespace sidestream::launch
