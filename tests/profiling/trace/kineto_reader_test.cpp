#include "profiling/trace/kineto_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/error.hpp"
#include "profiling/trace/byte_sink.hpp"
#include "profiling/trace/decimal.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/trace/trace_text.hpp"

namespace sidestream::trace {
namespace {

using test::complete_event;
using test::trace_of;
using test::write_text;

class KinetoReaderTest : public ::testing::Test {
 protected:
  KinetoFile read(const std::string& text) {
    return read_kineto(write_text(scratch_ / "t.json", text));
  }

  std::string message_of(const std::string& text) {
    try {
      read(text);
    } catch (const core::DataError& error) {
      EXPECT_EQ(error.code(), core::ExitCode::kData);
      return error.what();
    }
    return "no error";
  }

  core::ScratchFolder scratch_;
};

TEST(DecimalTest, nanoseconds_are_exact) {
  EXPECT_EQ(nanoseconds_of_microseconds("4458676522690.655"), 4458676522690655);
  EXPECT_EQ(nanoseconds_of_microseconds("1682725898236567"), 1682725898236567000);
  EXPECT_EQ(nanoseconds_of_microseconds("1682725898236567.999"), 1682725898236567999);
  EXPECT_EQ(nanoseconds_of_microseconds("68.0"), 68000);
  EXPECT_EQ(nanoseconds_of_microseconds("-1.5"), -1500);
  EXPECT_EQ(nanoseconds_of_microseconds("0.0004"), 0);
  EXPECT_EQ(nanoseconds_of_microseconds("0.0005"), 1);
  EXPECT_EQ(nanoseconds_of_microseconds("1.5e3"), 1500000);
  for (const char* text : {"", "-", "x", "1.2.3", "99999999999999999999", "1e300", "nan"})
    EXPECT_EQ(nanoseconds_of_microseconds(text), std::nullopt) << text;
}

TEST_F(KinetoReaderTest, order_of_keys_and_white_space_do_not_matter) {
  const KinetoFile file = read(
      "\xEF\xBB\xBF {\"traceEvents\" :\n[ {\"args\": {\"stream\": 7, \"correlation\" : 12 , "
      "\"grid\": [1, 2,3]},\r\n"
      "\"dur\": 2.500 ,\"ts\":10.001, \"tid\": 7,\"pid\":0,\"name\":\"k\\\"1\\\"\", "
      "\"cat\":\"kernel\",\"ph\":\"X\"} ],"
      "\"baseTimeNanoseconds\": 1000, \"distributedInfo\":{\"world_size\":4,\"rank\":3}}  ");

  ASSERT_EQ(file.timeline.size(), 1u);
  EXPECT_TRUE(file.has_rank);
  EXPECT_EQ(file.timeline.info.rank, 3);
  EXPECT_EQ(file.timeline.info.base_ns, 1000);
  EXPECT_EQ(file.timeline.name(0), "k\"1\"");
  EXPECT_EQ(file.timeline.start_ns(0), 10001);
  EXPECT_EQ(file.timeline.duration_ns(0), 2500);
  EXPECT_EQ(file.timeline.device(0)->stream, 7);
  EXPECT_EQ(file.timeline.device(0)->correlation, 12u);
  EXPECT_EQ(file.timeline.device(0)->grid, (std::array<std::uint32_t, 3>{1, 2, 3}));
}

TEST_F(KinetoReaderTest, a_bare_array_is_a_trace) {
  EXPECT_EQ(read("[" + complete_event("cpu_op", "a", "1", "1") + "]").timeline.size(), 1u);
  EXPECT_EQ(read("[" + complete_event("cpu_op", "a", "1", "1") + ",\n").timeline.size(), 1u);
}

TEST_F(KinetoReaderTest, old_category_names) {
  const KinetoFile file = read(trace_of(complete_event("Operator", "a", "1", "1") + "," +
                                        complete_event("Kernel", "b", "1", "1") + "," +
                                        complete_event("Memcpy", "c", "1", "1") + "," +
                                        complete_event("cpu_op", "ProfilerStep#4", "1", "1")));

  ASSERT_EQ(file.timeline.size(), 4u);
  EXPECT_EQ(file.timeline.kind(0), Kind::kOperator);
  EXPECT_EQ(file.timeline.kind(1), Kind::kKernel);
  EXPECT_EQ(file.timeline.kind(2), Kind::kMemcpy);
  EXPECT_EQ(file.timeline.kind(3), Kind::kHostRange);
}

TEST_F(KinetoReaderTest, ids_beyond_64_bits_stay_apart) {
  const KinetoFile file = read(trace_of(
      complete_event("kernel", "a", "1", "1", R"("correlation": 123456789012345678901234567890)") +
      "," +
      complete_event("kernel", "b", "1", "1", R"("correlation": 123456789012345678901234567891)") +
      "," +
      complete_event("cuda_runtime", "c", "1", "1",
                     R"("correlation": 123456789012345678901234567890)")));

  ASSERT_EQ(file.timeline.size(), 3u);
  EXPECT_NE(file.timeline.correlation(0), file.timeline.correlation(1));
  EXPECT_EQ(file.timeline.correlation(0), file.timeline.correlation(2));
}

constexpr const char* kRepaired = "text that is no UTF-8 or has control characters, repaired";

TEST_F(KinetoReaderTest, bad_utf8_is_repaired_and_counted) {
  const KinetoFile file = read(trace_of(complete_event("kernel", "k\xFF\xC3(", "1", "1")));

  ASSERT_EQ(file.timeline.size(), 1u);
  EXPECT_EQ(file.timeline.name(0), "k?\?(");
  EXPECT_EQ(file.timeline.skipped.at(kRepaired), 1u);
}

// Kernels compiled at run time may have names of several lines.
TEST_F(KinetoReaderTest, raw_tabs_and_line_breaks_in_a_name_are_blanks) {
  const KinetoFile file = read(trace_of(complete_event("kernel", "a\tb\r\nc\x01", "1", "2") +
                                        ",\n\t" + complete_event("kernel", "d", "4", "2")));

  ASSERT_EQ(file.timeline.size(), 2u);
  EXPECT_EQ(file.timeline.name(0), "a b  c?");
  EXPECT_EQ(file.timeline.duration_ns(0), 2000);
  EXPECT_EQ(file.timeline.skipped, (std::map<std::string, std::uint64_t>{{kRepaired, 1}}));
}

TEST_F(KinetoReaderTest, senseless_events_are_counted_by_kind) {
  const KinetoFile file = read(
      trace_of(complete_event("kernel", "a", "1", "-5") + "," +
               complete_event("kernel", "b", "\"soon\"", "1") + "," +
               complete_event("kernel", "far", "1e30", "1") + "," +
               complete_event("kernel", "long", "1", "1e30") + "," +
               complete_event("kernel", "word", "1", "\"x\"") + "," +
               complete_event("kernel", "c", "1", "null") + "," +
               complete_event("kernel", "d", "9000000000000000.8", "9000000000000000") +
               R"(,7,{"a" 1},{"cat":"kernel"})" + "," + complete_event("kernel", "e", "1", "1")));

  EXPECT_EQ(file.timeline.size(), 1u);
  EXPECT_EQ(file.timeline.skipped.at("negative duration"), 1u);
  EXPECT_EQ(file.timeline.skipped.at("time that is no number"), 1u);
  EXPECT_EQ(file.timeline.skipped.at("duration that is no number"), 1u);
  EXPECT_EQ(file.timeline.skipped.at("duration out of range"), 1u);
  EXPECT_EQ(file.timeline.skipped.at("no duration"), 1u);
  EXPECT_EQ(file.timeline.skipped.at("time out of range"), 2u);
  EXPECT_EQ(file.timeline.skipped.at("no object"), 1u);
  EXPECT_EQ(file.timeline.skipped.at("broken JSON"), 1u);
  EXPECT_EQ(file.timeline.skipped.at("no phase"), 1u);
  EXPECT_THAT(file.warnings,
              ::testing::ElementsAre(
                  "6 events are left out for times that cannot be; the first is number 1 of the "
                  "file, 'a': expected \"dur\" of 0 or more, found '-5'"));
}

// Profilers leave these out; that is counted, and no more.
TEST_F(KinetoReaderTest, events_without_times_are_no_warning) {
  const KinetoFile file =
      read(trace_of(complete_event("kernel", "a", "1", "null") +
                    R"(,{"ph":"X","cat":"kernel","name":"b","pid":1,"tid":1,"dur":1})"));

  EXPECT_EQ(file.timeline.skipped.at("no duration"), 1u);
  EXPECT_EQ(file.timeline.skipped.at("no time"), 1u);
  EXPECT_THAT(file.warnings, ::testing::IsEmpty());
}

TEST_F(KinetoReaderTest, step_marks_without_times_are_told) {
  const KinetoFile file =
      read(trace_of(complete_event("user_annotation", "ProfilerStep#1", "0", "9") + "," +
                    complete_event("user_annotation", "ProfilerStep#2", "9", "null")));

  EXPECT_THAT(file.warnings,
              ::testing::ElementsAre("1 event is left out for times that cannot be; the first is "
                                     "number 2 of the file, 'ProfilerStep#2': no duration"));
}

TEST_F(KinetoReaderTest, the_latest_time_that_is_believed) {
  const KinetoFile file =
      read(trace_of(complete_event("kernel", "a", "2305843009213693", "1") + "," +
                    complete_event("kernel", "b", "2305843009213694", "1") + "," +
                    complete_event("kernel", "c", "-9e15", "1")));

  ASSERT_EQ(file.timeline.size(), 1u);
  EXPECT_EQ(file.timeline.start_ns(0), 2305843009213693'000);
  EXPECT_EQ(file.timeline.skipped.at("time out of range"), 2u);
}

TEST_F(KinetoReaderTest, sizes_that_no_buffer_has_are_not_known) {
  const auto kernel = [](const std::string& size) {
    return R"({"ph":"X","cat":"kernel","name":"ncclDevKernel","pid":0,"tid":7,"ts":1,"dur":2,)"
           R"("args":{"Collective name":"allreduce","In msg nelems":)" +
           size + R"(,"payload bytes":)" + size + R"(,"Group size":)" + size + "}}";
  };
  for (const char* size : {"-8", "9000000000000000000"}) {
    const KinetoFile file = read(trace_of(kernel(size)));
    const CollectiveDetail* collective = file.timeline.collective(0);
    ASSERT_NE(collective, nullptr);
    EXPECT_EQ(collective->bytes, -1);
    EXPECT_EQ(collective->elements_in, -1);
    EXPECT_EQ(collective->group_size, 0);
  }
  EXPECT_EQ(read(trace_of(kernel("64"))).timeline.collective(0)->bytes, 64);
}

TEST_F(KinetoReaderTest, times_of_a_step_that_cannot_be_are_not_known) {
  const auto unprofiled_ms = [this](const std::string& value) {
    return read(R"({"sidestream":{"unprofiled_step_ms":)" + value +
                R"(,"tokens_per_step":64},"traceEvents":[]})")
        .timeline.info.figures.unprofiled_step_ms;
  };
  EXPECT_EQ(unprofiled_ms("12.5"), 12.5);
  for (const char* value : {"1e300", "-3", "\"long\""}) EXPECT_EQ(unprofiled_ms(value), 0) << value;
}

TEST_F(KinetoReaderTest, counters_are_kept_series_by_series) {
  const KinetoFile file = read(trace_of(
      R"({"args":{"running":150.5,"wait\u0069ng":2,"text":"x","inner":{"y":1}},"ts":10.5,"pid":1,)"
      R"("name":"process cpu [%]","ph":"C"},)"
      R"({"ph":"C","name":"memory","pid":1,"ts":"soon","args":{"used":1}},)"
      R"({"ph":"C","name":"memory","pid":1,"ts":11})"));

  const auto& counters = file.timeline.counters();
  const NameTable& names = file.timeline.names;
  ASSERT_EQ(counters.size(), 2U);
  EXPECT_EQ(names[counters[0].counter], "process cpu [%]");
  EXPECT_EQ(names[counters[0].series], "running");
  EXPECT_EQ(counters[0].time_ns, 10'500);
  EXPECT_EQ(counters[0].value, 150.5);
  EXPECT_EQ(names[counters[1].series], "waiting");
  EXPECT_EQ(file.timeline.skipped.at("time that is no number"), 1U);
  EXPECT_EQ(file.timeline.size(), 0U);
}

// As a merged trace has them: at the beginning of the time that they are of.
TEST_F(KinetoReaderTest, samples_of_the_system_with_a_length_are_of_its_end) {
  const auto counter = [](const char* category) {
    return R"({"ph":"C","cat":")" + std::string(category) +
           R"(","name":"x [%]","pid":1,"ts":10,"dur":2.5,"args":{"y":1}})";
  };
  const KinetoFile file = read(trace_of(counter("system") + "," + counter("of others")));

