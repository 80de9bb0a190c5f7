// How a window comes to be: what is left of it in /dev/shm at every moment.
#include "comm/shared_window.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.hpp"
#include "tests/comm/thread_meeting.hpp"

namespace sidestream::comm {
namespace {

// Of this process: other tests may make windows at the same time.
std::set<std::string> names_in_shared_memory() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename();
    if (name.starts_with("sidestream." + std::to_string(::getpid()) + ".")) names.insert(name);
  }
  return names;
}

// Two ranks make a window; the names seen at any of their meetings.
std::set<std::string> names_while_made(const std::function<std::string(std::string)>& spoil) {
  test::Meeting meeting(2);
  std::set<std::string> seen;
  std::optional<SharedWindow> windows[2];
  const auto make = [&](int rank) {
    NodeMeeting mine = meeting.of(rank);
    mine.exchange = [&seen, &spoil, rank, plain = mine.exchange](std::string_view words) {
      auto all = plain(rank == 0 ? spoil(std::string(words)) : std::string(words));
      if (rank == 1) seen.merge(names_in_shared_memory());
      plain("looked");
      return all;
    };
    windows[rank].emplace(mine, 5000);
    *windows[rank]->segment(rank) = std::byte{7};
    mine.exchange("written");
  };
  { const std::jthread first(make, 0), second(make, 1); }
  EXPECT_EQ(*windows[0]->segment(1), std::byte{7});
  EXPECT_EQ(*windows[1]->segment(0), std::byte{7});
  return seen;
}

TEST(SharedWindowTest, construct_hasNoNameAtAnyMoment) {
  EXPECT_THAT(names_while_made([](std::string words) { return words; }), ::testing::IsEmpty());
}

// As between containers: that path means nothing, or another file.
TEST(SharedWindowTest, construct_processThatCannotBeReadGivesANameAndTakesItAway) {
  for (const char* wrong : {"/proc/0/fd/9 1 2", "/dev/null 1 2", "-"}) {
    const auto names = names_while_made([&](std::string words) {
      return words.starts_with("/proc/") ? std::string(wrong) : words;
    });

    EXPECT_EQ(names.size(), 1U) << wrong;
    EXPECT_THAT(names_in_shared_memory(), ::testing::IsEmpty()) << wrong;
  }
}

// Two nodes of two ranks that meet at once, as those of a job do. What one node cannot have the
// other does without, too: they come to the same meetings, and none waits for ever.
class TwoNodes {
 public:
  NodeMeeting of(int rank) {
    const auto all = meeting_.of(rank).exchange;
    const auto here = [all, first = rank / 2 * 2](std::string_view mine) {
      const std::vector<std::string> words = all(mine);
      return std::vector<std::string>{words[static_cast<std::size_t>(first)],
                                      words[static_cast<std::size_t>(first) + 1]};
    };
    return {.rank = rank % 2, .size = 2, .exchange = here, .exchange_with_all_nodes = all};
  }

 private:
  test::Meeting meeting_{4};
};

TEST(SharedWindowTest, construct_whereOneNodeNeedsANameAllMeetAsOften) {
  TwoNodes nodes;
  std::array<int, 4> meetings = {};
  std::array<std::optional<SharedWindow>, 4> windows;
  const auto make = [&](int rank) {
    NodeMeeting mine = nodes.of(rank);
    const auto place = static_cast<std::size_t>(rank);
    const auto counted = [&meetings, place](const auto& exchange, const std::string& words) {
      ++meetings[place];
      return exchange(words);
    };
    mine.exchange = [=, plain = mine.exchange](std::string_view words) {
      const bool hidden = rank == 2 && words.starts_with("/proc/");
      return counted(plain, std::string(hidden ? "-" : words));
    };
    mine.exchange_with_all_nodes = [=,
                                    plain = mine.exchange_with_all_nodes](std::string_view words) {
      return counted(plain, std::string(words));
    };
    windows[place].emplace(mine, 5000);
    *windows[place]->segment(mine.rank) = static_cast<std::byte>(rank);
    mine.exchange("written");
  };
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < 4; ++rank) ranks.emplace_back(make, rank);
  }

  EXPECT_THAT(meetings, ::testing::Each(meetings[0]));
  for (const std::size_t node : {0U, 1U}) {
    EXPECT_EQ(*windows[2 * node]->segment(1), static_cast<std::byte>(2 * node + 1));
    EXPECT_EQ(*windows[2 * node + 1]->segment(0), static_cast<std::byte>(2 * node));
  }
  EXPECT_THAT(names_in_shared_memory(), ::testing::IsEmpty());
}

// A size that no /dev/shm has, on one node alone: nobody is left waiting for it.
TEST(SharedWindowTest, construct_whatOneNodeLacksIsToldOnAll) {
  TwoNodes nodes;
  std::array<std::string, 4> messages;
  const auto make = [&](int rank) {
    const std::size_t bytes = rank < 2 ? 5000 : std::size_t{1} << 50;
    try {
      const SharedWindow window(nodes.of(rank), bytes);
    } catch (const core::MemoryError& error) {
      messages[static_cast<std::size_t>(rank)] = error.what();
    }
  };
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < 4; ++rank) ranks.emplace_back(make, rank);
  }

  EXPECT_THAT(messages, ::testing::Each(::testing::HasSubstr("(2199023255552 KiB wanted, ")));
  EXPECT_THAT(names_in_shared_memory(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace sidestream::comm
