// The real libraries, as far as they can be asked without a GPU.
#include <gtest/gtest.h>

#include "comm/cuda/driver.hpp"
#include "comm/nccl/api.hpp"

namespace sidestream::comm {
namespace {

TEST(NcclLibraryTest, library_that_is_loaded_is_the_one_of_the_build) {
  const auto api = nccl::load_api();

  EXPECT_EQ(nccl::version_text(api->runtime_version()), nccl::version_text(api->built_version()));
}

TEST(CudaLibraryTest, count_of_devices_is_positive_or_explained) {
  const cuda::DeviceCount devices = cuda::make_driver()->device_count();

  EXPECT_EQ(devices.count == 0, !devices.problem.empty());
}

TEST(NcclVersionTest, text_has_three_numbers) {
  EXPECT_EQ(nccl::version_text(22809), "2.28.9");
  EXPECT_EQ(nccl::version_text(23007), "2.30.7");
}

}  // namespace
}  // namespace sidestream::comm
