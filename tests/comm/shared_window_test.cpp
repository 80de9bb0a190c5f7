// How a window comes to be: what is left of it in /dev/shm at every moment.
#include "comm/shared_window.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <thread>

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

}  // namespace
}  // namespace sidestream::comm
