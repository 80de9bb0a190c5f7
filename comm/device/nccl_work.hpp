// What a started collective of NCCL is waited for by: an event behind it.
#pragma once

#include <exception>
#include <memory>
#include <utility>

#include "comm/cuda/handles.hpp"
#include "comm/nccl/watchdog.hpp"
#include "comm/work.hpp"
#include "core/base/error.hpp"

namespace sidestream::comm {

class NcclWork final : public WorkState {
 public:
  NcclWork(std::shared_ptr<cuda::OwnedEvent> end, nccl::Watchdog& watchdog)
      : end_(std::move(end)), watchdog_(watchdog) {}

  void wait() override { watchdog_.wait(*end_); }
  void wait_on(Stream stream) override {
    watchdog_.rethrow_failure();
    end_->hold_back(stream);
  }
  bool done() const noexcept override {
    try {
      return watchdog_.failed() || end_->done();
    } catch (const std::exception&) {
      return true;
    }
  }

 private:
  std::shared_ptr<cuda::OwnedEvent> end_;
  nccl::Watchdog& watchdog_;
};

// In a graph, on its way into it: its event stands for a place in the graph and cannot be asked.
class CapturedWork final : public WorkState {
 public:
  explicit CapturedWork(std::shared_ptr<cuda::OwnedEvent> end) : end_(std::move(end)) {}

  void wait() override {
    throw core::Error("a collective that is being captured was waited for on the host");
  }
  void wait_on(Stream stream) override { end_->hold_back(stream); }
  bool done() const noexcept override { return false; }

 private:
  std::shared_ptr<cuda::OwnedEvent> end_;
};

}  // namespace sidestream::comm
