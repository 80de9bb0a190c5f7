#include "profiling/record/nvlinks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sidestream::record {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(NvLinksTest, links_that_are_up_add_up_by_where_they_lead) {
  const NvLinks links = read_nvlinks("0000:3B:00.0", SIDESTREAM_FAKE_NVML);

  EXPECT_EQ(links.bus_id, "00000000:3B:00.0");
  EXPECT_DOUBLE_EQ(links.switch_bytes_per_s, 50e9);
  EXPECT_THAT(links.to, ElementsAre(Pair("00000000:4C:00.0", 50e9)));
}

TEST(NvLinksTest, without_the_library_or_a_gpu_there_are_none) {
  for (const NvLinks& links :
       {read_nvlinks(0u, "libsidestream-has-no-such-library.so"), read_nvlinks(0u, "libm.so.6"),
        read_nvlinks("", SIDESTREAM_FAKE_NVML),
        read_nvlinks("0000:4C:00.0", SIDESTREAM_FAKE_NVML)}) {
    EXPECT_EQ(links.bus_id, "");
    EXPECT_EQ(links.switch_bytes_per_s, 0);
    EXPECT_THAT(links.to, IsEmpty());
  }
}

}  // namespace
}  // namespace sidestream::record
