#include "comm/control_channel.hpp"

#include "comm/mpi_check.hpp"

namespace sidestream::comm {

ControlChannel::ControlChannel(MPI_Comm job)
    : comm_(duplicate(job)),
      rank_(rank_of(job)),
      known_(static_cast<std::size_t>(size_of(job))),
      known_on_device_(known_.size()) {
  for (auto& known : known_on_device_) known.store(-1);
}

std::optional<std::uint64_t> ControlChannel::device_started_by(int rank) const noexcept {
  const std::int64_t known = known_on_device_[static_cast<std::size_t>(rank)].load();
  return known < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(known));
}

ControlChannel::Message ControlChannel::message_of(std::string_view text) const {
  Message message{.started = started_, .device_started = device_started_.load(), .text = {}};
  text.copy(message.text.data(), message.text.size() - 1);
  return message;
}

void ControlChannel::send(int rank, Tag tag, const Message& message) {
  Outgoing& out = outgoing_.emplace_back(Outgoing{message, MPI_REQUEST_NULL});
  check_mpi(MPI_Isend(&out.message, sizeof(Message), MPI_BYTE, rank, static_cast<int>(tag),
                      comm_.get(), &out.request),
            "MPI_Isend of a control message");
}

void ControlChannel::drop_sent() {
  outgoing_.remove_if([](Outgoing& out) {
    int sent = 0;
    check_mpi(MPI_Test(&out.request, &sent, MPI_STATUS_IGNORE), "MPI_Test of a control message");
    return sent != 0;
  });
}

void ControlChannel::receive(const MPI_Status& waiting) {
  Message message{};
  const int from = waiting.MPI_SOURCE;
  check_mpi(MPI_Recv(&message, sizeof(Message), MPI_BYTE, from, waiting.MPI_TAG, comm_.get(),
                     MPI_STATUS_IGNORE),
            "MPI_Recv of a control message");
  known_[static_cast<std::size_t>(from)] = message.started;
  known_on_device_[static_cast<std::size_t>(from)].store(
      static_cast<std::int64_t>(message.device_started));
  if (waiting.MPI_TAG == static_cast<int>(Tag::kQuestion)) send(from, Tag::kAnswer, message_of());
  if (waiting.MPI_TAG == static_cast<int>(Tag::kFailure) && !failure_)
    failure_ = message.text.data();
}

void ControlChannel::poll() {
  if (ask_everyone_.exchange(false)) ask_everyone();
  if (ask_again_.exchange(false)) ask_again();
  int waiting = 1;
  while (waiting != 0) {
    MPI_Status status{};
    check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_.get(), &waiting, &status),
              "MPI_Iprobe");
    if (waiting != 0) receive(status);
  }
  drop_sent();
}

void ControlChannel::ask_everyone() {
  for (int rank = 0; rank < static_cast<int>(known_.size()); ++rank) {
    known_[static_cast<std::size_t>(rank)].reset();
    known_on_device_[static_cast<std::size_t>(rank)].store(-1);
  }
  ask_again();
}

void ControlChannel::ask_again() {
  for (int rank = 0; rank < static_cast<int>(known_.size()); ++rank) {
    if (rank != rank_) send(rank, Tag::kQuestion, message_of());
  }
}

void ControlChannel::announce_failure(std::string_view text, int dead) {
  const Message message = message_of(text);
  for (int rank = 0; rank < static_cast<int>(known_.size()); ++rank) {
    if (rank != rank_ && rank != dead) send(rank, Tag::kFailure, message);
  }
}

}  // namespace sidestream::comm
