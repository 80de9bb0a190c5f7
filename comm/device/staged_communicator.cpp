#include "comm/device/staged_communicator.hpp"

#include <algorithm>
#include <utility>

#include "comm/reduce.hpp"

namespace sidestream::comm {
namespace {

constexpr std::size_t kSmallestStaging = std::size_t{1} << 20;

class CopiedBack final : public WorkState {
 public:
  CopiedBack(std::shared_ptr<cuda::OwnedEvent> end, cuda::Driver& driver, Stream stream)
      : end_(std::move(end)), driver_(driver), stream_(stream) {}

  void wait() override { driver_.synchronize(stream_); }
  void wait_on(Stream stream) override { end_->hold_back(stream); }
  bool done() const noexcept override {
    try {
      return end_->done();
    } catch (const std::exception&) {
      return true;
    }
  }

 private:
  std::shared_ptr<cuda::OwnedEvent> end_;
  cuda::Driver& driver_;
  Stream stream_;
};

}  // namespace

StagedCommunicator::StagedCommunicator(std::unique_ptr<Communicator> host, DeviceContext context)
    : DeviceCommunicator(std::move(host), std::move(context)),
      stream_(this->context().driver, cuda::Priority::kHigh),
      events_(std::make_shared<cuda::EventPool>(this->context().driver)) {}

std::byte* StagedCommunicator::staging(std::size_t bytes) {
  if (bytes > staging_.bytes) {
    staging_ = host().allocate(std::max({bytes, 2 * staging_.bytes, kSmallestStaging}));
    if (driver().pin(staging_.data, staging_.bytes)) {
      pins_.emplace_back(staging_.data,
                         [driver = context().driver](void* memory) { driver->unpin(memory); });
    }
  }
  return staging_.data;
}

std::byte* StagedCommunicator::fetch(const void* device_data, std::size_t bytes,
                                     const CollectiveOptions& options) {
  if (options.after != nullptr) {
    cuda::order(*cuda::EventPool::take(events_), options.after, stream_.get());
  }
  driver().synchronize(stream_.get());  // an earlier copy back reads the staging memory
  std::byte* host_data = staging(bytes);
  driver().copy(host_data, device_data, bytes, stream_.get());
  driver().synchronize(stream_.get());
  return host_data;
}

Work StagedCommunicator::put_back(void* device_data, const std::byte* from, std::size_t bytes) {
  driver().copy(device_data, from, bytes, stream_.get());
  auto end = cuda::EventPool::take(events_);
  end->record(stream_.get());
  return Work(std::make_shared<CopiedBack>(std::move(end), driver(), stream_.get()));
}

Work StagedCommunicator::all_reduce(void* data, std::size_t count, core::DType dtype,
                                    const CollectiveOptions& options) {
  require_summable(dtype);
  const std::size_t bytes = count * core::size_of(dtype);
  std::byte* host_data = fetch(data, bytes, options);
  host().all_reduce(host_data, count, dtype, waited_for(options)).wait();
  return put_back(data, host_data, bytes);
}

Work StagedCommunicator::reduce_scatter(const void* input, void* output, std::size_t count_per_rank,
                                        core::DType dtype, const CollectiveOptions& options) {
  require_summable(dtype);
  const std::size_t slice_bytes = count_per_rank * core::size_of(dtype);
  std::byte* host_data = fetch(input, slice_bytes * static_cast<std::size_t>(size()), options);
  std::byte* mine = host_data + slice_bytes * static_cast<std::size_t>(rank());
  host().reduce_scatter(host_data, mine, count_per_rank, dtype, waited_for(options)).wait();
  return put_back(output, mine, slice_bytes);
}

Work StagedCommunicator::all_gather(const void* input, void* output, std::size_t count_per_rank,
                                    core::DType dtype, const CollectiveOptions& options) {
  const std::size_t slice_bytes = count_per_rank * core::size_of(dtype);
  const std::size_t all_bytes = slice_bytes * static_cast<std::size_t>(size());
  std::byte* host_data = staging(all_bytes);
  std::byte* mine = host_data + slice_bytes * static_cast<std::size_t>(rank());
  if (options.after != nullptr) {
    cuda::order(*cuda::EventPool::take(events_), options.after, stream_.get());
  }
  driver().copy(mine, input, slice_bytes, stream_.get());  // behind an earlier copy back
  driver().synchronize(stream_.get());
  host().all_gather(mine, host_data, count_per_rank, dtype, waited_for(options)).wait();
  return put_back(output, host_data, all_bytes);
}

Work StagedCommunicator::broadcast(void* data, std::size_t count, core::DType dtype, int root,
                                   const CollectiveOptions& options) {
  const std::size_t bytes = count * core::size_of(dtype);
  std::byte* host_data = fetch(data, bytes, options);
  host().broadcast(host_data, count, dtype, root, waited_for(options)).wait();
  return put_back(data, host_data, bytes);
}

}  // namespace sidestream::comm
