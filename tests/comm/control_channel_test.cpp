// How far a rank's device is, asked for over messages.
#include "comm/control_channel.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <thread>

namespace sidestream::comm {
namespace {

constexpr std::uint64_t kStarted = 7;

// The other rank takes nothing in after its first answer, as one that has got stuck.
TEST(ControlChannelTest, what_a_rank_answered_stays_known_when_it_is_asked_again) {
  ControlChannel channel(MPI_COMM_WORLD);
  channel.note_device_started(kStarted);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Request answered = MPI_REQUEST_NULL;
  if (rank == 0) {
    channel.ask_everyone_with_next_poll();
    while (channel.device_started_by(1) != kStarted) channel.poll();
    MPI_Ibarrier(MPI_COMM_WORLD, &answered);
    MPI_Wait(&answered, MPI_STATUS_IGNORE);

    channel.ask_again_with_next_poll();
    channel.poll();

    EXPECT_EQ(channel.device_started_by(1), kStarted);
    channel.ask_everyone_with_next_poll();
    channel.poll();
    EXPECT_EQ(channel.device_started_by(1), std::nullopt);
  } else {
    MPI_Ibarrier(MPI_COMM_WORLD, &answered);
    for (int is_known = 0; is_known == 0; std::this_thread::yield()) {
      channel.poll();
      MPI_Test(&answered, &is_known, MPI_STATUS_IGNORE);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  while (!channel.all_sent()) channel.poll();
}

}  // namespace
}  // namespace sidestream::comm
