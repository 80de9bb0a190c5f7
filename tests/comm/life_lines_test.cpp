// A line says that a process is gone, and nothing else does.
#include "comm/life_lines.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

namespace sidestream::comm {
namespace {

using namespace std::chrono_literals;

// A process of rank 5 that calls the listener and then does something; ended with the test.
class Caller {
 public:
  Caller(const LifeLineAddress& address, const std::function<void(LifeLines&)>& then)
      : process_(::fork()) {
    if (process_ != 0) return;
    LifeLines lines;
    lines.add(0, call_life_line(address, 5, 2s));
    then(lines);
    ::_exit(0);
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  ~Caller() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  void send(int signal) const { ::kill(process_, signal); }

 private:
  pid_t process_;
};

void take_call(LifeLineListener& listener, LifeLines& lines) {
  for (int look = 0; look < 400 && lines.size() == 0; ++look) {
    if (auto caller = listener.accept()) lines.add(caller->rank, std::move(caller->line));
    std::this_thread::sleep_for(5ms);
  }
}

std::optional<int> gone_within(LifeLines& lines, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < end) {
    if (const auto rank = lines.first_gone()) return rank;
    std::this_thread::sleep_for(5ms);
  }
  return std::nullopt;
}

TEST(LifeLinesTest, first_gone_killedProcess) {
  LifeLineListener listener;
  LifeLines lines;
  const Caller caller(listener.address(), [](LifeLines&) { ::pause(); });
  take_call(listener, lines);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_FALSE(gone_within(lines, 100ms));

  caller.send(SIGKILL);

  EXPECT_EQ(gone_within(lines, 2s), 5);
}

TEST(LifeLinesTest, first_gone_stoppedProcessIsNotGone) {
  LifeLineListener listener;
  LifeLines lines;
  const Caller caller(listener.address(), [](LifeLines&) { ::pause(); });
  take_call(listener, lines);

  caller.send(SIGSTOP);

  EXPECT_FALSE(gone_within(lines, 300ms));
  EXPECT_EQ(lines.size(), 1U);
}

TEST(LifeLinesTest, first_gone_goodbyeIsNoDeath) {
  LifeLineListener listener;
  LifeLines lines;
  const Caller caller(listener.address(), [](LifeLines& mine) {
    gone_within(mine, 100ms);  // as ranks do while they train
    mine.say_goodbye();
  });
  take_call(listener, lines);

  EXPECT_FALSE(gone_within(lines, 300ms));
  EXPECT_EQ(lines.size(), 0U);
}

// A rank that took too long to hear the welcome has gone on without a line.
TEST(LifeLinesTest, first_gone_lineThatNeverStoodIsNoDeath) {
  LifeLineListener listener;
  LifeLines lines;
  std::jthread caller([address = listener.address()] { call_life_line(address, 5, 2s); });
  take_call(listener, lines);
  caller.join();

  EXPECT_FALSE(gone_within(lines, 100ms));
}

TEST(LifeLineListenerTest, accept_turnsStrangersAndSecondCallsAway) {
  LifeLineListener listener;
  LifeLineAddress forged = listener.address();
  forged.token.fill(0);
  std::vector<core::UniqueFd> lines(3);
  std::jthread callers([&] {
    lines[0] = call_life_line(forged, 5, 1s);
    lines[1] = call_life_line(listener.address(), 5, 1s);
    lines[2] = call_life_line(listener.address(), 5, 1s);
  });
  std::vector<int> ranks;
  for (int look = 0; look < 100; ++look) {
    if (const auto caller = listener.accept()) ranks.push_back(caller->rank);
    std::this_thread::sleep_for(5ms);
  }
  callers.join();

  EXPECT_EQ(ranks, std::vector<int>{5});
  EXPECT_FALSE(lines[0]);
  EXPECT_TRUE(lines[1]);
  EXPECT_FALSE(lines[2]);
}

// The address alone, as on a machine with no other.
void expect_answer_at(const HostAddress& host) {
  LifeLineListener listener;
  LifeLineAddress address = listener.address();
  address.hosts.fill({});
  address.hosts[0] = host;
  core::UniqueFd line;
  std::jthread caller([&] { line = call_life_line(address, 5, 2s); });
  LifeLines lines;
  take_call(listener, lines);
  caller.join();

  EXPECT_TRUE(line);
  EXPECT_EQ(lines.size(), 1U);
}

TEST(LifeLineListenerTest, call_overIpv4) {
  expect_answer_at({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 127, 0, 0, 1});
}

TEST(LifeLineListenerTest, call_overIpv6) {
  const core::UniqueFd socket(::socket(AF_INET6, SOCK_DGRAM, 0));
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  if (!socket ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&loopback), sizeof(loopback)) != 0)
    GTEST_SKIP() << "this machine has no IPv6";

  expect_answer_at({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
}

TEST(NetworkInterfacesTest, addresses_loopbackLastAndOnlyThoseThatAreUp) {
  const HostAddress loopback{9}, first{1}, second{2}, down{3};
  const std::vector<NetworkInterface> interfaces = {
      {.name = "lo", .up = true, .loopback = true, .addresses = {loopback}},
      {.name = "eth0", .up = true, .addresses = {first, second}},
      {.name = "eth1", .addresses = {down}}};

  EXPECT_EQ(own_addresses(interfaces), (std::vector<HostAddress>{first, second, loopback}));
}

TEST(NetworkInterfacesTest, interfaces_ofThisMachine) {
  const std::vector<NetworkInterface> interfaces = network_interfaces();
  const auto loopback = std::find_if(interfaces.begin(), interfaces.end(),
                                     [](const auto& one) { return one.name == "lo"; });

  ASSERT_NE(loopback, interfaces.end());
  EXPECT_TRUE(loopback->loopback);
  EXPECT_EQ(loopback->addresses.empty(), !loopback->up);
}

TEST(LifeLineListenerTest, call_nobodyListens) {
  EXPECT_FALSE(call_life_line(LifeLineAddress{}, 1, 1s));
  LifeLineAddress address;
  {
    const LifeLineListener gone;
    address = gone.address();
  }
  EXPECT_FALSE(call_life_line(address, 1, 1s));
}

}  // namespace
}  // namespace sidestream::comm
