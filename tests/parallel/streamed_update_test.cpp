// Optimizer state in the memory of a device's host, on its way: which copies and launches wait for
// which, behind a fake of CUDA.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "comm/cuda/stream_copies.hpp"
#include "comm/single_communicator.hpp"
#include "tests/comm/device/fake_driver.hpp"
#include "tests/core/optim/host_kernels.hpp"
#include "tests/parallel/toy_training.hpp"

namespace sidestream::test {
namespace {

using parallel::DataParallel;
using parallel::StateResidence;

constexpr std::int64_t kStreamedWidth =
    6007;  // several pieces in the large weights, the last ones odd
constexpr std::size_t kSliceElements = 40000;

// Copies by direction and number: "in 3" is the fourth slice that comes.
class NumberedCopies final : public comm::cuda::FakeDriver {
 public:
  explicit NumberedCopies(std::size_t states) : states_(states) {}

  void* allocate_pinned(std::size_t bytes) override {
    void* memory = FakeDriver::allocate_pinned(bytes);
    pinned_[static_cast<const std::byte*>(memory)] = bytes;
    return memory;
  }
  void copy(void* to, const void* from, std::size_t bytes, comm::Stream stream) override {
    std::size_t& count = is_pinned(to) ? out_ : in_;
    enqueue((is_pinned(to) ? "out " : "in ") + std::to_string(count++ / states_), stream);
    std::memmove(to, from, bytes);
  }

 private:
  bool is_pinned(const void* memory) const {
    const auto next = pinned_.upper_bound(static_cast<const std::byte*>(memory));
    if (next == pinned_.begin()) return false;
    const auto& [begin, bytes] = *std::prev(next);
    return static_cast<const std::byte*>(memory) < begin + bytes;
  }

  std::size_t states_;
  std::size_t in_ = 0, out_ = 0;
  std::map<const std::byte*, std::size_t> pinned_;
};

struct StreamedUpdateTest : testing::Test {
  static constexpr std::size_t kStates = 3;  // master weights, two moments

  std::shared_ptr<NumberedCopies> driver = std::make_shared<NumberedCopies>(kStates);
  comm::Stream compute = driver->create_stream(comm::cuda::Priority::kNormal);
  comm::SingleCommunicator alone;
  ToyOptions options{.hidden = kStreamedWidth,
                     .config = {.parameter_dtype = core::DType::kBFloat16,
                                .optimizer = {.state_residence = StateResidence::kHost}}};
  int updates = 0;

  StreamedUpdateTest() {
    const auto kernels = std::make_shared<optim::HostKernels>();
    kernels->on_launch = [this](const std::string& name, comm::Stream stream) {
      driver->enqueue(name == "adamw" ? "adamw " + std::to_string(updates++) : name, stream);
    };
    options.tools.kernels = kernels;
    options.tools.state_slice_elements = kSliceElements;
    options.tools.current_stream = [this] { return compute; };
    options.tools.make_copies = [this] {
      return comm::cuda::make_stream_copies(
          driver, [this] { return compute; }, "--offload");
    };
  }

  static std::string numbered(const std::string& name, int i) {
    return name + " " + std::to_string(i);
  }
};

TEST_F(StreamedUpdateTest, slices_comeAndGoWhileOthersAreUpdated) {
  ToyNet net(0, kStreamedWidth);
  DataParallel replicas(net, alone, options.config, options.tools);

  run_toy_step(net, replicas, alone, options, 1);
  driver->enqueue("forward", compute);
  const int slices = updates;
  run_toy_step(net, replicas, alone, options, 2);

  ASSERT_GE(slices, 3);
  ASSERT_EQ(updates, 2 * slices);
  for (int i = 0; i < slices; ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(driver->count_of(numbered("in", i)), kStates);
    EXPECT_TRUE(driver->is_after(numbered("adamw", i), numbered("in", i)));
    EXPECT_TRUE(driver->is_after(numbered("out", i), numbered("adamw", i)));
    EXPECT_TRUE(driver->is_after(numbered("in", i + slices), numbered("out", i)))
        << "the next step reads what this one has left";
  }
  for (int i = slices - 2; i < slices; ++i)
    EXPECT_FALSE(driver->is_after("forward", numbered("out", i))) << "it has its weights already";
  for (int i = 0; i + 2 < slices; ++i)
    EXPECT_TRUE(driver->is_after(numbered("in", i + 2), numbered("out", i))) << "the same buffer";
  EXPECT_FALSE(driver->is_after("adamw 0", "in 1")) << "it need not wait for the next slice";
  EXPECT_FALSE(driver->is_after("in 1", "out 0"));
  EXPECT_NE(driver->stream_of("in 0"), driver->stream_of("out 0"));
  EXPECT_NE(driver->stream_of("in 0"), compute);
  EXPECT_TRUE(driver->is_after("forward", numbered("adamw", slices - 1)));
}

TEST_F(StreamedUpdateTest, steps_neverWaitForTheDevice) {
  ToyNet net(0, kStreamedWidth);
  DataParallel replicas(net, alone, options.config, options.tools);
  const int synchronizations = driver->synchronizations;
  driver->hold();  // nothing on the device is ever done

  for (int step = 1; step <= 3; ++step) run_toy_step(net, replicas, alone, options, step);

  EXPECT_EQ(driver->synchronizations, synchronizations);
  driver->release();
  replicas.states();
  EXPECT_GT(driver->synchronizations, synchronizations) << "who reads the state does";
}

TEST_F(StreamedUpdateTest, end_givesEverythingBack) {
  {
    ToyNet net(0, kStreamedWidth);
    DataParallel replicas(net, alone, options.config, options.tools);
    run_toy_step(net, replicas, alone, options, 1);
    EXPECT_EQ(driver->pinned_alive, kStates);
  }

  EXPECT_EQ(driver->pinned_alive, 0u);
  EXPECT_EQ(driver->events_alive, 0u);
  EXPECT_EQ(driver->streams_alive, 1u) << "the test's own";
}

}  // namespace
}  // namespace sidestream::test
