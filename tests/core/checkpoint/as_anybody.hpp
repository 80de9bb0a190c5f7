// As a user who may not read everything; root may, whatever a file says.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

namespace sidestream::checkpoint {

class AsAnybody {
 public:
  AsAnybody() : was_root_(::geteuid() == 0) {
    if (was_root_) {
      EXPECT_EQ(::seteuid(kNobody), 0);
    }
  }
  ~AsAnybody() {
    if (was_root_) {
      EXPECT_EQ(::seteuid(0), 0);
    }
  }

 private:
  static constexpr uid_t kNobody = 65534;
  bool was_root_;
};

}  // namespace sidestream::checkpoint
