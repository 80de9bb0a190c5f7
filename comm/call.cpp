#include "comm/call.hpp"

#include <string>

#include "core/base/error.hpp"

namespace sidestream::comm {
namespace {

// Most programs have one model, and their messages do not number it.
std::string bucket_text(const Call& call) {
  const std::string of_model = call.model > 0 ? " of model " + std::to_string(call.model + 1) : "";
  return "bucket " + std::to_string(call.bucket) + of_model;
}

}  // namespace

std::string Call::name() const {
  switch (kind) {
    case CallKind::kAllReduce:
      return "all_reduce";
    case CallKind::kReduceScatter:
      return "reduce_scatter";
    case CallKind::kAllGather:
      return "all_gather";
    case CallKind::kBroadcast:
      return "broadcast";
    case CallKind::kBarrier:
      return "barrier";
    case CallKind::kExchange:
      return "exchange";
    case CallKind::kReplay:
      return "replay";
  }
  throw core::Error("unknown kind of collective " + std::to_string(static_cast<int>(kind)));
}

std::string Call::arguments() const {
  const std::string what(purpose.text());
  if (kind == CallKind::kBarrier) return what.empty() ? name() : name() + " at " + what;
  if (kind == CallKind::kExchange)  // lengths may differ among ranks
    return what.empty() ? name() : name() + " of " + what;
  if (kind == CallKind::kReplay) return name() + " of " + std::to_string(count) + " collectives";
  const std::string from = root >= 0 ? " from rank " + std::to_string(root) : "";
  const std::string in_bucket = bucket >= 0 ? " for " + bucket_text(*this) : "";
  return name() + " of " + std::to_string(count) + " " + std::string(core::name_of(dtype)) + from +
         in_bucket;
}

std::string Call::description() const {
  if (kind == CallKind::kReplay) {
    return arguments() + " (the last is operation " + std::to_string(sequence) + ", " +
           std::to_string(bytes) + " bytes)";
  }
  const std::string in_bucket = bucket >= 0 ? ", " + bucket_text(*this) : "";
  return name() + " (operation " + std::to_string(sequence) + in_bucket + ", " +
         std::to_string(bytes) + " bytes)";
}

ranges::Phase Call::phase() const {
  switch (kind) {
    case CallKind::kAllReduce:
      return ranges::Phase::kAllReduce;
    case CallKind::kReplay:
      return ranges::Phase::kReplay;
    case CallKind::kReduceScatter:
      return ranges::Phase::kReduceScatter;
    case CallKind::kAllGather:
    case CallKind::kExchange:
      return ranges::Phase::kAllGather;
    case CallKind::kBroadcast:
      return ranges::Phase::kBroadcast;
    case CallKind::kBarrier:
      return ranges::Phase::kBarrier;
  }
  throw core::Error("unknown kind of collective " + std::to_string(static_cast<int>(kind)));
}

}  // namespace sidestream::comm
