// Ranks that are threads of this process: engine, board and the collectives of a node, without a
// call into MPI, so that the thread sanitizer sees every thread of a rank and what it shares. (What
// ranks share lies at another address on each, as it does between processes: it checks each rank
// by itself.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/node_board.hpp"
#include "comm/node_collectives.hpp"
#include "comm/peer_watch.hpp"
#include "comm/progress_engine.hpp"
#include "core/base/error.hpp"
#include "tests/comm/thread_meeting.hpp"

// Steps of an operation that was cut short stay in memory to the end of the process: others may
// still write there. LeakSanitizer, where there is one, is not to count them.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

namespace sidestream::comm {
namespace {

using test::Meeting;
using ::testing::HasSubstr;

Topology topology_of(int rank, int size) {
  return {.rank = rank,
          .size = size,
          .local_rank = rank,
          .local_size = size,
          .hosts = std::vector<std::string>(static_cast<std::size_t>(size), "here")};
}

std::vector<int> ranks_up_to(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) ranks[static_cast<std::size_t>(rank)] = rank;
  return ranks;
}

// One rank, as HostCommunicator puts it together.
class Rank {
 public:
  Rank(const NodeMeeting& meeting, std::chrono::milliseconds limit)
      : meeting_(meeting),
        limit_(limit),
        topology_(topology_of(meeting.rank, meeting.size)),
        board_(meeting),
        windows_(meeting.rank),
        bounce_(windows_.add(SharedWindow(meeting, NodeCollectives::kBounceBytes))),
        collectives_(board_, windows_, {ranks_up_to(meeting.size)}, 0, nullptr),
        watch_(topology_, {.board = &board_}, ranks_up_to(meeting.size)),
        engine_(meeting.rank, watch_, flights_, Backoff::Manner::kCallerAmongMany,
                {.on_failure = [this] { failures_.fetch_add(1); }, .before_throwing = [] {}}) {}

  float* allocate(std::size_t count) {
    return reinterpret_cast<float*>(windows_.add(SharedWindow(meeting_, count * sizeof(float))));
  }

  std::shared_ptr<Operation> all_reduce(
      float* data, std::size_t count,
      ProgressEngine::DrivenBy driver = ProgressEngine::DrivenBy::kAnyThread) {
    const Call call{.kind = CallKind::kAllReduce,
                    .dtype = core::DType::kFloat32,
                    .count = count,
                    .sequence = ++sequence_,
                    .bytes = count * sizeof(float)};
    auto operation = std::make_shared<Operation>(
        call, collectives_.all_reduce(call, reinterpret_cast<std::byte*>(data)), limit_,
        std::string_view());
    engine_.submit(operation, driver);
    return operation;
  }

  std::shared_ptr<Operation> call(Steps steps, ProgressEngine::DrivenBy driver) {
    auto operation = std::make_shared<Operation>(Call{.sequence = ++sequence_}, std::move(steps),
                                                 limit_, std::string_view());
    engine_.submit(operation, driver);
    return operation;
  }

  int index() const { return meeting_.rank; }
  NodeBoard& board() { return board_; }
  PeerWatch& watch() { return watch_; }
  ProgressEngine& engine() { return engine_; }
  const FlightRecorder& flights() const { return flights_; }
  int failures() const { return failures_.load(); }

