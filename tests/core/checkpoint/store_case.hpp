// Tests of a store of checkpoints in a folder of its own.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint_store.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/core/checkpoint/samples.hpp"

namespace sidestream::checkpoint {

class StoreCase : public testing::Test {
 protected:
  void save_steps(const std::vector<std::int64_t>& steps) {
    for (const std::int64_t step : steps) save_sample(store_, {.step = step});
  }
  std::filesystem::path file(std::int64_t step, const std::string& name) const {
    return store_.final_folder(step) / name;
  }

  core::ScratchFolder folder_;
  CheckpointStore store_{folder_ / "checkpoints"};
};

}  // namespace sidestream::checkpoint
