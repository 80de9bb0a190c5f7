// What cuDNN says of the graphs of attention for GPUs that are not here: from their description it
// chooses kernels and says whether it supports them. Only what runs needs the GPU itself.
#include "model/device/attention_graph.hpp"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "model/config.hpp"

namespace {

int told_major = 9;

}  // namespace

// The frontend asks the runtime for the compute capability alone: these come before the library's.
extern "C" cudaError_t CUDARTAPI cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
extern "C" cudaError_t CUDARTAPI cudaGetDeviceProperties(cudaDeviceProp* properties, int /*of*/) {
  std::memset(properties, 0, sizeof *properties);
  properties->major = told_major;
  return cudaSuccess;
}

namespace sidestream::model::device {
namespace {

namespace fe = cudnn_frontend;
using fe::graph::Graph;

struct ToldGpu {
  const char* name;
  int major, multiprocessors, shared_bytes;
};
constexpr ToldGpu kA100{"NVIDIA A100", 8, 108, 166912}, kH100{"NVIDIA H100", 9, 132, 232448},
    kB200{"NVIDIA B200", 10, 148, 232448}, kV100{"NVIDIA V100", 7, 80, 98304};

// As cuDNN 9.19 writes one of a GPU that is there (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION).
std::string description_of(const ToldGpu& gpu) {
  const auto number = [](const char* name, std::int64_t value) {
    return '"' + std::string(name) + "\": " + std::to_string(value) + ", ";
  };
  return "{" + number("cudaDeviceId", 0) + number("deviceVer", gpu.major * 100) +
         number("driverVer", 13000) + number("multiProcessorCount", gpu.multiprocessors) +
         number("maxSharedMemoryPerBlock", 49152) +
         number("maxSharedMemoryPerBlockOptin", gpu.shared_bytes) +
         number("maxSharedMemoryPerSM", gpu.shared_bytes + 1024) +
         number("reservedSharedMemoryPerBlock", 1024) + number("regsPerBlock", 65536) +
         number("maxRegistersPerSM", 65536) + number("maxCtasPerSM", 32) +
         number("maxThreadsPerBlock", 1024) + number("maxThreadsPerSM", 2048) +
         number("warpSize", 32) + number("smClockRateKHz", 1980000) +
         number("memClockRateKHz", 2619000) + number("l2CacheSize", 50 << 20) +
         number("totalGlobalMem", 80'000'000'000) + number("pciDeviceId", 0) +
         number("isTccDriver", 0) + number("supportCoopLaunch", 1) +
         R"("maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], )" +
         R"("deviceName": ")" + gpu.name + "\"}";
}

// Empty, or what stands in the way.
std::string objection(const AttentionShape& shape, const ToldGpu& gpu) {
  told_major = gpu.major;
  const std::string text = description_of(gpu);
  const auto device = std::make_shared<fe::DeviceProperties>();
  if (auto error = device->deserialize({text.begin(), text.end()}); error.is_bad())
    return "the GPU: " + error.get_message();
  const std::shared_ptr<Graph> graph = attention_graph(shape);
  graph->set_device_properties(device);
  return objection_to(*graph);
}

