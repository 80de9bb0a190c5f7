#include "launch/doctor/examination.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "launch/ceilings/ceilings.hpp"
#include "launch/doctor/link_trial.hpp"
#include "launch/doctor/over_ranks.hpp"
#include "launch/doctor/patient_probe.hpp"
#include "launch/doctor/rank_reading.hpp"
#include "launch/doctor/storage_probe.hpp"
#include "launch/process/tuning.hpp"
#include "launch/recording/clock_file.hpp"

namespace sidestream::launch::doctor {
namespace {

constexpr double kSecondsOfEach = 0.4;  // measurement
constexpr comm::CollectiveOptions kPatience = {.deadline = std::chrono::minutes(10)};

// A disk or a file system that takes its time, or does not answer, is a finding and no time-out.
StorageFacts probe(const Session& session, const std::filesystem::path& folder) {
  return probe_with_patience(
      folder,
      [folder](const std::function<bool()>& stop) { return probe_storage(folder, {}, stop); },
      [&session] { return session.stop_requested(); });
}

// With patience, too: `work` on a thread of its own, left behind when it hangs.
bool answers(const Session& session, const std::filesystem::path& folder,
             const std::function<bool()>& work) {
  const StorageFacts facts = probe_with_patience(
      folder, [work](const std::function<bool()>&) { return StorageFacts{.sees_first = work()}; },
      [&session] { return session.stop_requested(); });
  return facts.answered && facts.problem.empty() && facts.sees_first;
}

// Whether the first rank of each host finds what rank 0 writes. The name has never been looked for,
// so that no cache knows it.
void look_for_first(Session& session, StorageFacts& facts) {
  comm::Communicator& communicator = session.communicator();
  if (communicator.topology().node_count == 1) return;
  const std::string mine = facts.folder + "/.probe." + std::to_string(std::random_device()());
  const std::filesystem::path token = communicator.exchange(mine, kPatience).front();
  const bool writes = session.is_first_rank() && facts.answered && facts.problem.empty();
  if (writes) answers(session, token, [token] { return std::ofstream(token).good(); });
  communicator.barrier(kPatience);
  if (communicator.topology().local_rank == 0 && facts.answered && !session.is_first_rank())
    facts.sees_first = answers(session, token, [token] { return std::filesystem::exists(token); });
  communicator.barrier(kPatience);
  if (writes) answers(session, token, [token] { return std::filesystem::remove(token); });
}

// All ranks of a host at once, as they will train.
double memory_rate(comm::Communicator& communicator) {
  if (communicator.size() == 1) return 0;
  constexpr std::int64_t kOfAllRanks = 256 << 20, kLeast = 32 << 20;
  const std::int64_t bytes = std::max(kLeast, kOfAllRanks / communicator.topology().local_size);
  communicator.barrier(kPatience);
  return measure_copy(kSecondsOfEach, bytes);
}

// Reads, writes, measures; the processors are read before this rank is pinned to some.
RankFacts facts_of_this_rank(Session& session, const DoctorOptions& options,
                             const comm::DeviceFinding& gpu) {
  comm::Communicator& communicator = session.communicator();
  RankFacts facts = read_rank(gpu, communicator.topology());
  if (communicator.topology().local_rank == 0) facts.storage = probe(session, options.run_dir);
  communicator.barrier(kPatience);  // those that have no disk to try come early
  look_for_first(session, facts.storage);
  pin_and_set_threads(communicator, {});
  facts.memory_bytes_per_s = memory_rate(communicator);
  facts.stop = session.stop_requested();
  return facts;
}

// Nothing on ranks other than 0.
std::vector<double> clock_offsets(comm::Communicator& communicator) {
  ClockNotes notes;
  sample_clocks(communicator, notes);
  const std::string text = gather_clock_text(communicator, notes);
  if (text.empty()) return {};
  std::vector<double> offsets_s;
  for (const nlohmann::json& rank : nlohmann::json::parse(text).at("ranks"))
    offsets_s.push_back(rank.value("offset_us", 0.0) * 1e-6);
  return offsets_s;
}

bool on_gpus(const JobFacts& job) {
  std::vector<comm::DeviceFinding> devices;
  for (const RankFacts& rank : job.ranks) devices.push_back(rank.gpu.device);
  return comm::decide_device(job.wish, devices, job.topology, comm::GpuSharing::kRefused).on_gpu;
}

// What goes wrong on a rank is told to all over the host ranks' communicator, which stays whole.
LinkFacts try_gpus(Session& session, const DoctorOptions& options, const comm::DeviceFinding& gpu) {
  LinkFacts facts{.backend = "nccl"};
  try {
    std::vector<std::string> warnings;  // the same as those of the host ranks
    const auto communicator = comm::make_communicator(
        session.environment(),
        {.backend = comm::Backend::kNccl, .device = options.device, .gpu = gpu}, warnings);
    facts = try_link(*communicator, kSecondsOfEach);
  } catch (const std::exception& error) {
    facts.problem = error.what();
  }
  const auto problems = session.communicator().exchange(facts.problem, kPatience);
  for (const std::string& problem : problems) {
    if (facts.problem.empty()) facts.problem = problem;
  }
  return facts;
}

void add_ceilings(JobFacts& job) {
  const auto ceilings = load_ceilings(ceilings_file(), job.ranks.front().gpu.device.name);
  job.has_ceilings = ceilings.has_value();
  if (ceilings && ceilings->device)
    job.pcie_bytes_per_s = ceilings->device->host_to_device_bytes_per_s;
}

}  // namespace

std::optional<JobFacts> examine(Session& session, const DoctorOptions& options,
                                const comm::DeviceFinding& gpu) {
  comm::Communicator& communicator = session.communicator();
  JobFacts job{.topology = communicator.topology(), .wish = options.device};
  job.ranks.clear();
  const RankFacts mine = facts_of_this_rank(session, options, gpu);
  bool stop = false;
  for (const std::string& text : communicator.exchange(mine.to_text(), kPatience)) {
    job.ranks.push_back(RankFacts::from_text(text));
    stop = stop || job.ranks.back().stop;
  }
  if (stop) return std::nullopt;
  job.need = need_of_example(most_ranks_of_a_host(job));
  add_ceilings(job);
  if (communicator.size() > 1) {
    job.clock_offsets_s = clock_offsets(communicator);
    job.host_link = try_link(communicator, kSecondsOfEach);
  }
  if (on_gpus(job)) job.gpu_link = try_gpus(session, options, gpu);
  return job;
}

}  // namespace sidestream::launch::doctor