  const auto& counters = file.timeline.counters();
  ASSERT_EQ(counters.size(), 2u);
  EXPECT_EQ(counters[0].time_ns, 12'500);
  EXPECT_EQ(counters[1].time_ns, 10'000);
}

TEST_F(KinetoReaderTest, deep_nesting_and_huge_events_are_passed_over) {
  const std::string deep =
      R"({"args":)" + std::string(100000, '[') + std::string(100000, ']') + "}";
  const std::string huge =
      complete_event("kernel", std::string(std::size_t{40} << 20, 'x'), "1", "1");
  const KinetoFile file =
      read(trace_of(deep + "," + huge + "," + complete_event("kernel", "k", "1", "1")));

  EXPECT_EQ(file.timeline.size(), 1u);
  EXPECT_EQ(file.timeline.skipped.at("event nested too deeply"), 1u);
  EXPECT_EQ(file.timeline.skipped.at("event above 16 MB"), 1u);
}

TEST_F(KinetoReaderTest, every_truncation_is_an_error_with_its_place) {
  const std::string whole = trace_of(complete_event("kernel", "a\\\"b", "1", "1") + "," +
                                     complete_event("cpu_op", "c", "2", "1"));
  for (std::size_t length = 1; length < whole.size(); ++length)
    EXPECT_THAT(message_of(whole.substr(0, length)), ::testing::HasSubstr("byte ")) << length;
}

TEST_F(KinetoReaderTest, text_that_is_no_trace) {
  EXPECT_THAT(message_of("hello"), ::testing::HasSubstr("expected a JSON object"));
  EXPECT_THAT(message_of("{\"traceEvents\":[}"), ::testing::HasSubstr("expected"));
  EXPECT_THAT(message_of("{\"traceEvents\":{}}"),
              ::testing::HasSubstr("expected traceEvents as a list of events, found '{'"));
  EXPECT_THAT(message_of("{\"a\" 1}"), ::testing::HasSubstr("':'"));
  EXPECT_THAT(message_of("{\"traceEvents\":[{} {}]}"), ::testing::HasSubstr("',' or ']'"));
}

TEST_F(KinetoReaderTest, truncated_gzip_is_an_error) {
  std::string events = complete_event("kernel", "k", "1", "1");
  for (int i = 0; i < 2000; ++i)
    events += "," + complete_event("kernel", "k" + std::to_string(i), std::to_string(i), "1");
  {
    ByteSink sink(scratch_ / "t.json.gz");
    sink.write(trace_of(events));
    sink.finish();
  }
  EXPECT_EQ(read_kineto(scratch_ / "t.json.gz").timeline.size(), 2001u);
  std::filesystem::resize_file(scratch_ / "t.json.gz",
                               std::filesystem::file_size(scratch_ / "t.json.gz") / 2);

  EXPECT_THROW(read_kineto(scratch_ / "t.json.gz"), core::DataError);
}

}  // namespace
}  // namespace sidestream::trace
