#include "profiling/record/proc_files.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::record {
namespace {

TEST(ProcFilesTest, schedstat_hasRunningAndWaiting) {
  ThreadTimes times;
  read_schedstat("123456789 4567 89\n", times);

  EXPECT_EQ(times.run_ns, 123456789);
  EXPECT_EQ(times.wait_ns, 4567);
}

TEST(ProcFilesTest, processMemoryAndStorage) {
  SystemTotals totals;
  read_statm("1000 250 60 1 0 400 0\n", 4096, totals);
  read_process_io("rchar: 9\nwchar: 8\nread_bytes: 4096\nwrite_bytes: 8192\n", totals);

  EXPECT_EQ(totals.resident_bytes, 250 * 4096);
  EXPECT_EQ(totals.process_read_bytes, 4096);
  EXPECT_EQ(totals.process_written_bytes, 8192);
}

TEST(ProcFilesTest, machine_idleIsNotBusy) {
  SystemTotals totals;
  read_machine_stat(
      "cpu  100 10 40 800 50 0 0 0 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu2 100 0 0 9 9 0 0 0 0 0\n"
      "intr 5\n",
      100, totals);

  EXPECT_DOUBLE_EQ(totals.machine_total_s, 10.0);
  EXPECT_DOUBLE_EQ(totals.machine_busy_s, 1.5);
  ASSERT_EQ(totals.core_busy_s.size(), 3u);  // cpu1 is switched off
  EXPECT_DOUBLE_EQ(totals.core_busy_s[0], 0.27);
  EXPECT_DOUBLE_EQ(totals.core_busy_s[1], 0);
  EXPECT_DOUBLE_EQ(totals.core_busy_s[2], 1);
}

TEST(ProcFilesTest, disks_countOnce) {
  SystemTotals totals;
  read_diskstats(
      "   8       0 sda 10 0 100 0 20 0 200 0 0 2500 0\n"
      "   8       1 sda1 10 0 100 0 20 0 200 0 0 0 0\n"
      " 259       0 nvme0n1 1 0 8 0 1 0 16 0 0 0 0\n"
      " 259       1 nvme0n1p1 1 0 8 0 1 0 16 0 0 0 0\n"
      "   7       0 loop0 1 0 8 0 1 0 16 0 0 0 0\n",
      totals);

  EXPECT_EQ(totals.disk_read_bytes, 108 * 512);
  EXPECT_EQ(totals.disk_written_bytes, 216 * 512);
  ASSERT_EQ(totals.disk_busy_s.size(), 2u);
  EXPECT_DOUBLE_EQ(totals.disk_busy_s.at("sda"), 2.5);
}

TEST(ProcFilesTest, network_keepsTheLoopbackApart) {
  SystemTotals totals;
  read_network(
      "Inter-|   Receive                            |  Transmit\n"
      " face |bytes    packets errs drop fifo frame compressed multicast|bytes packets\n"
      "    lo: 500 5 0 0 0 0 0 0 500 5 0 0 0 0 0 0\n"
      "  eth0:1000 9 0 0 0 0 0 0 2000 9 0 0 0 0 0 0\n"
      " bond0:1000 9 0 0 0 0 0 0 2000 9 0 0 0 0 0 0\n",
      [](std::string_view name) { return name == "eth0"; }, totals);

  EXPECT_EQ(totals.network_received_bytes, 1000);
  EXPECT_EQ(totals.network_sent_bytes, 2000);
  EXPECT_EQ(totals.loopback_bytes, 500);
}

TEST(ProcFilesTest, interfaces_thatStandOnOthers_carryNoBytesOfTheirOwn) {
  const core::ScratchFolder net;
  for (const char* folder : {"eth0/device", "bond0/lower_eth0", "veth1"})
    std::filesystem::create_directories(net / folder);
  const auto on_a_host = own_interfaces(net.path());
  EXPECT_TRUE(on_a_host("eth0"));
  EXPECT_FALSE(on_a_host("bond0"));
  EXPECT_FALSE(on_a_host("veth1"));

  std::filesystem::remove(net / "eth0/device");
  const auto in_a_container = own_interfaces(net.path());
  EXPECT_TRUE(in_a_container("eth0"));
  EXPECT_FALSE(in_a_container("bond0"));
  EXPECT_TRUE(own_interfaces(net / "missing")("eth0"));
}

TEST(ProcFilesTest, textThatIsNone_leavesZeros) {
  SystemTotals totals;
  ThreadTimes times;
  read_schedstat("", times);
  read_statm("x", 4096, totals);
  read_process_io("read_bytes\n", totals);
  read_machine_stat("intr 5", 100, totals);
  read_diskstats("a b\n", totals);
  read_network(
      "eth0: 1 2\n", [](std::string_view) { return true; }, totals);

  EXPECT_EQ(times.run_ns + totals.resident_bytes + totals.process_read_bytes +
                totals.disk_read_bytes + totals.network_received_bytes,
            0);
}

TEST(ProcFilesTest, thisProcess_isRead) {
  const SystemTotals totals = read_system();

  EXPECT_GT(totals.resident_bytes, 1 << 20);
  EXPECT_GT(totals.available_bytes, 0);
  EXPECT_GT(totals.machine_total_s, 0);
  ASSERT_FALSE(totals.threads.empty());
}

// The system counts a thread's time when it next looks at it: not before a first tick.
TEST(ProcFilesTest, timeOfAThread_isCounted) {
  const auto run_ns = [] { return read_system().threads.at(::gettid()).run_ns; };
  std::int64_t found = 0;
  for (int i = 0; i < 100'000 && found == 0; ++i) found = run_ns();
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace sidestream::record
