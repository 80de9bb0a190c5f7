// Counters of Nsight Compute: their CSV, what they replace, and the commands that read them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <regex>
#include <string>

#include "core/base/error.hpp"
#include "core/base/shell_words.hpp"
#include "profiling/advice/ncu_command.hpp"
#include "profiling/advice/roofline.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/advice/operation_maker.hpp"
#include "tests/profiling/trace/trace_text.hpp"

namespace sidestream::advice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

TEST(FunctionNameTest, as_ncu_matches_them) {
  EXPECT_EQ(function_of("void at::native::vectorized_elementwise_kernel<4, float>(int, float)"),
            "vectorized_elementwise_kernel");
  EXPECT_EQ(function_of("ampere_sgemm_128x64_nn"), "ampere_sgemm_128x64_nn");
  EXPECT_EQ(function_of("void at::native::(anonymous "
                        "namespace)::vectorized_layer_norm_kernel<float, float>(int, float)"),
            "vectorized_layer_norm_kernel");
}

TEST(FunctionNameTest, arguments_of_templates_do_not_count) {
  EXPECT_EQ(
      function_of(
          "void a::(anonymous namespace)::Copy<a::(anonymous namespace)::Opaque<16u>, int>(int)"),
      "Copy");
}

TEST(KernelKeyTest, demanglers_agree) {
  EXPECT_EQ(
      kernel_key("void a::(anonymous namespace)::foo<4, a::Fill<float>, true, char* >(int, float)"),
      kernel_key("void a::<unnamed>::foo<(int)4, a::Fill<float>, (bool)1, char *>(T2, T3)"));
  EXPECT_NE(kernel_key("void foo<a::Fill>(int)"), kernel_key("void foo<a::Add>(int)"));
  EXPECT_EQ(kernel_key("void foo<16u>(int)"), "foo<16>");
  EXPECT_EQ(kernel_key("a16u<true, untrue, false, 1ul, 0x1u>"), "a16u<1,untrue,0,1,0x1u>");
  EXPECT_EQ(kernel_key("ampere_sgemm_128x64_nn"), "ampere_sgemm_128x64_nn");
}

