// A communicator of every kind over the ranks of the test, and values whose sums are exact in every
// element type.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "comm/factory.hpp"
#include "core/base/dtype.hpp"
#include "tests/cmake/mpi_test_environment.hpp"

namespace sidestream::test {

enum class Memory { kAllocated, kForeign };

inline std::unique_ptr<comm::Communicator> make_host_communicator(bool shared_memory) {
  std::vector<std::string> warnings;
  return comm::make_communicator(mpi_environment(),
                                 {.backend = comm::Backend::kMpi,
                                  .shared_memory = shared_memory,
                                  .timeout_collective = std::chrono::seconds(30)},
                                 warnings);
}

// Small integers: exact in bfloat16 as long as the sum over ranks stays below 256.
inline int small_value(std::size_t index, int rank) {
  return static_cast<int>((index * 7 + static_cast<std::size_t>(rank) * 3) % 31) - 15;
}

inline void store(std::byte* data, std::size_t index, core::DType dtype, double value) {
  if (dtype == core::DType::kFloat32) {
    const auto v = static_cast<float>(value);
    std::memcpy(data + 4 * index, &v, 4);
  } else if (dtype == core::DType::kBFloat16) {
    const core::BFloat16 v(static_cast<float>(value));
    std::memcpy(data + 2 * index, &v, 2);
  } else if (dtype == core::DType::kFloat16) {
    const auto v = static_cast<_Float16>(value);
    std::memcpy(data + 2 * index, &v, 2);
  } else {
    const auto v = static_cast<std::int64_t>(value);
    std::memcpy(data + 8 * index, &v, 8);
  }
}

inline double load(const std::byte* data, std::size_t index, core::DType dtype) {
  if (dtype == core::DType::kFloat32) {
    float v = 0;
    std::memcpy(&v, data + 4 * index, 4);
    return v;
  }
  if (dtype == core::DType::kBFloat16) {
    core::BFloat16 v;
    std::memcpy(&v, data + 2 * index, 2);
    return static_cast<float>(v);
  }
  if (dtype == core::DType::kFloat16) {
    _Float16 v = 0;
    std::memcpy(&v, data + 2 * index, 2);
    return static_cast<double>(v);
  }
  std::int64_t v = 0;
  std::memcpy(&v, data + 8 * index, 8);
  return static_cast<double>(v);
}

}  // namespace sidestream::test
