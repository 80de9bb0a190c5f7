#include "core/base/processors.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace sidestream::core {
namespace {

TEST(ProcessorsTest, a_thread_that_is_restricted_has_those_alone_and_others_keep_theirs) {
  const std::vector<int> all = allowed_processors();
  ASSERT_FALSE(all.empty());
  std::vector<int> found;
  std::thread([&] {
    ASSERT_TRUE(restrict_to({all.back()}));
    found = allowed_processors();
  }).join();

  EXPECT_EQ(found, std::vector<int>{all.back()});
  EXPECT_EQ(allowed_processors(), all);
}

TEST(ProcessorsTest, threads_of_one_core_are_one_core) {
  std::thread([] {
    const std::vector<int> all = allowed_processors();
    EXPECT_LE(allowed_cores(), static_cast<int>(all.size()));
    ASSERT_TRUE(restrict_to({all.front()}));
    EXPECT_EQ(allowed_cores(), 1);
  }).join();
}

TEST(ProcessorsTest, what_the_machine_does_not_have_is_not_allowed) {
  EXPECT_FALSE(restrict_to({}));
  EXPECT_FALSE(restrict_to({1 << 18}));
}

}  // namespace
}  // namespace sidestream::core
