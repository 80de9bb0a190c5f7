#include "parallel/replica_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/Parallel.h>

#include "comm/exchange_values.hpp"
#include "core/base/error.hpp"
#include "parallel/copy_groups.hpp"

namespace sidestream::parallel {
namespace {

using Hash = std::uint64_t;
static_assert(sizeof(std::size_t) == sizeof(Hash));

Hash hash_of(const torch::Tensor& tensor) {
  return std::hash<std::string_view>{}(
      {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()});
}

constexpr std::size_t kCopiedBytes = std::size_t{256} << 20;

bool has_masters_to_compare(const ParameterSpace& parameters) {
  return parameters.has_master() && !parameters.is_sharded();
}

std::size_t bytes_to_copy(const torch::Tensor& tensor) {
  return tensor.device().is_cpu() ? 0 : tensor.nbytes();
}

std::vector<std::size_t> bytes_to_copy(const ParameterSpace& parameters) {
  std::vector<std::size_t> bytes;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    bytes.push_back(bytes_to_copy(parameters.weights(i)));
    if (has_masters_to_compare(parameters)) bytes.back() += bytes_to_copy(parameters.master(i));
  }
  return bytes;
}

void hash_group(const ParameterSpace& parameters, const CopyGroup& group,
                std::vector<Hash>& hashes) {
  const bool has_masters = has_masters_to_compare(parameters);
  std::vector<torch::Tensor> weights;  // on the host
  std::vector<torch::Tensor> masters;
  for (std::size_t i = group.begin; i < group.end; ++i) {
    weights.push_back(parameters.weights(i).cpu());
    if (has_masters) masters.push_back(parameters.master(i).cpu());
  }
  at::parallel_for(0, std::ssize(weights), 1, [&](auto begin, auto end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      Hash& hash = hashes[group.begin + i];
      hash = hash_of(weights[i]);
      if (has_masters) hash = hash * 31 + hash_of(masters[i]);
    }
  });
}

// One hash a parameter, as bytes to send: of the weights and of the master weights, which may
// differ on their own, unless each is on one rank only.
std::string hashes_of(const ParameterSpace& parameters) {
  std::vector<Hash> hashes(parameters.size());
  for (const CopyGroup& group : copy_groups(bytes_to_copy(parameters), kCopiedBytes))
    hash_group(parameters, group, hashes);
  return {reinterpret_cast<const char*>(hashes.data()), hashes.size() * sizeof(Hash)};
}

Hash hash_at(const std::string& hashes, std::size_t index) {
  Hash hash = 0;
  std::memcpy(&hash, hashes.data() + index * sizeof(Hash), sizeof(Hash));
  return hash;
}

std::string groups_text(const std::map<Hash, std::vector<std::size_t>>& ranks_by_hash) {
  std::vector<std::string> parts;
  for (const auto& [hash, ranks] : ranks_by_hash) {
    parts.push_back(fmt::format("{:016x} on rank{} {}", hash, ranks.size() == 1 ? "" : "s",
                                fmt::join(ranks, ", ")));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

// Where most ranks agree, the others are the odd ones.
std::string odd_ranks_text(const std::map<Hash, std::vector<std::size_t>>& ranks_by_hash,
                           std::size_t ranks) {
  std::vector<std::size_t> odd;
  for (const auto& [hash, group] : ranks_by_hash) {
    if (2 * group.size() <= ranks) odd.insert(odd.end(), group.begin(), group.end());
  }
  if (odd.size() == ranks) return "";  // nobody has a majority
  return fmt::format(" The odd one{}: rank {}.", odd.size() == 1 ? "" : "s", fmt::join(odd, ", "));
}

}  // namespace

void check_replicas(comm::Communicator& communicator, const ParameterSpace& parameters) {
  if (parameters.is_shared() || communicator.size() == 1) return;  // nothing can differ
  const comm::CollectiveOptions options{.purpose = "replica hashes"};
  const std::vector<std::string> all = communicator.exchange(hashes_of(parameters), options);
  comm::require_lengths(all, parameters.size() * sizeof(Hash), options.purpose);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    std::map<Hash, std::vector<std::size_t>> ranks_by_hash;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      ranks_by_hash[hash_at(all[rank], i)].push_back(rank);
    }
    if (ranks_by_hash.size() == 1) continue;
    throw core::NumericsError(fmt::format(
        "Replicas have drifted apart: parameter '{}' should be the same on every rank, "
        "found {}.{} Resume from a checkpoint; if it happens again, check the memory of "
        "the odd rank's machine.",
        parameters.at(i).name, groups_text(ranks_by_hash),
        odd_ranks_text(ranks_by_hash, all.size())));
  }
}

}  // namespace sidestream::parallel
