#include "profiling/advice/foreign_needs.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace sidestream::advice {
namespace {

struct Words {
  std::string_view part;  // of what our own runs would need
  const char* pytorch;
  const char* nsys;
};

constexpr const char* kNoRun = "a run directory of Sidestream: other programs write none";
constexpr const char* kNoRates =
    "what the program knows of its model and its tokens, which only runs of Sidestream write down";
constexpr const char* kNoSamples =
    "samples of the machine inside the steps, which only runs of Sidestream record";

// The first part that is found decides.
constexpr std::array<Words, 22> kWords = {{
    {"--profile-shapes", "shapes of operators: torch.profiler.profile(record_shapes=True)",
     "shapes of operators, which exports of Nsight Systems do not have: a trace of "
     "torch.profiler.profile(record_shapes=True)"},
    {"--profile-memory", "memory events: torch.profiler.profile(profile_memory=True)",
     "memory events, which are not read of exports: a trace of "
     "torch.profiler.profile(profile_memory=True)"},
    {"--sample-hz", kNoSamples, kNoSamples},
    {"metrics.jsonl", kNoRates, kNoRates},
    {"bench ceilings", "what the machine can do: `sidestream bench ceilings` on it",
     "what the machine can do: `sidestream bench ceilings` on it"},
    {"run.json", kNoRun, kNoRun},
    {"config.cfg", kNoRun, kNoRun},
    {"ProfilerStep#N", "steps: prof.step() after each of them",
     "steps: NVTX ranges ProfilerStep#1, ProfilerStep#2, ... (torch.cuda.nvtx.range_push), "
     "recorded "
     "with nsys profile -t cuda,nvtx"},
    {"ranges named optimizer",
     "the optimizer's time: with torch.profiler.record_function(\"optimizer\") around its step",
     "the optimizer's time: an NVTX range named optimizer around its step"},
    {"phases of the step",
     "phases: with torch.profiler.record_function(\"forward\"), backward, optimizer, checkpoint",
     "phases: NVTX ranges named forward, backward, optimizer, checkpoint"},
    {"sizes of collectives",
     "sizes of collectives: PyTorch 2.3 or later, which writes them on NCCL's kernels",
     "sizes of collectives, which exports do not have: a trace of torch.profiler with PyTorch 2.3 "
     "or later"},
    {"collectives in the traces of all ranks", "the traces of all ranks of one window",
     "the exports of all ranks"},
    {"collectives in the traces", "collectives: ProfilerActivity.CUDA among the activities",
     "collectives: nsys profile -t cuda"},
    {"ranges of reading batches",
     "the time of reading batches: torch.utils.data.DataLoader, or record_function(\"data\") "
     "around "
     "it",
     "an NVTX range named data around reading a batch"},
    {"calls of CUDA's runtime",
     "calls of CUDA's runtime: ProfilerActivity.CUDA among the activities",
     "calls of CUDA's runtime: nsys profile -t cuda"},
    {"occupancy of kernels", "occupancy of kernels: a torch.profiler for CUDA writes it",
     "occupancy of kernels, which exports do not have: a trace of torch.profiler"},
    {"traces of all ranks of a process group", "the traces of all ranks of one window",
     "the exports of all ranks"},
    {"operators of the host", "operators: ProfilerActivity.CPU among the activities",
     "operators, which exports do not have: a trace of torch.profiler"},
    {"host events", "host events: ProfilerActivity.CPU among the activities",
     "host events: nsys profile -t cuda,nvtx,osrt"},
    {"device properties", "a newer PyTorch: it writes the device's properties",
     "the table TARGET_INFO_GPU of the export: nsys export --lazy=false"},
    {"kernels in the traces", "kernels: ProfilerActivity.CUDA among the activities",
     "kernels: nsys profile -t cuda"},
    {"device events", "device events: ProfilerActivity.CUDA among the activities",
     "device events: nsys profile -t cuda"},
}};

}  // namespace

std::string foreign_needs(const std::string& needs, Recorder recorder) {
  const auto found = std::find_if(kWords.begin(), kWords.end(), [&](const Words& one) {
    return needs.find(one.part) != std::string::npos;
  });
  if (found == kWords.end()) return needs;
  return recorder == Recorder::kNsys ? found->nsys : found->pytorch;
}

}  // namespace sidestream::advice
