// A machine on which everything is as it should be: each test spoils one thing.
#pragma once

#include <string>
#include <vector>

#include "launch/doctor/checks.hpp"
#include "launch/doctor/job_facts.hpp"

namespace sidestream::launch::doctor {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

inline RankFacts good_rank() {
  RankFacts rank;
  rank.program = {.version = "1.0", .sha256 = "aa", .built_torch = "2.11.0", .torch = "2.11.0"};
  rank.mpi = {
      .version = "Open MPI v4.1.4", .standard = "3.1", .built_standard = "3.1", .cuda_aware = "no"};
  rank.mpirun = true;
  rank.nccl = {.built = "2.28.9", .loaded = "2.28.9"};
  rank.processor = {.name = "Xeon",
                    .capability = "AVX512",
                    .machine = {.packages = 1, .numa_nodes = 1, .cores = 4, .processors = 4},
                    .allowed = {0, 1, 2, 3}};
  rank.clock_source = "tsc";
  rank.memory = {.available_bytes = 64 * kGiB,
                 .shared_free_bytes = 32 * kGiB,
                 .huge_pages = "madvise",
                 .huge_pages_of_files = "never"};
  rank.limits = {.open_files = 4096};
  rank.gpu.device = {.problem = "no NVIDIA driver is loaded on this machine"};
  rank.network = {.fastest = "eth0", .bytes_per_s = 1.25e9};
  rank.storage = {.probed = true,
                  .folder = "/runs",
                  .filesystem = "ext4",
                  .free_bytes = 100 * kGiB,
                  .fsync_s = 0.002,
                  .bytes_per_s = 5e8};
  rank.memory_bytes_per_s = 10e9;
  return rank;
}

// Ranks by the names of their hosts, of which there are two at most.
inline JobFacts good_job(std::vector<std::string> hosts = {"a", "a"}) {
  JobFacts job;
  job.ranks.assign(hosts.size(), good_rank());
  for (std::size_t rank = 0; rank < hosts.size(); ++rank)
    job.ranks[rank].host = hosts[rank] == hosts.front() ? 0 : 1;
  job.topology = {.size = static_cast<int>(hosts.size()), .hosts = std::move(hosts)};
  job.need = need_of_example(2);
  job.has_ceilings = true;
  job.clock_offsets_s.assign(job.ranks.size(), 0.0);
  job.host_link =
      LinkFacts{.backend = "mpi+shared-memory", .barrier_s = 5e-6, .bus_bytes_per_s = 4.5e9};
  return job;
}

inline JobFacts two_hosts() {
  JobFacts job = good_job({"a", "a", "b", "b"});
  job.topology.node_count = 2;
  job.host_link->bus_bytes_per_s = 1.6e9;
  return job;
}

inline comm::DeviceFinding good_gpu(int index) {
  return {.index = index,
          .count = 8,
          .name = "NVIDIA H100",
          .uuid = "GPU-" + std::to_string(index),
          .version = "driver for CUDA 13.0, runtime 13.0",
          .memory = {.free_bytes = std::size_t{79} << 30, .total_bytes = std::size_t{80} << 30}};
}

inline JobFacts with_gpus(JobFacts job) {
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    job.ranks[rank].gpu.device = good_gpu(static_cast<int>(rank));
    job.ranks[rank].gpu.on_bus = 8;
    job.ranks[rank].gpu.driver = "580.95";
    job.ranks[rank].program.built_cuda = "13.0";
  }
  return job;
}

}  // namespace sidestream::launch::doctor
