// What captures the work that a thread queues on its current stream, and replays it: a CUDA graph,
// or a test's. And the draws of dropout inside of it, which begin at another seed in every step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <torch/types.h>
#include <torch/utils.h>

namespace sidestream::launch {

class GraphEngine {
 public:
  virtual ~GraphEngine() = default;
  GraphEngine(const GraphEngine&) = delete;
  GraphEngine& operator=(const GraphEngine&) = delete;

  // Waits for the device, then calls `work`: what it queues on the current stream, and autograd for
  // it, is captured and does not run. What was captured before is gone. Throws what `work` throws,
  // and c10::Error when something in it cannot be captured; nothing is captured then.
  virtual void capture(const std::function<void()>& work) = 0;

  // Queues what was captured on the current stream. Throws c10::Error.
  virtual void replay() = 0;
  // Waits for the device; what was captured is gone, and its memory.
  virtual void drop() noexcept = 0;

  // Where the draws of a micro-step begin the next time that it runs, captured or not: as after
  // torch::manual_seed(seed). Outside of a capture.
  virtual void set_seed(int micro_step, std::uint64_t seed) = 0;
  // What comes next on this thread draws from there.
  virtual void draw_for(int micro_step) = 0;

 protected:
  GraphEngine() = default;
};

// CUDA's. Throws ConfigError in a build without it.
std::unique_ptr<GraphEngine> make_graph_engine(const torch::Device& device, int micro_steps);

// Whether this build has one.
bool has_graph_engine() noexcept;

}  // namespace sidestream::launch
