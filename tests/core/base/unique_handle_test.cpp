#include "core/base/unique_handle.hpp"

#include <gtest/gtest.h>

#include <type_traits>
#include <utility>
#include <vector>

namespace sidestream::core {
namespace {

// A handle that points at the list of what was closed.
struct Resource {
  std::vector<int>* closed;
  int id;
};

struct ResourceTraits {
  using Value = Resource*;
  static constexpr Resource* null = nullptr;
  static void close(Resource* resource) noexcept { resource->closed->push_back(resource->id); }
};
using Handle = UniqueHandle<ResourceTraits>;

static_assert(!std::is_copy_constructible_v<Handle> && !std::is_copy_assignable_v<Handle>);
static_assert(std::is_nothrow_move_constructible_v<Handle> &&
              std::is_nothrow_move_assignable_v<Handle>);

class UniqueHandleTest : public testing::Test {
 protected:
  std::vector<int> closed_;
  Resource first_{&closed_, 1};
  Resource second_{&closed_, 2};
};

TEST_F(UniqueHandleTest, destructor_closes_once) {
  { const Handle handle(&first_); }

  EXPECT_EQ(closed_, std::vector<int>{1});
}

TEST_F(UniqueHandleTest, moved_from_is_empty_and_closes_nothing) {
  Handle source(&first_);
  {
    const Handle target(std::move(source));

    EXPECT_FALSE(source);
    EXPECT_EQ(source.get(), nullptr);
    EXPECT_EQ(target.get(), &first_);
  }
  EXPECT_EQ(closed_, std::vector<int>{1});
}

TEST_F(UniqueHandleTest, move_assignment_closes_the_old_value) {
  Handle target(&first_);
  Handle source(&second_);

  target = std::move(source);

  EXPECT_EQ(closed_, std::vector<int>{1});
  EXPECT_EQ(target.get(), &second_);
  EXPECT_FALSE(source);
}

TEST_F(UniqueHandleTest, move_assignment_to_itself_keeps_the_value) {
  Handle handle(&first_);
  Handle& same = handle;

  handle = std::move(same);

  EXPECT_EQ(handle.get(), &first_);
  EXPECT_TRUE(closed_.empty());
}

TEST_F(UniqueHandleTest, release_gives_up_ownership) {
  Handle handle(&first_);

  EXPECT_EQ(handle.release(), &first_);
  EXPECT_FALSE(handle);
  handle.reset();
  EXPECT_TRUE(closed_.empty());
}

}  // namespace
}  // namespace sidestream::core
