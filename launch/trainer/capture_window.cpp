#include "launch/trainer/capture_window.hpp"

#include <charconv>
#include <cstdlib>
#include <string>
#include <utility>

#include "core/base/error.hpp"

namespace sidestream::launch {
namespace {

// The whole text must be a number from 1 on; 0 otherwise.
std::int64_t step_in(std::string_view text) {
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
  return error == std::errc() && end == text.data() + text.size() && step > 0 ? step : 0;
}

}  // namespace

CaptureWindow::CaptureWindow(std::string_view steps, std::shared_ptr<comm::cuda::Driver> driver)
    : driver_(std::move(driver)) {
  if (steps.empty()) return;
  const std::size_t colon = steps.find(':');
  first_ = step_in(steps.substr(0, colon));
  last_ = colon == std::string_view::npos ? first_ : step_in(steps.substr(colon + 1));
  if (first_ == 0 || last_ < first_) {
    throw core::ConfigError(
        "SIDESTREAM_CAPTURE_STEPS: expected FIRST:LAST, steps counted from 1, found '" +
        std::string(steps) + "'");
  }
  name_.emplace("capture");
}

CaptureWindow::~CaptureWindow() {
  try {
    close();
  } catch (const std::exception&) {  // the device has failed: what matters has been reported
  }
}

CaptureWindow CaptureWindow::from_environment() {
  const char* steps = std::getenv("SIDESTREAM_CAPTURE_STEPS");
  const char* by = std::getenv("SIDESTREAM_CAPTURE_BY");
  const bool by_cuda = by != nullptr && std::string_view(by) == "cuda-profiler";
  return CaptureWindow(steps == nullptr ? "" : steps,
                       by_cuda ? comm::cuda::make_driver() : nullptr);
}

void CaptureWindow::before(std::int64_t step) {
  if (!name_ || open_ || step < first_ || step > last_) return;
  if (driver_ != nullptr) driver_->start_profiler();
  open_.emplace(*name_);
}

void CaptureWindow::after(std::int64_t step) {
  if (step == last_) close();
}

void CaptureWindow::close() {
  if (!open_) return;
  open_.reset();
  if (driver_ != nullptr) driver_->stop_profiler();
}

}  // namespace sidestream::launch
