// When the work of a step runs as it is queued, when it is captured and when it is replayed. Knows
// neither CUDA nor what the work is.
//
//   StepGraph graph(engine, collectives, {.agree = ..., .current_stream = ...});
//   switch (graph.run({.layout = replicas.layout()}, queue_the_step)) ...
//
// Eagerly: until the layout is settled and kWarmUpSteps steps have gone by in it, for libraries set
// themselves up in the first; and whenever the caller says why. Then the step is captured, which
// runs nothing, and replayed; and from then on replayed alone. Another layout: what was captured is
// dropped, and it begins anew. A capture that fails ends the run on all ranks: it would fail again,
// and a run without what it was asked for would be taken for one with it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "comm/collective_capture.hpp"
#include "launch/device/graph_engine.hpp"
#include "launch/trainer/graph_use.hpp"

namespace sidestream::launch {

enum class StepWay {
  kEager,     // the work was queued
  kCaptured,  // queued for the capture, then replayed: it ran once
  kReplayed,  // only replayed: the caller's code did not run
};

// What a step says of itself before it runs.
struct StepSituation {
  std::uint64_t layout = 0;        // of all memory that outlives a step; 0: not settled yet
  std::string eager_because = {};  // why it is not to be replayed, or a part of the capture
};

struct StepGraphConfig {
  // Collective: what rank is the first to say something of its capture, and what; empty: nobody.
  std::function<std::string(const std::string& mine)> agree;
  std::function<comm::Stream()> current_stream;
  // A capture has failed: the objects that the work was made of forget what they were told.
  std::function<void()> restore = [] {};
};

class StepGraph {
 public:
  static constexpr int kWarmUpSteps = 3;

  // Engine and collectives outlive this.
  StepGraph(GraphEngine& engine, comm::CollectiveCapture& collectives, StepGraphConfig config);
  ~StepGraph() { drop(); }
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  // All ranks call it with the same layout. `work` queues the same launches whenever it runs, reads
  // what changes from step to step on the device, and has waited for its collectives. Throws what
  // the work throws when it runs eagerly; AgreedError (configuration, or memory) when it cannot be
  // captured on some rank; ConfigError, MemoryError when that is this one and peers do not come to
  // hear of it; CollectiveError, PeerError.
  StepWay run(const StepSituation& situation, const std::function<void()>& work);

  const GraphUse& use() const noexcept { return use_; }
  // A sentence for the log about the last step; empty: nothing.
  std::string take_news();

 private:
  void follow_layout(std::uint64_t layout);
  bool is_warm() const noexcept { return layout_ != 0 && warm_steps_ >= kWarmUpSteps; }
  void capture(const std::function<void()>& work);
  std::string agree(const std::string& mine);
  std::string try_to_capture(const std::function<void()>& work);
  void give_up() noexcept;
  void drop() noexcept;
  void replay();

  GraphEngine& engine_;
  comm::CollectiveCapture& collectives_;
  StepGraphConfig config_;
  std::uint64_t layout_ = 0;  // of the last step
  int warm_steps_ = 0;        // in this layout
  bool captured_ = false;
  GraphUse use_;
  std::string news_;
};

}  // namespace sidestream::launch