TEST(KernelKeyTest, names_may_be_as_long_as_a_file) {
  const std::string digits(400'000, '1');
  EXPECT_EQ(kernel_key("void foo<" + digits + "u>(int)"), "foo<" + digits + ">");
}

std::vector<std::string> commands_of(const std::string& run) {
  return ncu_commands({{"void a::foo<a::Fill<float> >(int)", 12},
                       {"ncclDevKernel_AllReduce", 1},
                       {"Memcpy HtoD", 1},
                       {"aten::mm", 1},
                       {"bar", 2}},
                      {}, core::words_of_shell(run));
}

TEST(NcuCommandTest, one_command_a_kernel_and_none_for_collectives) {
  const auto commands = commands_of("sidestream train");

  ASSERT_EQ(commands.size(), 2u);
  EXPECT_THAT(commands[0], HasSubstr("--kernel-name 'regex:\\bfoo\\b.*\\bFill\\b.*\\bfloat\\b'"));
  EXPECT_THAT(commands[0], HasSubstr("--launch-skip 36 "));
  EXPECT_THAT(commands[1], HasSubstr("'regex:\\bbar\\b'"));
  EXPECT_THAT(commands[1], HasSubstr("dram__bytes.sum"));
  EXPECT_TRUE(ncu_commands({{"ncclDevKernel_AllReduce", 1}, {"aten::mm", 1}}, {}, {}).empty());
}

TEST(NcuCommandTest, types_of_two_words_are_left_out) {
  const auto commands = ncu_commands({{"void foo<unsigned int, Fill>(int)", 1}}, {}, {});
  EXPECT_THAT(commands.at(0), HasSubstr("'regex:\\bfoo\\b.*\\bFill\\b'"));
}

std::string vectorized(const std::string& width, const std::string& length) {
  return "void at::native::vectorized_elementwise_kernel<" + width +
         ", at::native::FillFunctor<float>, std::array<char*, " + length + "> >(int, float)";
}

// As a shell, and then ncu, read it.
std::regex pattern_in(const std::string& command) {
  const std::size_t begin = command.find("'regex:") + 7;
  return std::regex(command.substr(begin, command.find('\'', begin) - begin));
}

TEST(NcuCommandTest, kernels_that_differ_in_a_number_are_told_apart) {
  const auto pattern = pattern_in(ncu_commands({{vectorized("4", "1ul"), 1}}, {}, {}).at(0));

  EXPECT_TRUE(std::regex_search(vectorized("4", "1ul"), pattern));
  EXPECT_TRUE(std::regex_search(
      std::string("void at::native::vectorized_elementwise_kernel<(int)4, "
                  "at::native::FillFunctor<float>, std::array<char *, (unsigned long)1>>(int, T2)"),
      pattern));
  EXPECT_FALSE(std::regex_search(vectorized("2", "1ul"), pattern));
  EXPECT_FALSE(std::regex_search(vectorized("4", "3ul"), pattern));
  EXPECT_FALSE(std::regex_search(vectorized("64", "1ul"), pattern));
}

TEST(NcuCommandTest, truth_values_are_numbers_of_other_demanglers) {
  const auto pattern = pattern_in(ncu_commands({{"void foo<true, false>(int)", 1}}, {}, {}).at(0));

  for (const char* name : {"void foo<true, false>(int)", "void foo<(bool)1, (bool)0>(int)"})
    EXPECT_TRUE(std::regex_search(std::string(name), pattern)) << name;
  EXPECT_FALSE(std::regex_search(std::string("void foo<(bool)1, (bool)1>(int)"), pattern));
}

// What is too long for the pattern tells the two apart.
TEST(NcuCommandTest, launches_of_others_that_the_pattern_fits_are_skipped_too) {
  const std::string long_name = "void foo<" + std::string(120, 'x') + ">(int)";
  const std::string longer_name = "void foo<" + std::string(121, 'x') + ">(int)";
  const std::vector<MeasuredKernel> launched = {
      {long_name, 2}, {longer_name, 4}, {"void food<int>(int)", 8}, {"Memcpy foo", 16}};

  const auto commands = ncu_commands({launched[0]}, launched, {});

  EXPECT_THAT(commands.at(0), HasSubstr("--launch-skip 18 --launch-count 15 "));
  EXPECT_THAT(ncu_commands({{vectorized("4", "1ul"), 2}},
                           {{vectorized("4", "1ul"), 2}, {vectorized("2", "1ul"), 4}}, {})
                  .at(0),
              HasSubstr("--launch-skip 6 --launch-count 5 "));
}

TEST(NcuCommandTest, names_without_a_word_have_no_command) {
  EXPECT_TRUE(ncu_commands({{"?", 1}, {"", 1}}, {}, {}).empty());
}

TEST(NcuCommandTest, the_run_directory_is_fresh_and_the_profiler_is_off) {
  const auto commands = commands_of(
      "sidestream train --run-dir runs/a --profile wait=1,active=2 --profile-shapes --resume=auto "
      "--steps 20");

  EXPECT_THAT(commands[0],
              HasSubstr("sidestream train --steps 20 --run-dir runs/a_ncu1 > ncu1.csv"));
  EXPECT_THAT(commands[1], HasSubstr("--run-dir runs/a_ncu2 > ncu2.csv"));
  EXPECT_THAT(commands[0], Not(HasSubstr("--profile")));
}

// A path with a blank is one word, and nothing of a record is more than a word.
TEST(NcuCommandTest, what_a_shell_would_take_apart_stays_quoted) {
  const auto commands =
      commands_of("sidestream train --run-dir 'my runs/a' --init '' --data 'it'\\''s' ; x $(x)");

  EXPECT_THAT(commands[0], HasSubstr(R"(train --init '' --data 'it'\''s' ';' x '$(x)')"
                                     " --run-dir 'my runs/a_ncu1' > ncu1.csv"));
}

class NcuCsvTest : public ::testing::Test {
 protected:
  std::filesystem::path file(const std::string& text) {
    return test::write_text(scratch_ / "ncu.csv", text);
  }
  std::string error_of(const std::string& text) {
    try {
      read_ncu_csv(file(text));
    } catch (const core::DataError& error) {
      return error.what();
    }
    return "no error";
  }
  core::ScratchFolder scratch_;
};

const char* kWide =
    "==PROF== Connected to process 12\n"
    R"csv("ID","Kernel Name","gpu__time_duration.sum","dram__bytes.sum","sm__throughput.avg.pct_of_peak_sustained_elapsed","gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed","sm__warps_active.avg.pct_of_peak_sustained_active","launch__occupancy_limit_registers","launch__occupancy_limit_warps","lts__t_sector_hit_rate.pct"
"","","usecond","Mbyte","%","%","%","block","block","%"
"0","void foo<float>(int, float)","10","1,000","20","80","15","2","8","n/a"
"1","void foo<float>(int, float)","30","3,000","40","60","17","2","8","n/a"
)csv";

