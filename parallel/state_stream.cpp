#include "parallel/state_stream.hpp"

#include <utility>

#include "core/base/multiple.hpp"
#include "parallel/device_bytes.hpp"

namespace sidestream::parallel {
namespace {

using Queue = core::CopyEngine::Queue;

// Kernels read and write whole vectors.
constexpr std::size_t kPlaceBytes = 256;

std::size_t padded(std::size_t bytes) { return core::rounded_up(bytes, kPlaceBytes); }

struct HostRange {
  std::byte* data;
  std::size_t bytes;
};

HostRange range_of(const torch::Tensor& state, const StateSlice& slice) {
  const std::size_t size = state.element_size();
  return {static_cast<std::byte*>(state.mutable_data_ptr()) + slice.begin * size,
          slice.elements() * size};
}

}  // namespace

StateStream::StateStream(std::shared_ptr<core::CopyEngine> copies, torch::Device device,
                         std::size_t slice_elements)
    : copies_(std::move(copies)), device_(device), slice_elements_(slice_elements) {}

StateStream::~StateStream() {
  try {
    copies_->finish();
  } catch (const std::exception&) {  // the device has failed: what matters has been reported
  }
}

void StateStream::adopt(std::vector<std::vector<optim::DevicePiece>> groups) {
  for (const Buffer& buffer : buffers_) {
    if (buffer.free) copies_->hold_back(Queue::kCompute, buffer.free);
  }
  plan_ = cut_into_slices(std::move(groups), slice_elements_);
  pieces_ = bytes_on_device(plan_.pieces, device_);
  buffers_ = {};
}

// From the allocator of the computation, to which it goes back: what had this memory before may
// still be computing.
void StateStream::make_buffers(const std::vector<torch::Tensor>& states) {
  std::size_t bytes = 0;
  offsets_.clear();
  for (const torch::Tensor& state : states) {
    offsets_.push_back(bytes);
    bytes += padded(plan_.most_elements() * state.element_size());
  }
  for (Buffer& buffer : buffers_) {
    buffer.memory = torch::empty({static_cast<std::int64_t>(bytes)},
                                 torch::dtype(torch::kUInt8).device(device_));
    buffer.free = copies_->mark(Queue::kCompute);
  }
}

std::byte* StateStream::place_in(const Buffer& buffer, std::size_t state) const {
  return static_cast<std::byte*>(buffer.memory.mutable_data_ptr()) + offsets_[state];
}

void StateStream::update(const std::vector<torch::Tensor>& states,
                         const std::function<void(const Arrived&)>& update) {
  const std::size_t count = plan_.slices.size();
  if (states.empty() || count == 0) return;
  if (!buffers_.front().memory.defined()) make_buffers(states);
  bring(0, states);
  for (std::size_t i = 0; i < count; ++i) {
    if (i + 1 < count) bring(i + 1, states);
    const Buffer& buffer = buffer_of(i);
    copies_->hold_back(Queue::kCompute, buffer.here);
    const StateSlice& slice = plan_.slices[i];
    Arrived arrived{.slice = slice, .table = table_of(slice), .states = {}};
    for (std::size_t s = 0; s < states.size(); ++s) arrived.states.push_back(place_in(buffer, s));
    update(arrived);
    send_back(i, states);
  }
}

// A slice has the same buffer in every update, so that what held the buffer last went out no
// earlier than the slice itself: the host's memory is what the update before has left there.
void StateStream::bring(std::size_t index, const std::vector<torch::Tensor>& states) {
  Buffer& buffer = buffer_of(index);
  copies_->hold_back(Queue::kToDevice, buffer.free);
  for (std::size_t s = 0; s < states.size(); ++s) {
    const HostRange host = range_of(states[s], plan_.slices[index]);
    copies_->copy(Queue::kToDevice, place_in(buffer, s), host.data, host.bytes);
  }
  buffer.here = copies_->mark(Queue::kToDevice);
}

void StateStream::send_back(std::size_t index, const std::vector<torch::Tensor>& states) {
  Buffer& buffer = buffer_of(index);
  copies_->hold_back(Queue::kToHost, copies_->mark(Queue::kCompute));
  for (std::size_t s = 0; s < states.size(); ++s) {
    const HostRange host = range_of(states[s], plan_.slices[index]);
    copies_->copy(Queue::kToHost, host.data, place_in(buffer, s), host.bytes);
  }
  buffer.free = copies_->mark(Queue::kToHost);
}

optim::PieceTable StateStream::table_of(const StateSlice& slice) const {
  return {.pieces =
              static_cast<const optim::DevicePiece*>(pieces_.const_data_ptr()) + slice.first_piece,
          .count = slice.pieces};
}

void StateStream::finish() { copies_->finish(); }

}  // namespace sidestream::parallel
