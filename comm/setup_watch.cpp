#include "comm/setup_watch.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <string_view>

#include "comm/deadline.hpp"
#include "core/base/exit_code.hpp"
#include "core/base/host_name.hpp"

namespace sidestream::comm {
namespace {

// The rank that speaks first ends the job; the others are silent for so long, in case that it does
// not.
constexpr std::chrono::seconds kSilence{3};

struct Address {
  sockaddr_un value{};
  socklen_t bytes = 0;
};

// A name that starts with a zero byte belongs to no file.
Address address_of(const std::string& name) {
  Address address;
  address.value.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof(address.value.sun_path) - 1);
  std::copy_n(name.data(), length, address.value.sun_path + 1);
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return address;
}

core::UniqueFd open_socket() {
  return core::UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// Of the one that listens at the other end; 0 if unknown.
pid_t process_behind(int socket) {
  ucred credentials{};
  socklen_t bytes = sizeof(credentials);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0) return 0;
  return credentials.pid;
}

// "1234 (name) T ...": the letter after the name, which may hold anything.
bool is_stopped(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t end = text.rfind(") ");
  return end != std::string::npos && end + 2 < text.size() &&
         (text[end + 2] == 'T' || text[end + 2] == 't');
}

const char* text_of(SetupWatch::Stage stage) {
  switch (stage) {
    case SetupWatch::Stage::kStartMpi:
      return "starting MPI";
    case SetupWatch::Stage::kMakeCommunicator:
      return "making the communicator";
    case SetupWatch::Stage::kFinishMpi:
      return "leaving MPI, with all work done";
  }
  return "MPI";
}

void sleep_unless_stopped(const std::stop_token& stop, std::chrono::milliseconds time) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, time, [] { return false; });
}

}  // namespace

SetupWatch::SetupWatch(const LauncherEnvironment& launcher, Stage stage,
                       std::chrono::milliseconds limit)
    : launcher_(launcher), stage_(stage) {
  if (launcher.size <= 1) return;
  show_presence();
  thread_ =
      std::jthread([this, limit](const std::stop_token& stop) { wait_for_deadline(stop, limit); });
}

std::string SetupWatch::socket_name(int local_rank) const {
  return "sidestream." + launcher_.job + "." + std::to_string(static_cast<int>(stage_)) + "." +
         std::to_string(local_rank);
}

// Without a socket this rank would be called missing by others: only their message is wrong then.
void SetupWatch::show_presence() {
  presence_ = open_socket();
  const Address address = address_of(socket_name(launcher_.local_rank));
  if (!presence_ || ::bind(presence_.get(), reinterpret_cast<const sockaddr*>(&address.value),
                           address.bytes) != 0)
    return;
  ::listen(presence_.get(), SOMAXCONN);
}

SetupWatch::Attendance SetupWatch::attendance_of(int local_rank) const {
  const core::UniqueFd socket = open_socket();
  const Address address = address_of(socket_name(local_rank));
  if (!socket) return Attendance::kThere;  // cannot tell: blames nobody
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.value), address.bytes) !=
      0) {
    return Attendance::kAbsent;
  }
  return is_stopped(process_behind(socket.get())) ? Attendance::kStopped : Attendance::kThere;
}

std::string SetupWatch::rank_text(int local_rank) const {
  // Ranks are dealt out host by host, so that the only host has them in order.
  const std::string rank = launcher_.local_size == launcher_.size ? "rank " : "local rank ";
  return rank + std::to_string(local_rank) + " on " + core::host_name();
}

std::string SetupWatch::missing_ranks() const {
  std::string text;
  for (int local_rank = 0; local_rank < launcher_.local_size; ++local_rank) {
    if (local_rank == launcher_.local_rank) continue;
    const Attendance attendance = attendance_of(local_rank);
    if (attendance == Attendance::kThere) continue;
    text += (text.empty() ? "" : ", ") + rank_text(local_rank) +
            (attendance == Attendance::kStopped ? " (was stopped)" : " (has not come to it)");
  }
  return text;
}

bool SetupWatch::is_first_present() const {
  for (int local_rank = 0; local_rank < launcher_.local_rank; ++local_rank) {
    if (attendance_of(local_rank) == Attendance::kThere) return false;
  }
  return true;
}

void SetupWatch::wait_for_deadline(const std::stop_token& stop,
                                   std::chrono::milliseconds limit) const {
  Deadline deadline(limit);
  while (!deadline.is_over()) {
    sleep_unless_stopped(stop, std::min(limit, std::chrono::milliseconds(50)));
    if (stop.stop_requested()) return;
    deadline.tick();
  }
  give_up(stop, limit);
}

void SetupWatch::give_up(const std::stop_token& stop, std::chrono::milliseconds limit) const {
  std::string missing = missing_ranks();
  if (missing.empty() || !is_first_present()) sleep_unless_stopped(stop, kSilence);
  if (stop.stop_requested()) return;
  if (missing.empty()) {
    missing = "nobody of the ranks on " + core::host_name() +
              ": look at the other hosts, and at the network between them";
  }
  const std::string line = "sidestream [rank " + std::to_string(launcher_.rank) +
                           "]: " + text_of(stage_) + ": not finished after " +
                           std::to_string(limit.count()) + " ms; missing: " + missing +
                           ". --timeout-setup gives slow ranks more time\n";
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  std::_Exit(static_cast<int>(
      core::ExitCode::kCollective));  // the thread that waits inside MPI cannot be called back
}

}  // namespace sidestream::comm
