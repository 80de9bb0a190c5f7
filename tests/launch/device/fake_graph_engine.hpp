// A GraphEngine that keeps the work itself: a replay runs it again, with what the host knew when it
// was captured. Work that is captured does run, and its first replay then does nothing: together
// they are one step, as on a device.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "launch/device/graph_engine.hpp"

namespace sidestream::launch {

class FakeGraphEngine final : public GraphEngine {
 public:
  // What a test sees after the engine is gone, and sets before.
  struct Script {
    std::vector<std::string> calls;  // "capture", "replay", "drop"
    std::string capture_failure;     // after the work, as an operator that cannot be captured would
    bool has_graph = false;
    // A replay on a device runs no code of the host; what this one has done beside its work.
    std::function<void()> undo_host = [] {};
    std::function<void()> begin = [] {};  // of a capture
    std::function<void()> end = [] {};    // may throw
  };

  explicit FakeGraphEngine(std::shared_ptr<Script> script) : script_(std::move(script)) {}

  void capture(const std::function<void()>& work) override {
    script_->calls.push_back("capture");
    script_->begin();
    work();
    script_->end();
    if (!script_->capture_failure.empty()) throw std::runtime_error(script_->capture_failure);
    work_ = work;
    runs_ahead_ = true;
    script_->has_graph = true;
  }
  void replay() override {
    script_->calls.push_back("replay");
    if (std::exchange(runs_ahead_, false)) return;
    work_();
    script_->undo_host();
  }
  void drop() noexcept override {
    if (work_) script_->calls.push_back("drop");
    work_ = nullptr;
    script_->has_graph = false;
  }
  void set_seed(int micro_step, std::uint64_t seed) override { seeds_[micro_step] = seed; }
  void draw_for(int micro_step) override { torch::manual_seed(seeds_.at(micro_step)); }

 private:
  std::shared_ptr<Script> script_;
  std::function<void()> work_;
  bool runs_ahead_ = false;
  std::map<int, std::uint64_t> seeds_;
};

}  // namespace sidestream::launch
