// Sizes of buffers as text, and what `sidestream bench` makes of its flags.
#include "launch/options/bench_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "launch/options/byte_sizes.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/launch/options/config_error.hpp"

namespace sidestream::launch {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

std::string bench_error(const Words& words) {
  return config_error_of([&] { parse_bench_options(words); });
}

TEST(ByteSizesTest, letters_are_powers_of_1024) {
  EXPECT_THAT(parse_byte_sizes("4k,64K,1m,25M,1g,7"),
              ElementsAre(4096, 65536, 1 << 20, 25 << 20, 1 << 30, 7));
  EXPECT_THAT(parse_byte_sizes("1024g"), ElementsAre(std::size_t{1} << 40));
}

TEST(ByteSizesTest, text_reads_back) {
  EXPECT_EQ(byte_sizes_text({4096, 25 << 20, 1 << 30, 1000, 1536}), "4k,25m,1g,1000,1536");
  EXPECT_THAT(parse_byte_sizes(byte_sizes_text({4096, 1000})), ElementsAre(4096, 1000));
}

TEST(ByteSizesTest, a_bad_word_is_named_with_what_it_should_be) {
  for (const char* word : {"", "k", "0", "0k", "-4k", "4q", "4kb", "4 k", " 4k", "4.5m", "1025g",
                           "99999999999999999999", "18446744073709551615k"}) {
    const std::string message =
        config_error_of([&] { parse_byte_sizes(std::string("1m,") + word); });
    EXPECT_THAT(message, AllOf(HasSubstr("such as 4k,25m,1g"),
                               HasSubstr("found '" + std::string(word) + "' in '1m,")));
  }
  EXPECT_THAT(config_error_of([] { parse_byte_sizes("4q"); }), HasSubstr("found '4q'"));
  EXPECT_THAT(config_error_of([] { parse_byte_sizes(""); }), HasSubstr("found ''"));
  EXPECT_THAT(config_error_of([] { parse_byte_sizes("4k,"); }), HasSubstr("found '' in '4k,'"));
}

TEST(BenchOptionsTest, parse_sets_every_member_of_a_collective) {
  const BenchOptions options =
      parse_bench_options({"reducescatter", "--sizes", "4k,1m", "--dtype", "bf16", "--repeats", "7",
                           "--backend", "mpi", "--share-gpus", "on"});

  EXPECT_EQ(options.subject, BenchSubject::kReduceScatter);
  EXPECT_THAT(bench_sizes(options), ElementsAre(4096, 1 << 20));
  EXPECT_EQ(options.dtype, core::DType::kBFloat16);
  EXPECT_EQ(options.repeats, 7);
  EXPECT_EQ(options.backend, comm::Backend::kMpi);
  EXPECT_EQ(options.gpu_sharing, comm::GpuSharing::kAllowed);
}

TEST(BenchOptionsTest, sizes_that_nobody_named_are_those_of_the_subject) {
  const auto collective = bench_sizes(parse_bench_options({"allreduce"}));

  EXPECT_EQ(collective.front(), 4096);
  EXPECT_EQ(collective.back(), std::size_t{256} << 20);
  EXPECT_LT(bench_sizes(parse_bench_options({"overlap"})).size(), collective.size());
}

TEST(BenchOptionsTest, names_read_back) {
  EXPECT_EQ(name_of(BenchSubject::kOverlap), "overlap");
  EXPECT_EQ(short_name_of(core::DType::kBFloat16), "bf16");
}

TEST(BenchOptionsTest, what_makes_no_sense_is_refused) {
  EXPECT_THAT(bench_error({"allreduce", "--sizes", "4k,5x"}),
              AllOf(HasSubstr("--sizes"), HasSubstr("'5x'")));
  EXPECT_THAT(bench_error({"allreduce", "--dtype", "fp8"}),
              AllOf(HasSubstr("--dtype"), HasSubstr("fp32, bf16, fp16, int64")));
  EXPECT_THAT(bench_error({"allreduce", "--repeats", "0"}), HasSubstr("--repeats"));
  EXPECT_THAT(bench_error({"allreduce", "--backend", "gloo"}),
              AllOf(HasSubstr("--backend"), HasSubstr("auto, mpi, nccl")));
  EXPECT_THAT(bench_error({"allreduce", "--device", "cpu", "--backend", "nccl"}),
              HasSubstr("exclude each other"));
  EXPECT_THAT(bench_error({"overlap", "--dtype", "int64"}), HasSubstr("no matrix product"));
  for (const char* flag : {"--sizes", "--dtype", "--repeats"}) {
    const char* value = flag == std::string("--sizes")   ? "4k"
                        : flag == std::string("--dtype") ? "bf16"
                                                         : "3";
    EXPECT_THAT(bench_error({"ceilings", flag, value}),
                AllOf(HasSubstr(flag), HasSubstr("bench ceilings")));
  }
}

TEST(BenchOptionsTest, what_is_stored_anyway_needs_no_replace) {
  EXPECT_THAT(bench_error({"allgather", "--replace", "on"}),
              AllOf(HasSubstr("--replace"), HasSubstr("always stores its newest")));
  EXPECT_THAT(bench_error({"overlap", "--replace", "on"}), HasSubstr("bench ceilings"));
}

TEST(BenchOptionsTest, ceilings_refuse_what_their_ranks_have_no_use_for) {
  const auto error_with = [](int ranks, Words flags) {
    flags.insert(flags.begin(), "ceilings");
    return config_error_of([&] { check_ranks_of_bench(parse_bench_options(flags), ranks); });
  };

  EXPECT_THAT(error_with(2, {"--threads", "3"}),
              AllOf(HasSubstr("--threads"), HasSubstr("without mpirun")));
  EXPECT_THAT(error_with(1, {"--backend", "mpi"}),
              AllOf(HasSubstr("--backend"), HasSubstr("mpirun -np 2")));
  EXPECT_THAT(error_with(1, {"--share-gpus", "on"}),
              AllOf(HasSubstr("--share-gpus"), HasSubstr("mpirun -np 2")));
  EXPECT_NO_THROW(check_ranks_of_bench(parse_bench_options({"ceilings", "--threads", "3"}), 1));
  EXPECT_NO_THROW(check_ranks_of_bench(
      parse_bench_options({"ceilings", "--backend", "mpi", "--share-gpus", "on"}), 2));
  EXPECT_NO_THROW(check_ranks_of_bench(parse_bench_options({"allreduce", "--backend", "mpi"}), 2));
}

TEST(StepBenchOptionsTest, flags_of_train_pass_through) {
  const StepBenchOptions options =
      parse_bench_options({"step", "--model", "gpt2-tiny", "--batch-size-per-rank", "2",
                           "--sequence-length", "32", "--precision", "bf16", "--steps", "12",
                           "--warm-up", "3", "--overlap", "off"})
          .step;

  EXPECT_EQ(options.warm_up, 3);
  EXPECT_FALSE(options.keeps_run);
  EXPECT_EQ(options.train.model.preset, "gpt2-tiny");
  EXPECT_EQ(options.train.data.batch_size_per_rank, 2);
  EXPECT_EQ(options.train.data.sequence_length, 32);
  EXPECT_EQ(options.train.precision, Precision::kBf16);
  EXPECT_EQ(options.train.steps, 12);
  EXPECT_EQ(options.train.parallel.gradient_sync, parallel::GradientSync::kBucketed);
}

TEST(StepBenchOptionsTest, every_step_of_synthetic_data_is_measured) {
  const TrainOptions train = parse_bench_options({"step"}).step.train;

  EXPECT_EQ(train.model.preset, "gpt2-mini");
  EXPECT_EQ(train.data.source, "synthetic");
  EXPECT_EQ(train.steps, 30);
  EXPECT_EQ(train.log_every, 1);
  EXPECT_EQ(train.evaluation.every, 0);
  EXPECT_EQ(train.checkpoint.every, 0);
  EXPECT_TRUE(parse_bench_options({"step", "--run-dir", "runs/a"}).step.keeps_run);
}

TEST(StepBenchOptionsTest, a_file_keeps_what_is_not_measured) {
  const core::ScratchFolder scratch;
  const std::string file = (scratch / "train.cfg").string();
  std::ofstream(file) << "model = gpt2-tiny\ndata = data/code\nsteps = 9000\n";
  const TrainOptions train = parse_bench_options({"step", "--config", file}).step.train;

  EXPECT_EQ(train.model.preset, "gpt2-tiny");
  EXPECT_EQ(train.data.source, "synthetic");
  EXPECT_EQ(train.steps, 30);
  std::ofstream(file) << "eval-every = 10\ntarget-val-loss = 2\ndata = data/code\n";
  EXPECT_THAT(bench_error({"step", "--config", file}),
              AllOf(HasSubstr(file), HasSubstr("target-val-loss"), HasSubstr("file without")));
}

// As the config.cfg of a run may be.
TEST(StepBenchOptionsTest, steps_are_neither_recorded_nor_sampled_because_a_file_says_so) {
  const core::ScratchFolder scratch;
  const std::string file = (scratch / "config.cfg").string();
  std::ofstream(file) << "model = gpt2-tiny\nrecord = on\nsample-hz = 7\nresume = /x/y\n";

  const StepBenchOptions options = parse_bench_options({"step", "--config", file}).step;
  const StepBenchOptions asked =
      parse_bench_options({"step", "--config", file, "--record", "on", "--sample-hz=5"}).step;

  EXPECT_EQ(options.train.record.record, RecordedSteps::kNone);
  EXPECT_EQ(options.train.record.sample_hz, 0);
  EXPECT_EQ(options.train.checkpoint.resume, "none");
  EXPECT_THAT(options.remarks,
              ::testing::ElementsAre(
                  file + ":4: resume = /x/y is not taken over: every run starts from the beginning",
                  file + ":2: record = on is not taken over: timed runs are not recorded; --record "
                         "on beside --config does it",
                  ::testing::StartsWith(file + ":3: sample-hz = 7 is not taken over")));
  EXPECT_EQ(asked.train.record.record, RecordedSteps::kAll);
  EXPECT_EQ(asked.train.record.sample_hz, 5);
  EXPECT_EQ(asked.remarks.size(), 1u);
}

TEST(StepBenchOptionsTest, a_file_that_profiles_or_plants_faults_is_refused_with_its_line) {
  const core::ScratchFolder scratch;
  const std::string file = (scratch / "config.cfg").string();
  for (const std::string line : {"profile = wait=1,warmup=1,active=3", "inject = nan:step=6"}) {
    std::ofstream(file) << "model = gpt2-tiny\n" << line << "\n";
    const std::string name = line.substr(0, line.find(' '));

    EXPECT_THAT(bench_error({"step", "--config", file}),
                AllOf(HasSubstr(file + ":2: " + name), HasSubstr("Take the line out")));
  }
  EXPECT_NO_THROW(parse_bench_options({"step", "--config", file, "--inject", "nan:step=7"}));
}

TEST(StepBenchOptionsTest, what_makes_no_sense_is_refused) {
  EXPECT_THAT(bench_error({"step", "--modle", "gpt2-tiny"}),
              AllOf(HasSubstr("unknown flag '--modle'"), HasSubstr("--model"),
                    HasSubstr("sidestream bench step --help")));
  EXPECT_THAT(bench_error({"step", "--steps", "5"}),
              AllOf(HasSubstr("--warm-up"), HasSubstr("less than the 5")));
  EXPECT_THAT(bench_error({"step", "--log-every", "5"}), HasSubstr("leave it out"));
  EXPECT_THAT(bench_error({"step", "--resume", "auto"}), HasSubstr("leave it out"));
  EXPECT_THAT(bench_error({"step", "--batch-size-per-rank", "none"}),
              HasSubstr("--batch-size-per-rank"));
  EXPECT_THAT(bench_error({"--seconds", "1", "step"}), HasSubstr("the word comes first"));
}

TEST(BenchHelpTest, every_subject_has_an_example) {
  const std::string help = bench_help(100);

  for (const char* subject :
       {"ceilings", "allreduce", "allgather", "reducescatter", "overlap", "step"})
    EXPECT_THAT(help, HasSubstr(std::string("sidestream bench ") + subject));
  for (const char* flag : {"--sizes", "--dtype", "--repeats", "--backend", "--warm-up"})
    EXPECT_THAT(help, HasSubstr(flag));
}

}  // namespace
}  // namespace sidestream::launch