struct AttentionGraphTest : testing::Test {
  // cuDNN looks for functions of a driver, and calls none of them here.
  static void SetUpTestSuite() {
    ASSERT_NE(dlopen(SIDESTREAM_DRIVER_STUB, RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
  }
};

struct Kind {
  AttentionPass pass;
  at::ScalarType dtype;
  bool deterministic;
};
constexpr Kind kKinds[] = {
    {AttentionPass::kForward, at::kBFloat16, false},  {AttentionPass::kForward, at::kHalf, false},
    {AttentionPass::kBackward, at::kBFloat16, false}, {AttentionPass::kBackward, at::kHalf, false},
    {AttentionPass::kBackward, at::kBFloat16, true},  {AttentionPass::kBackward, at::kHalf, true}};

TEST_F(AttentionGraphTest, cudnn_has_kernels_for_it) {
  struct Sizes {
    std::int64_t batch, time, heads, head_width;
  };
  for (const ToldGpu& gpu : {kA100, kH100, kB200}) {
    for (const Kind& kind : kKinds) {
      for (const Sizes& s : {Sizes{64, 1024, 12, 64},
                             {32, 1024, 25, 64},
                             {2, 37, 2, 16},
                             {1, 2, 1, kPackedHeadWidth},
                             {2, 130, 2, kMostPackedHeadWidth}}) {
        EXPECT_EQ(objection({.pass = kind.pass,
                             .dtype = kind.dtype,
                             .deterministic = kind.deterministic,
                             .batch = s.batch,
                             .time = s.time,
                             .heads = s.heads,
                             .head_width = s.head_width},
                            gpu),
                  "")
            << gpu.name << ", T = " << s.time << ", heads of " << s.head_width;
      }
    }
  }
}

TEST_F(AttentionGraphTest, cudnn_objects_to_a_gpu_that_has_no_kernels_for_it) {
  for (const AttentionPass pass : {AttentionPass::kForward, AttentionPass::kBackward}) {
    EXPECT_THAT(objection({.pass = pass,
                           .dtype = at::kHalf,
                           .deterministic = false,
                           .batch = 2,
                           .time = 64,
                           .heads = 2,
                           .head_width = 64},
                          kV100),
                testing::AllOf(testing::Not(testing::IsEmpty()),
                               testing::Not(testing::StartsWith("the GPU: "))));
  }
}

// Rows of three heads: [2, 37, 3 x 48] and [2, 37, 48].
TEST_F(AttentionGraphTest, operands_lie_side_by_side) {
  using Numbers = std::vector<std::int64_t>;
  const Numbers sizes{2, 3, 37, 16}, packed{37 * 144, 16, 144, 1}, alone{37 * 48, 16, 48, 1};
  const std::map<AttentionOperand, Numbers> strides = {
      {kQueries, packed}, {kKeys, packed},       {kValues, packed},   {kOut, alone},
      {kOutGrad, alone},  {kQueryGrads, packed}, {kKeyGrads, packed}, {kValueGrads, packed}};
  told_major = 9;
  const std::shared_ptr<Graph> graph = attention_graph({.pass = AttentionPass::kBackward,
                                                        .dtype = at::kBFloat16,
                                                        .deterministic = false,
                                                        .batch = 2,
                                                        .time = 37,
                                                        .heads = 3,
                                                        .head_width = 16});
  ASSERT_TRUE(graph->validate().is_good());
  fe::graph::Tensor_attributes found;
  for (const auto& [operand, expected] : strides) {
    ASSERT_TRUE(graph->query_tensor_attributes_of_uid(operand, found).is_good()) << operand;
    EXPECT_EQ(found.get_dim(), sizes) << operand;
    EXPECT_EQ(found.get_stride(), expected) << operand;
  }
  ASSERT_TRUE(graph->query_tensor_attributes_of_uid(kLogSums, found).is_good());
  EXPECT_EQ(found.get_dim(), (Numbers{2, 3, 37, 1}));
  EXPECT_EQ(found.get_stride(), (Numbers{111, 37, 1, 1}));
  EXPECT_EQ(found.get_data_type(), fe::DataType_t::FLOAT);
}

// What PackedAttention::takes() keeps away.
TEST_F(AttentionGraphTest, cudnn_objects_to_what_is_not_given_to_it) {
  AttentionShape shape{.pass = AttentionPass::kBackward,
                       .dtype = at::kBFloat16,
                       .deterministic = false,
                       .batch = 2,
                       .time = 64,
                       .heads = 2,
                       .head_width = kPackedHeadWidth + 4};
  EXPECT_THAT(objection(shape, kH100), testing::HasSubstr("multiple of 8"));
  shape.head_width = kMostPackedHeadWidth + kPackedHeadWidth;
  EXPECT_THAT(objection(shape, kA100), testing::HasSubstr("less than or equal to 128"));
  shape.head_width = 64;
  shape.time = 1;
  EXPECT_THAT(objection(shape, kH100), testing::HasSubstr("s_q = s_kv = 1 is not supported"));
}

}  // namespace
}  // namespace sidestream::model::device
