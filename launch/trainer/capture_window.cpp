#include "launch/trainer/capture_window.hpp"

#include <charconv>
#include <cstdlib>
#include <string>

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

CaptureWindow::CaptureWindow(std::string_view steps) {
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

CaptureWindow CaptureWindow::from_environment() {
  const char* steps = std::getenv("SIDESTREAM_CAPTURE_STEPS");
  return CaptureWindow(steps == nullptr ? "" : steps);
}

void CaptureWindow::before(std::int64_t step) {
  if (name_ && step == first_) open_.emplace(*name_);
}

void CaptureWindow::after(std::int64_t step) {
  if (step == last_) open_.reset();
}

}  // namespace sidestream::launch
