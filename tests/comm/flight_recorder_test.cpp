#include "comm/flight_recorder.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "comm/call_check.hpp"
#include "comm/exchange_values.hpp"
#include "comm/failure_hook.hpp"
#include "core/base/error.hpp"

namespace sidestream::comm {
namespace {

Call call_of(std::uint64_t sequence, std::uint64_t count = 10) {
  return {.kind = CallKind::kAllReduce,
          .dtype = core::DType::kFloat32,
          .count = count,
          .sequence = sequence,
          .bytes = 4 * count,
          .bucket = 3};
}

TEST(FlightRecorderTest, note_followsACallToItsEnd) {
  FlightRecorder recorder;

  recorder.note(FlightPlane::kHost, call_of(1), FlightState::kQueued);
  recorder.note(FlightPlane::kHost, call_of(2), FlightState::kQueued);
  recorder.note(FlightPlane::kHost, call_of(1), FlightState::kStarted);
  recorder.note(FlightPlane::kHost, call_of(1), FlightState::kFinished);
  recorder.note(FlightPlane::kHost, call_of(2), FlightState::kStarted);
  recorder.note(FlightPlane::kDevice, call_of(1), FlightState::kQueued);

  const auto flights = recorder.flights();
  ASSERT_EQ(flights.size(), 3U);
  EXPECT_EQ(flights[0].state, FlightState::kFinished);
  EXPECT_GE(flights[0].started_ns, flights[0].queued_ns);
  EXPECT_GE(flights[0].finished_ns, flights[0].started_ns);
  EXPECT_EQ(flights[1].state, FlightState::kStarted);
  EXPECT_EQ(flights[1].finished_ns, 0);
  EXPECT_EQ(flights[2].plane, FlightPlane::kDevice);
  EXPECT_EQ(flights[2].state, FlightState::kQueued);
}

TEST(FlightRecorderTest, flights_theNewestInOrder) {
  FlightRecorder recorder;
  const std::uint64_t calls = FlightRecorder::kKept + 100;
  for (std::uint64_t i = 1; i <= calls; ++i)
    recorder.note(FlightPlane::kHost, call_of(i), FlightState::kQueued);

  const auto flights = recorder.flights();
  ASSERT_EQ(flights.size(), FlightRecorder::kKept);
  EXPECT_EQ(flights.front().call.sequence, 101U);
  EXPECT_EQ(flights.back().call.sequence, calls);
}

TEST(FlightRecorderTest, flights_whileOthersWrite) {
  FlightRecorder recorder;
  std::thread writer([&] {
    for (std::uint64_t i = 1; i <= 20'000; ++i) {
      recorder.note(FlightPlane::kHost, call_of(i), FlightState::kQueued);
      recorder.note(FlightPlane::kHost, call_of(i), FlightState::kFinished);
    }
  });
  std::uint64_t newest = 0;
  while (newest < 20'000) {
    const auto flights = recorder.flights();
    if (flights.empty()) continue;
    EXPECT_GE(flights.back().call.sequence, newest);
    newest = flights.back().call.sequence;
  }
  writer.join();
}

TEST(CallCheckTest, difference_namesTheOddRank) {
  Call other = call_of(7);
  other.kind = CallKind::kBarrier;
  const std::string usual = call_stamp(call_of(7));

  EXPECT_EQ(call_difference({usual, usual, usual}), "");
  EXPECT_EQ(call_difference({usual, call_stamp(other), usual}),
            "rank 1 calls barrier as operation 7, ranks 0, 2 call all_reduce of 10 "
            "float32 for bucket 3 as operation 7: every rank must make the same calls in the same "
            "order; no data was moved");
}

TEST(CallCheckTest, stamp_differsInWhatMatters) {
  Call bucket = call_of(7);
  bucket.bucket = 4;

  EXPECT_NE(call_stamp(call_of(7)), call_stamp(bucket));
  EXPECT_NE(call_stamp(call_of(7)), call_stamp(call_of(8)));
  EXPECT_NE(call_stamp(call_of(7)), call_stamp(call_of(7, 11)));
}

// Two models of one communicator: their buckets may be of one number and size.
TEST(CallCheckTest, stamp_ofABucketSaysOfWhichModelItIs) {
  Call first = call_of(7), second = call_of(7);
  first.model = 0;
  second.model = 1;

  EXPECT_EQ(call_stamp(first), "all_reduce of 10 float32 for bucket 3 as operation 7");
  EXPECT_EQ(call_stamp(second), "all_reduce of 10 float32 for bucket 3 of model 2 as operation 7");
  EXPECT_EQ(second.description(), "all_reduce (operation 7, bucket 3 of model 2, 40 bytes)");
  EXPECT_FALSE(first.agrees_with(second));
  second.model = 0;
  EXPECT_TRUE(first.agrees_with(second));
}

TEST(CallCheckTest, stamp_ofAnExchangeSaysWhatItIsFor) {
  const auto exchange = [](Purpose purpose) {
    return Call{.kind = CallKind::kExchange, .sequence = 7, .purpose = purpose};
  };

  EXPECT_EQ(call_stamp(exchange("step votes")), "exchange of step votes as operation 7");
  EXPECT_EQ(call_stamp(exchange({})), "exchange as operation 7");
  EXPECT_TRUE(exchange("step votes").agrees_with(exchange("step votes")));
  EXPECT_FALSE(exchange("step votes").agrees_with(exchange("outcomes")));
  EXPECT_EQ(Purpose("more letters than there is room for").text(), "more letters than there ");
}

TEST(ExchangeValuesTest, anotherLengthIsRefusedWithItsRank) {
  EXPECT_NO_THROW(require_lengths({"12345678", "abcdefgh"}, 8, "evaluation sums"));
  for (const char* other : {"", "1234567", "123456789"}) {
    try {
      require_lengths({"12345678", other}, 8, "evaluation sums");
      FAIL() << other;
    } catch (const core::CollectiveError& error) {
      EXPECT_NE(std::string(error.what()).find("exchange of evaluation sums: rank 1 sent"),
                std::string::npos)
          << error.what();
    }
  }
}

TEST(FailureHookTest, run_eachOnceUnlessTakenAway) {
  FailureHook hook;
  std::vector<int> ran;
  hook.add([&] { ran.push_back(1); });
  const FailureHook::Id second = hook.add([&] { ran.push_back(2); });
  hook.add([&] {
    ran.push_back(3);
    throw 3;
  });
  hook.add([&] { ran.push_back(4); });
  hook.remove(second);

  hook.run();
  hook.run();

  EXPECT_EQ(ran, (std::vector<int>{1, 3, 4}));
}

}  // namespace
}  // namespace sidestream::comm
