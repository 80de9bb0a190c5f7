#include <fmt/format.h>

#include <algorithm>

#include "launch/doctor/amounts.hpp"
#include "launch/doctor/checks.hpp"
#include "launch/doctor/expected_link.hpp"

namespace sidestream::launch::doctor {
namespace {

// Of what the hardware gives: below it something is wrong, and not only busy.
constexpr double kFairShare = 0.4;

std::string ranks_text(const JobFacts& job) {
  const int hosts = job.topology.node_count;
  return fmt::format("{} ranks on {} host{}", job.ranks.size(), hosts, hosts == 1 ? "" : "s");
}

Finding hello(const JobFacts& job, const char* name, const LinkFacts& link) {
  if (link.problem.empty())
    return {.name = name,
            .found = fmt::format("{} over {}: sums are right, a barrier takes {}", ranks_text(job),
                                 link.backend, seconds_text(link.barrier_s))};
  return {.name = name,
          .level = Level::kError,
          .found = link.problem,
          .expected = fmt::format("{} that add up numbers together", ranks_text(job))};
}

Finding bandwidth(const JobFacts& job, const char* name, const LinkFacts& link,
                  const ExpectedLink& expected) {
  Finding finding{
      .name = name,
      .found = fmt::format("{} bus bandwidth, 64 MB on {} ({})", rate_text(link.bus_bytes_per_s),
                           ranks_text(job), link.backend)};
  if (expected.bus_bytes_per_s <= 0) {
    finding.level = Level::kNote;
    finding.expected = "not known: nothing here says how fast the link is";
    finding.remedy =
        "compare with the network's datasheet; on one host, `sidestream bench "
        "ceilings` measures what is needed";
    return finding;
  }
  finding.expected =
      fmt::format("about {}, by {}", rate_text(expected.bus_bytes_per_s), expected.from);
  if (link.bus_bytes_per_s < kFairShare * expected.bus_bytes_per_s) finding.level = Level::kWarning;
  return finding;
}

}  // namespace

std::optional<Finding> check_ranks(const JobFacts& job) {
  if (job.ranks.size() == 1)
    return Finding{.name = "ranks",
                   .level = Level::kNote,
                   .found = "one process: whether ranks reach each other was not tried",
                   .expected = "as many ranks as a training will have",
                   .remedy = "launch/run -np N -- doctor, with the same --hosts"};
  if (!job.host_link) return std::nullopt;
  Finding finding = hello(job, "ranks", *job.host_link);
  finding.remedy = finding.level == Level::kOk
                       ? ""
                       : "try `launch/run -np 2 -- doctor` on each host alone, then on two; a "
                         "firewall between hosts stops MPI (--mpi-arg --mca --mpi-arg "
                         "btl_tcp_if_include --mpi-arg eth0 names the network)";
  return finding;
}

std::optional<Finding> check_all_reduce(const JobFacts& job) {
  if (!job.host_link || !job.host_link->problem.empty() || job.ranks.size() < 2)
    return std::nullopt;
  Finding finding = bandwidth(job, "all-reduce", *job.host_link, expected_host_link(job));
  if (finding.level == Level::kWarning)
    finding.remedy = job.topology.node_count > 1
                         ? "name the fast network (--mpi-arg --mca --mpi-arg btl_tcp_if_include "
                           "--mpi-arg eth0), and look for other traffic on it"
                         : "make room in /dev/shm, start with launch/run (binding), and look for "
                           "other programs on this machine";
  return finding;
}

std::optional<Finding> check_gpu_ranks(const JobFacts& job) {
  if (!job.gpu_link) return std::nullopt;
  Finding finding = hello(job, "nccl-ranks", *job.gpu_link);
  finding.remedy = finding.level == Level::kOk
                       ? ""
                       : "NCCL_DEBUG=INFO says what NCCL tries; NCCL_SOCKET_IFNAME names its "
                         "network; --backend mpi trains without it";
  return finding;
}

std::optional<Finding> check_gpu_all_reduce(const JobFacts& job) {
  if (!job.gpu_link || !job.gpu_link->problem.empty() || job.ranks.size() < 2) return std::nullopt;
  Finding finding = bandwidth(job, "nccl-all-reduce", *job.gpu_link, expected_gpu_link(job));
  if (finding.level == Level::kWarning)
    finding.remedy =
        "nvidia-smi topo -m shows how the GPUs are joined; NCCL_DEBUG=INFO which path "
        "NCCL takes (P2P and NVLink before SHM and NET)";
  return finding;
}

}  // namespace sidestream::launch::doctor