TEST_F(NcuCsvTest, wide_rows_are_launches_and_units_count) {
  const auto launches = read_ncu_csv(file(kWide));
  ASSERT_EQ(launches.size(), 2u);
  const NcuCounters foo = counters_by_kernel(launches).at("foo<float>");

  EXPECT_EQ(foo.launches, 2);
  EXPECT_NEAR(*foo.duration_s, 20e-6, 1e-12);
  EXPECT_DOUBLE_EQ(*foo.dram_bytes, 2e9);
  EXPECT_EQ(foo.occupancy_limiter, "registers");
  EXPECT_FALSE(foo.l2_hit_percent);
}

// A launch whose counters could not be read; a number beyond a double is none either.
TEST_F(NcuCsvTest, cells_that_are_no_finite_number_are_not_measured) {
  for (const char* unread : {"nan", "-nan", "NaN", "inf", "-inf", "1e999", "-5000", "4,00",
                             "1234,567", ",234", "1,234.", "1.234,5", "1,2a4"}) {
    const std::string row = std::string("\"2\",\"void foo<float>(int, float)\",\"") + unread +
                            "\",\"" + unread + "\",\"" + unread +
                            "\",\"60\",\"16\",\"2\",\"8\",\"" + unread + "\"\n";
    const NcuCounters foo = counters_by_kernel(read_ncu_csv(file(kWide + row))).at("foo<float>");
    EXPECT_EQ(foo.compute_percent, 30) << unread;
    EXPECT_EQ(foo.dram_bytes, 2e9) << unread;
    EXPECT_FALSE(foo.l2_hit_percent) << unread;
    EXPECT_EQ(foo.launches, 3) << unread;
  }
}

