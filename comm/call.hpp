// One collective call as this rank made it: what ranges, errors and the comparison among ranks need
// to know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "comm/purpose.hpp"
#include "core/base/dtype.hpp"
#include "profiling/ranges/phases.hpp"

namespace sidestream::comm {

enum class CallKind : std::uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kBarrier,
  kExchange,
  kReplay  // of collectives that were captured: `count` of them
};

struct Call {
  CallKind kind = CallKind::kBarrier;
  core::DType dtype = core::DType::kUInt8;
  std::int32_t root = -1;      // broadcast only
  std::uint64_t count = 0;     // as passed: elements, or elements per rank; replay: collectives
  std::uint64_t sequence = 0;  // counts the calls of a communicator, from 1
  std::uint64_t bytes = 0;     // of this rank's input
  std::int32_t bucket = -1;
  std::int32_t model = -1;  // whose bucket: of Communicator::number_model()
  Purpose purpose = {};     // exchange only

  // The same on all ranks, or the program is wrong.
  bool agrees_with(const Call& other) const noexcept {
    return kind == other.kind && dtype == other.dtype && root == other.root &&
           count == other.count && sequence == other.sequence && bucket == other.bucket &&
           model == other.model && purpose == other.purpose;
  }
  std::string name() const;  // "all_reduce"
  std::string arguments()
      const;  // "all_reduce of 100 float32 for bucket 3", "exchange of step votes"
  std::string description() const;  // "all_reduce (operation 12, bucket 3, 400 bytes)"
  ranges::Phase phase() const;
  // What the range of this operation carries.
  ranges::CollectivePayload payload() const noexcept {
    return {.bucket = bucket,
            .sequence = static_cast<std::int64_t>(sequence),
            .bytes = static_cast<std::int64_t>(bytes)};
  }
};

}  // namespace sidestream::comm
