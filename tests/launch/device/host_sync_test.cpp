// How often the host waits for the device inside a step, counted by CUPTI: never, in any toggle.
// Needs a GPU, which two ranks share: with one rank NCCL launches nothing.
#include <cupti.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <string>

#include "tests/launch/device/gpu_steps.hpp"

namespace sidestream::launch {
namespace {

// Calls of the CUDA runtime and driver that block the host, while it lives.
class BlockingCalls {
 public:
  BlockingCalls() {
    check(cuptiSubscribe(&subscriber_, &BlockingCalls::on_call, this));
    check(cuptiEnableDomain(1, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API));
    check(cuptiEnableDomain(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API));
  }
  BlockingCalls(const BlockingCalls&) = delete;
  BlockingCalls& operator=(const BlockingCalls&) = delete;
  ~BlockingCalls() { cuptiUnsubscribe(subscriber_); }

  std::multiset<std::string> names() {
    const std::lock_guard lock(mutex_);
    return names_;
  }

 private:
  static void check(CUptiResult result) {
    const char* text = nullptr;
    if (result != CUPTI_SUCCESS) cuptiGetResultString(result, &text);
    ASSERT_EQ(result, CUPTI_SUCCESS) << text;
  }

  // cudaStreamSynchronize, cudaEventSynchronize, cuCtxSynchronize, ..., and copies that have no
  // stream. Queries return at once.
  static bool blocks(const std::string& name) {
    return name.find("Synchronize") != std::string::npos || name == "cudaMemcpy" ||
           name == "cudaMemset" || name == "cudaFree";
  }

  static void CUPTIAPI on_call(void* self, CUpti_CallbackDomain, CUpti_CallbackId,
                               const void* data) {
    const auto* call = static_cast<const CUpti_CallbackData*>(data);
    if (call->callbackSite != CUPTI_API_ENTER || !blocks(call->functionName)) return;
    auto& calls = *static_cast<BlockingCalls*>(self);
    const std::lock_guard lock(calls.mutex_);
    calls.names_.insert(call->functionName);
  }

  CUpti_SubscriberHandle subscriber_ = nullptr;
  std::mutex mutex_;
  std::multiset<std::string> names_;
};

struct HostSyncTest : testing::TestWithParam<std::vector<std::string>> {};

TEST_P(HostSyncTest, steps_never_block_the_host) {
  // Libraries set themselves up in the first, a graph is captured in the sixth.
  constexpr std::int64_t kWarmUp = 8, kCounted = 5;
  GpuSteps gpu(gpu_options(GetParam()));
  gpu.run(1, kWarmUp);

  BlockingCalls calls;
  gpu.run(kWarmUp + 1, kWarmUp + kCounted);

  const auto names = calls.names();
  EXPECT_TRUE(names.empty()) << names.size() << " calls, the first: " << *names.begin();
}

INSTANTIATE_TEST_SUITE_P(
    Toggles, HostSyncTest,
    testing::Values(std::vector<std::string>{},
                    // more tokens (5120) than LibTorch's sort has a small path for (4096)
                    std::vector<std::string>{"--batch-size-per-rank", "160"},
                    std::vector<std::string>{"--cuda-graph", "on", "--batch-size-per-rank", "160"},
                    std::vector<std::string>{"--precision", "bf16"},
                    std::vector<std::string>{"--precision", "bf16", "--packed-attention", "off",
                                             "--tune-products", "off"},
                    std::vector<std::string>{"--precision", "bf16", "--cuda-graph", "on"},
                    std::vector<std::string>{"--precision", "tf32"},
                    std::vector<std::string>{"--overlap", "off"},
                    std::vector<std::string>{"--bucketing", "off"},
                    std::vector<std::string>{"--fused-optimizer", "off"},
                    std::vector<std::string>{"--algorithm", "sgd"},
                    std::vector<std::string>{"--grad-accumulation", "2"},
                    std::vector<std::string>{"--cuda-graph", "on"},
                    std::vector<std::string>{"--cuda-graph", "on", "--grad-accumulation", "3"},
                    std::vector<std::string>{"--cuda-graph", "on", "--precision", "fp16"},
                    std::vector<std::string>{"--offload", "residuals,optimizer", "--layers", "6"},
                    std::vector<std::string>{"--offload", "residuals,optimizer", "--precision",
                                             "bf16", "--layers", "6"}));

}  // namespace
}  // namespace sidestream::launch