 private:
  NodeMeeting meeting_;
  std::chrono::milliseconds limit_;
  Topology topology_;
  NodeBoard board_;
  WindowTable windows_;
  std::byte* bounce_;
  NodeCollectives collectives_;
  PeerWatch watch_;
  FlightRecorder flights_;
  std::atomic<int> failures_{0};
  ProgressEngine engine_;
  std::uint64_t sequence_ = 0;
};

void run_ranks(int size, const std::function<void(Rank&)>& body,
               std::chrono::milliseconds limit = std::chrono::seconds(60)) {
  Meeting meeting(size);
  std::vector<std::jthread> threads;
  for (int index = 0; index < size; ++index) {
    threads.emplace_back([&, index] {
      const NodeMeeting mine = meeting.of(index);
      Rank rank(mine, limit);
      body(rank);
      mine.exchange("leaves");  // windows stay until all are done with them
    });
  }
}

class ThreadsTest : public ::testing::TestWithParam<int> {};

// As in training: several operations in flight, in windows and not, while the caller does something
// else; now and then it waits.
TEST_P(ThreadsTest, allReduce_sumsWhileCallersCompute) {
  constexpr int kRounds = 40;
  constexpr std::size_t kCount = 10'000;
  const int size = GetParam();

  run_ranks(size, [&](Rank& rank) {
    float* shared = rank.allocate(kCount);
    std::vector<float> own(kCount);
    for (int round = 0; round < kRounds; ++round) {
      for (std::size_t i = 0; i < kCount; ++i)
        shared[i] = own[i] = static_cast<float>(rank.index() + round);
      float sum = own[0];
      const auto first = rank.all_reduce(shared, kCount);
      const auto second = rank.all_reduce(own.data(), kCount);
      if (round % 4 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      rank.engine().wait(*first);
      rank.engine().wait(*second);
      rank.engine().wait(*rank.all_reduce(&sum, 1, ProgressEngine::DrivenBy::kCaller));
      const auto expected = static_cast<float>(size * (size - 1) / 2 + size * round);
      ASSERT_EQ(shared[kCount - 1], expected);
      ASSERT_EQ(own[0], expected);
      ASSERT_EQ(sum, expected);
    }
    EXPECT_TRUE(rank.engine().is_idle());
    EXPECT_EQ(rank.failures(), 0);
  });
}

Steps note_driver(std::thread::id& driver) {
  driver = std::this_thread::get_id();
  co_return;
}

// Of a hundred operations that the caller waits for a moment later, those that it drove itself.
int driven_by_caller(Rank& rank, ProgressEngine::DrivenBy wanted) {
  int own = 0;
  for (int i = 0; i < 100; ++i) {
    std::thread::id driver;
    const auto operation = rank.call(note_driver(driver), wanted);
    std::this_thread::sleep_for(std::chrono::microseconds(500));
    rank.engine().wait(*operation);
    own += driver == std::this_thread::get_id() ? 1 : 0;
  }
  return own;
}

TEST_P(ThreadsTest, callerThatPromisesToWait_drivesAlone) {
  run_ranks(GetParam(), [](Rank& rank) {
    // On a busy machine the engine's thread may wake too late for most of them, or look by itself.
    int woken = 0, alone = 0;
    for (int i = 0; i < 5 && alone <= woken; ++i) {
      woken = driven_by_caller(rank, ProgressEngine::DrivenBy::kAnyThread);
      alone = driven_by_caller(rank, ProgressEngine::DrivenBy::kCaller);
    }
    EXPECT_GT(alone, woken);
  });
}

// What a watchdog and a request for the flight recorder read at any time.
TEST_P(ThreadsTest, anotherThread_mayLookAtAnyTime) {
  run_ranks(GetParam(), [](Rank& rank) {
    float* data = rank.allocate(1000);
    std::jthread watchdog([&rank](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        rank.board().note_activity(ranges::Phase::kForward, 1);
        EXPECT_FALSE(rank.engine().failure_of_peer().has_value());
        EXPECT_FALSE(rank.board().failure_of_peer().has_value());
        static_cast<void>(rank.engine().is_idle());
        static_cast<void>(rank.flights().flights());
        static_cast<void>(rank.board().activity_of(0));
      }
    });
    for (int i = 0; i < 100; ++i) rank.engine().wait(*rank.all_reduce(data, 1000));
    EXPECT_EQ(rank.flights().flights().size(), 100u);
  });
}

// A thousand numbers in a window, after all ranks have met over them.
float* summed_once(Rank& rank) {
  float* data = rank.allocate(1000);
  rank.engine().wait(*rank.all_reduce(data, 1000));
  return data;
}

// From any thread of the rank that stops, while the others wait or compute.
TEST_P(ThreadsTest, announcedFailure_reachesThosePeersThatWait) {
  run_ranks(GetParam(), [](Rank& rank) {
    float* data = summed_once(rank);
    if (rank.index() == 0) {
      std::jthread([&rank] { rank.watch().announce_failure("rank 0 stopped"); }).join();
      return;
    }
    const auto operation = rank.all_reduce(data, 1000);
    try {
      rank.engine().wait(*operation);
      ADD_FAILURE() << "the peer is gone";
    } catch (const core::PeerError& error) {
      EXPECT_THAT(error.what(), HasSubstr("rank 0 stopped"));
    }
    EXPECT_EQ(rank.failures(), 1);
    EXPECT_THROW(rank.all_reduce(data, 1000), core::PeerError);
  });
}

// The peers have been told to stop: nobody comes to it any more.
TEST_P(ThreadsTest, announcedFailure_endsWhatItsOwnRankHasInFlight) {
  run_ranks(GetParam(), [](Rank& rank) {
    float* data = summed_once(rank);
    if (rank.index() != 0) return;
    const auto operation = rank.all_reduce(data, 1000);
    rank.watch().announce_failure("rank 0: out of memory");
    try {
      rank.engine().wait(*operation);
      ADD_FAILURE() << "no other rank has come to it";
    } catch (const core::CollectiveError& error) {
      EXPECT_THAT(error.what(), HasSubstr("told its peers that it failed: rank 0: out of memory"));
    }
    EXPECT_EQ(rank.failures(), 1);
    EXPECT_FALSE(rank.engine().failure_of_peer().has_value()) << "it is none of a peer";
  });
}

// As a watchdog may do before the engine has looked.
TEST_P(ThreadsTest, announcedFailure_thatIsToldOnStaysThatOfThePeer) {
  run_ranks(GetParam(), [](Rank& rank) {
    float* data = summed_once(rank);
    if (rank.index() != 0) return rank.watch().announce_failure("rank 1: the disk is full");
    const auto operation = rank.all_reduce(data, 1000);
    while (!rank.board().failure_of_peer()) std::this_thread::yield();
    rank.watch().announce_failure("rank 0: a peer has stopped");
    EXPECT_THROW(rank.engine().wait(*operation), core::PeerError);
  });
}

TEST_P(ThreadsTest, deadline_namesTheRankThatIsMissing) {
  run_ranks(
      GetParam(),
      [](Rank& rank) {
        float* data = rank.allocate(1000);
        if (rank.index() == 1) return;
        const auto operation = rank.all_reduce(data, 1000);
        try {
          rank.engine().wait(*operation);
          ADD_FAILURE() << "a rank never came";
        } catch (const core::CollectiveError& error) {
          EXPECT_THAT(error.what(), HasSubstr("rank 1"));
        } catch (const core::PeerError& error) {  // another rank was first to say so
          EXPECT_THAT(error.what(), HasSubstr("rank 1"));
        }
      },
      std::chrono::milliseconds(400));
}

INSTANTIATE_TEST_SUITE_P(Ranks, ThreadsTest, ::testing::Values(2, 3));

}  // namespace
}  // namespace sidestream::comm
