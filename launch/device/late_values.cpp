#include "launch/device/late_values.hpp"

#include <algorithm>
#include <thread>

namespace sidestream::launch {
namespace {

constexpr std::chrono::microseconds kBetweenLooksAtValues{20};

}  // namespace

LateValues::LateValues(std::shared_ptr<comm::cuda::Driver> driver,
                       std::function<comm::Stream()> current_stream)
    : driver_(std::move(driver)),
      current_stream_(std::move(current_stream)),
      arrived_(driver_),
      pinned_(static_cast<double*>(driver_->allocate_pinned(kMost * sizeof(double)))) {
  std::fill_n(pinned_, kMost, 0.0);
}

LateValues::~LateValues() { driver_->free_pinned(pinned_); }

void LateValues::ask(std::size_t first, const torch::Tensor& values) {
  TORCH_CHECK(values.scalar_type() == torch::kFloat64 && values.is_contiguous() &&
                  first + static_cast<std::size_t>(values.numel()) <= kMost,
              "late values: a few contiguous doubles are expected");
  driver_->copy(pinned_ + first, values.const_data_ptr(), values.nbytes(), current_stream_());
}

void LateValues::seal() { arrived_.record(current_stream_()); }

const std::array<double, LateValues::kMost>& LateValues::read(const std::function<void()>& check) {
  while (!arrived_.done()) {
    check();
    std::this_thread::sleep_for(kBetweenLooksAtValues);
  }
  std::copy_n(pinned_, kMost, values_.begin());
  return values_;
}

}  // namespace sidestream::launch