TEST_F(NcuCsvTest, numbers_have_as_many_thousands_as_a_file_likes) {
  std::string vast = "1";
  for (int i = 0; i < 200'000; ++i) vast += ",234";
  const std::string row = R"("2","bar","1,234,567.5",")" + vast + R"(","1","1","1","1","1","1")";
  const NcuCounters bar = counters_by_kernel(read_ncu_csv(file(kWide + row))).at("bar");

  EXPECT_DOUBLE_EQ(*bar.duration_s, 1.2345675);
  EXPECT_FALSE(bar.dram_bytes) << "a number beyond a double";
}

TEST_F(NcuCsvTest, counters_replace_estimates) {
  const auto counters = counters_by_kernel(read_ncu_csv(file(kWide)));
  const auto point = place_operation(operation("void foo<float>(int, float)", 100, 10, 8e11, 1e10),
                                     machine(), counters);

  EXPECT_EQ(point.bound, "memory");
  EXPECT_DOUBLE_EQ(*point.share_of_roof, 0.7);
  EXPECT_THAT(point.cause, HasSubstr("occupancy 16 %, limited by registers"));
}

TEST_F(NcuCsvTest, counters_of_another_instance_do_not_count) {
  const auto counters = counters_by_kernel(read_ncu_csv(file(kWide)));
  EXPECT_FALSE(counters_for(counters, "void foo<double>(int, double)"));
  EXPECT_TRUE(counters_for(counters, "void foo<float>(int, float)"));
  NcuByKernel bare;
  bare["foo"].launches = 3;
  EXPECT_TRUE(counters_for(bare, "void foo<double>(int, double)"));
}

TEST_F(NcuCsvTest, rates_come_from_the_counters_and_go_into_the_report) {
  const auto counters = counters_by_kernel(read_ncu_csv(file(
      R"csv("ID","Kernel Name","gpu__time_duration.sum","dram__bytes.sum","sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active","smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
"","","usecond","byte","%","inst"
"0","foo","10","1000000","0","2000000"
)csv")));
  Json report = {{"top_ops", {in_fp32(operation("foo", 100, 10, 8e13, 1e13))}}};
  report["top_ops"][0]["bytes_at_least"] = true;

  add_rooflines(report, machine(), counters);

  const Json& one = report["top_ops"][0];
  EXPECT_FALSE(one["bytes_at_least"].get<bool>()) << "counters saw all of them";
  EXPECT_NEAR(one["flops_per_s"].get<double>(), 4e6 / 10e-6, 1);  // an FMA is two
  EXPECT_NEAR(one["bytes_per_s"].get<double>(), 1e6 / 10e-6, 1);
  EXPECT_NEAR(one["intensity"].get<double>(), 4, 1e-9);
  EXPECT_EQ(one["counters"]["dram_bytes"], 1e6);
  EXPECT_TRUE(one["counters"]["compute_percent"].is_null());
  EXPECT_THAT(one["cause"].get<std::string>(), Not(HasSubstr("by its counters")));
}

// As `ncu --csv --page raw` writes them: every metric that is asked for stands in the header, with
// its unit below. The values tell each from the others.
const char* kMemoryAndStalls =
    R"csv("ID","Kernel Name","l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio","l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum","lts__t_sector_hit_rate.pct","smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio","smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio","smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio","smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio","smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio","smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio","smsp__average_warps_issue_stalled_wait_per_issue_active.ratio"
"","","sector/request","","%","inst","inst","inst","inst","inst","inst","inst"
"0","foo","14","4,000","60","{}","{}","{}","{}","{}","{}","{}"
"1","foo","18","6,000","70","{}","{}","{}","{}","{}","{}","{}"
)csv";

std::string with_top_stall(std::size_t which) {
  std::string text = kMemoryAndStalls;
  for (std::size_t cell = 0, at; (at = text.find("{}")) != std::string::npos; ++cell)
    text.replace(at, 2, cell % 7 == which ? "5.5" : "0." + std::to_string(cell % 7 + 1));
  return text;
}

TEST_F(NcuCsvTest, sectors_conflicts_hits_and_the_top_stall_are_read) {
  const std::array<const char*, 7> names = {"barrier",
                                            "LG throttle",
                                            "long scoreboard (global memory)",
                                            "math pipe throttle",
                                            "MIO throttle",
                                            "short scoreboard (shared memory)",
                                            "wait"};
  for (std::size_t which = 0; which < names.size(); ++which) {
    const NcuCounters foo = counters_by_kernel(read_ncu_csv(file(with_top_stall(which)))).at("foo");
    EXPECT_DOUBLE_EQ(foo.sectors_per_request.value_or(-1), 16);
    EXPECT_DOUBLE_EQ(foo.bank_conflicts.value_or(-1), 5000);
    EXPECT_DOUBLE_EQ(foo.l2_hit_percent.value_or(-1), 65);
    EXPECT_EQ(foo.top_stall, names[which]);
  }
}

TEST_F(NcuCsvTest, sectors_conflicts_hits_and_the_top_stall_go_into_the_report) {
  const auto counters = counters_by_kernel(read_ncu_csv(file(with_top_stall(2))));
  Json report = {{"top_ops", {in_fp32(operation("foo", 100, 10, 8e13, 1e13))}}};

  add_rooflines(report, machine(), counters);

  const Json& one = report["top_ops"][0];
  EXPECT_EQ(one["counters"]["sectors_per_request"], 16);
  EXPECT_EQ(one["counters"]["bank_conflicts"], 5000);
  EXPECT_EQ(one["counters"]["l2_hit_percent"], 65);
  EXPECT_EQ(one["counters"]["top_stall"], "long scoreboard (global memory)");
  EXPECT_THAT(one["cause"].get<std::string>(), HasSubstr("warps wait most for long scoreboard"));
}

// 16 bytes a thread, one after the other, are 16 sectors a warp.
TEST_F(NcuCsvTest, more_sectors_than_the_widest_loads_need_are_scattered) {
  auto counters = counters_by_kernel(read_ncu_csv(file(with_top_stall(2))));
  const auto cause = [&](double sectors) {
    for (auto& [kernel, one] : counters) one.sectors_per_request = sectors;
    return place_operation(in_fp32(operation("foo", 100, 10, 8e13, 1e13)), machine(), counters)
        .cause;
  };
  EXPECT_THAT(cause(16), ::testing::Not(HasSubstr("scattered")));
  EXPECT_THAT(cause(24), HasSubstr("24.0 sectors a request: accesses are scattered"));
}

// Each of the four limits in blocks; the least one limits.
TEST_F(NcuCsvTest, every_limit_of_occupancy_is_read) {
  const std::array<const char*, 4> names = {"blocks", "registers", "shared memory", "warps"};
  for (std::size_t which = 0; which < names.size(); ++which) {
    std::string row = R"csv("0","foo","20")csv";
    for (std::size_t i = 0; i < names.size(); ++i) row += i == which ? ",\"2\"" : ",\"8\"";
    const NcuCounters foo =
        counters_by_kernel(
            read_ncu_csv(file(
                R"csv("ID","Kernel Name","sm__warps_active.avg.pct_of_peak_sustained_active","launch__occupancy_limit_blocks","launch__occupancy_limit_registers","launch__occupancy_limit_shared_mem","launch__occupancy_limit_warps"
"","","%","block","block","block","block"
)csv" + row + "\n")))
            .at("foo");
    EXPECT_EQ(foo.occupancy_limiter, names[which]);
  }
}

TEST_F(NcuCsvTest, a_cut_file_is_refused_with_the_place) {
  const std::string whole = kWide;
  const std::string cut = whole.substr(0, whole.rfind("\"2\",\"8\""));
  EXPECT_THAT(error_of(cut), HasSubstr("the file was cut"));
  EXPECT_THAT(error_of(cut), HasSubstr(std::to_string(whole.rfind("\"1\",\"void"))));
}

TEST_F(NcuCsvTest, a_file_that_ends_inside_of_a_cell_was_cut) {
  const std::string whole = kWide;
  EXPECT_THAT(error_of(whole.substr(0, whole.size() - 3)), HasSubstr("the file was cut"));
}

TEST_F(NcuCsvTest, launches_without_a_metric_that_is_used_are_refused) {
  EXPECT_THAT(error_of("\"ID\",\"Kernel Name\",\"some__other.sum\"\n\"\",\"\",\"\"\n"
                       "\"0\",\"foo\",\"5\"\n"),
              HasSubstr("a metric that is used"));
}

TEST_F(NcuCsvTest, rows_a_metric_are_joined_by_id) {
  const auto launches = read_ncu_csv(file(
      R"csv("ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"
"0","foo(int)","x","gpu__time_duration.sum","nsecond","5,000"
"0","foo(int)","x","dram__bytes.sum","byte","12"
"1","foo(int)","x","gpu__time_duration.sum","nsecond","7000"
)csv"));

  ASSERT_EQ(launches.size(), 2u);
  EXPECT_NEAR(launches[0].metrics.at("gpu__time_duration.sum"), 5e-6, 1e-15);
  EXPECT_DOUBLE_EQ(launches[0].metrics.at("dram__bytes.sum"), 12);
}

TEST_F(NcuCsvTest, what_is_no_csv_of_ncu_is_refused_with_advice) {
  EXPECT_THAT(error_of("a,b\n1,2\n"), HasSubstr("--page raw"));
  EXPECT_THAT(error_of("==ERROR== ERR_NVGPUCTRPERM - no permission\n"),
              HasSubstr("run ncu as root"));
  EXPECT_THAT(error_of("\"ID\",\"Kernel Name\",\"dram__bytes.sum\"\n"),
              HasSubstr("launches after the header"));
  EXPECT_THROW(read_ncu_csv(scratch_ / "not_there.csv"), core::DataError);
}

}  // namespace
}  // namespace sidestream::advice
