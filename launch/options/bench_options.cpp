#include "launch/options/bench_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "launch/options/byte_sizes.hpp"
#include "launch/options/command_options.hpp"

namespace sidestream::launch {
namespace {

using Options = BenchOptions;
using comm::DeviceWish;

constexpr std::size_t kKib = 1 << 10, kMib = 1 << 20;

// What a step sends at once: from a norm's parameters to those of a whole small model.
const std::vector<std::size_t> kOfCollectives = {4 * kKib, 16 * kKib, 64 * kKib, 256 * kKib, kMib,
                                                 4 * kMib, 16 * kMib, 64 * kMib, 256 * kMib};
// Buckets of gradients.
const std::vector<std::size_t> kOfOverlap = {256 * kKib, kMib, 4 * kMib, 16 * kMib, 64 * kMib};

const Names<core::DType>& dtypes() {
  static const Names<core::DType> names = {{"fp32", core::DType::kFloat32},
                                           {"bf16", core::DType::kBFloat16},
                                           {"fp16", core::DType::kFloat16},
                                           {"int64", core::DType::kInt64}};
  return names;
}

const Names<BenchSubject>& subjects() {
  static const Names<BenchSubject> names = {
      {"ceilings", BenchSubject::kCeilings},   {"allreduce", BenchSubject::kAllReduce},
      {"allgather", BenchSubject::kAllGather}, {"reducescatter", BenchSubject::kReduceScatter},
      {"overlap", BenchSubject::kOverlap},     {"step", BenchSubject::kStep}};
  return names;
}

// Throws Error for a value that has no name.
template <typename Value>
std::string_view name_in(const Names<Value>& names, Value wanted) {
  for (const auto& [word, value] : names) {
    if (value == wanted) return word;
  }
  throw core::Error("nothing that bench can measure");
}

Setting<Options> dtype() {
  Names<std::optional<core::DType>> names;
  for (const auto& [word, value] : dtypes()) names.emplace_back(word, value);
  return choice<Options, std::optional<core::DType>>(
      {"dtype", "fp32|bf16|fp16|int64",
       "elements of the buffers; with overlap of the matrix product, too", "fp32"},
      std::move(names), [](auto& o) -> auto& { return o.dtype; });
}

Setting<Options> sizes() {
  return {{"sizes", "LIST", "sizes of the buffers in bytes, as nccl-tests writes them: 4k,25m,1g",
           fmt::format("{}; overlap: {}", byte_sizes_text(kOfCollectives),
                       byte_sizes_text(kOfOverlap))},
          [](Options& options, const std::string& text) { options.sizes = parse_byte_sizes(text); },
          [](const Options&) { return std::nullopt; }};
}

Setting<Options> subject() {
  return choice<Options, BenchSubject>(
      {"subject", "ceilings|allreduce|allgather|reducescatter|overlap|step",
       "what to measure, the word alone is enough. ceilings: matrix products of each type, "
       "memory, copies to and from a GPU; under mpirun the link between the ranks. allreduce, "
       "allgather, reducescatter: that collective under mpirun, size by size, allgather with "
       "NCCL's kernels and its copy engines side by side. overlap: how much of an all-reduce hides "
       "behind a matrix product. step: a short training",
       "must be given"},
      subjects(), [](auto& o) -> auto& { return o.subject; });
}

SettingGroup<Options> machine_group() {
  return {
      "What this machine can do at most",
      {subject(),
       optional_count<Options>({"threads", "N", "threads for compute", "every core"},
                               [](auto& o) -> auto& { return o.threads; }, {1, 4096}),
       number<Options>({"seconds", "SECONDS", "time of each measurement"},
                       [](auto& o) -> auto& { return o.seconds; }, {.min = 0.01, .max = 3600}),
       choice<Options, DeviceWish>(
           {"device", "auto|cpu|cuda",
            "whether a GPU is measured, too, and has to be there; under mpirun: the link "
            "between GPUs or between host ranks",
            "auto: where there is one"},
           {{"auto", DeviceWish::kAuto}, {"cpu", DeviceWish::kCpu}, {"cuda", DeviceWish::kCuda}},
           [](auto& o) -> auto& { return o.device; }),
       on_off<Options>(
           switch_named("replace", "store lower figures than those that are stored, too"),
           [](auto& o) -> auto& { return o.replace; })}};
}

SettingGroup<Options> ranks_group() {
  return {"Between ranks",
          {sizes(), dtype(),
           optional_count<Options>(
               {"repeats", "N", "how often each is measured", "as often as fits into --seconds"},
               [](auto& o) -> auto& { return o.repeats; }, {1, 1'000'000}),
           choice<Options, comm::Backend>(
               {"backend", "auto|mpi|nccl", "how ranks exchange data, as in `train`"},
               {{"auto", comm::Backend::kAuto},
                {"mpi", comm::Backend::kMpi},
                {"nccl", comm::Backend::kNccl}},
               [](auto& o) -> auto& { return o.backend; }),
           choice<Options, comm::GpuSharing>(
               {"share-gpus", "on|off", "let ranks share a GPU: for tests, never for speed"},
               {{"on", comm::GpuSharing::kAllowed}, {"off", comm::GpuSharing::kRefused}},
               [](auto& o) -> auto& { return o.gpu_sharing; })}};
}

SettingTable<Options> table() { return {machine_group(), ranks_group()}; }

void refuse(bool given, const char* flag, const char* why) {
  if (given) throw core::ConfigError(fmt::format("{}: {}", flag, why));
}

void check(const Options& options) {
  if (options.subject == BenchSubject::kStep)
    throw core::ConfigError(
        "step: the word comes first, then flags of `train`: `sidestream bench step --model "
        "gpt2-mini`");
  if (options.subject == BenchSubject::kCeilings) {
    constexpr const char* kNotOfCeilings =
        "`bench ceilings` has no choice there; `sidestream bench allreduce` has";
    refuse(!options.sizes.empty(), "--sizes", kNotOfCeilings);
    refuse(options.dtype.has_value(), "--dtype", kNotOfCeilings);
    refuse(options.repeats.has_value(), "--repeats", kNotOfCeilings);
  }
  refuse(options.replace && options.subject == BenchSubject::kAllGather, "--replace",
         "`bench allgather` always stores its newest rates, where --nccl-ctas auto goes by them; "
         "leave it out");
  refuse(options.replace && options.subject != BenchSubject::kCeilings, "--replace",
         "only what `sidestream bench ceilings` measures is stored");
  const bool computes =
      options.subject == BenchSubject::kCeilings || options.subject == BenchSubject::kOverlap;
  refuse(options.threads.has_value() && !computes, "--threads",
         "a collective alone computes nothing; `sidestream bench overlap` does");
  refuse(options.subject == BenchSubject::kOverlap && options.dtype == core::DType::kInt64,
         "--dtype int64", "there is no matrix product of it: fp32, bf16 or fp16");
  refuse(options.device == DeviceWish::kCpu && options.backend == comm::Backend::kNccl,
         "--device cpu and --backend nccl", "they exclude each other, NCCL works on GPU memory");
}

}  // namespace

std::vector<std::size_t> bench_sizes(const BenchOptions& options) {
  if (!options.sizes.empty()) return options.sizes;
  return options.subject == BenchSubject::kOverlap ? kOfOverlap : kOfCollectives;
}

std::string_view name_of(BenchSubject subject) { return name_in(subjects(), subject); }
std::string_view short_name_of(core::DType dtype) { return name_in(dtypes(), dtype); }

BenchOptions parse_bench_options(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments.front() == "step")
    return {.subject = BenchSubject::kStep,
            .step = parse_step_bench_options({arguments.begin() + 1, arguments.end()})};
  BenchOptions options =
      parse_command(arguments, table(), {.command = "bench", .positional = "subject"});
  if (!options.subject)
    throw core::ConfigError(
        "`sidestream bench` needs to know what to measure: `sidestream bench ceilings`");
  check(options);
  return options;
}

void check_ranks_of_bench(const BenchOptions& options, int ranks) {
  if (options.subject != BenchSubject::kCeilings) return;
  if (ranks > 1) {
    refuse(options.threads.has_value(), "--threads",
           "under mpirun it is the link between the ranks that is measured, which computes "
           "nothing; `sidestream bench ceilings` without mpirun measures the processor");
    return;
  }
  constexpr const char* kNoLink =
      "one process has no link to measure; `mpirun -np 2 --bind-to none sidestream bench ceilings` "
      "measures it";
  refuse(options.backend != comm::Backend::kAuto, "--backend", kNoLink);
  refuse(options.gpu_sharing != comm::GpuSharing::kRefused, "--share-gpus", kNoLink);
}

std::string bench_help(int width_columns) {
  std::vector<FlagGroup> groups = flags_of(table());
  groups.push_back(step_bench_flags());
  return "Measures what this machine can do at most; `train` takes its MFU from it, and "
         "--nccl-ctas auto. And what a collective, its overlap with computing, and a training "
         "step take.\n\n"
         "  sidestream bench ceilings\n"
         "  sidestream bench ceilings --threads 1 --seconds 0.5\n"
         "  mpirun -np 2 --bind-to none sidestream bench ceilings\n"
         "  mpirun -np 2 --bind-to none sidestream bench allreduce --sizes 4k,64k,1m,25m,64m\n"
         "  mpirun -np 2 --bind-to none sidestream bench allgather --dtype bf16 --repeats 20\n"
         "  mpirun -np 2 --bind-to none sidestream bench reducescatter --backend mpi\n"
         "  mpirun -np 2 --bind-to none sidestream bench overlap --sizes 1m,25m\n"
         "  mpirun -np 2 --bind-to none sidestream bench step --model gpt2-mini --steps 30 "
         "--batch-size-per-rank 4 --sequence-length 256 --precision bf16\n\n"
         "Of a collective: bytes / time (algorithm bandwidth), and that times 2 (n - 1) / n for an "
         "all-reduce of n ranks, (n - 1) / n for the others (bus bandwidth), as nccl-tests has "
         "them. The time is that of the slowest rank, averaged over the repetitions.\n"
         "Of overlap: the product alone, as long as the collective; the collective alone; both "
         "together. hidden = (product + collective - together) / the shorter one: 100 % is all of "
         "it, 0 % is one after the other. Times are medians of the slowest rank's.\n"
         "Of a step: median and its 95 % interval (by order statistics, and no narrower than that "
         "of medians of batches, for neighbours resemble each other), tokens/s, exposed "
         "communication, and the share of what `bench ceilings` has measured. 30 steps on "
         "synthetic "
         "tokens, also with --config FILE, where --steps and --data are not given beside it, and "
         "neither recorded nor sampled unless that is asked for beside it.\n"
         "Asked to stop (Ctrl-C, SIGTERM, SIGUSR1) it ends soon, with what there is and exit code "
         "75; ceilings without mpirun end at once and keep nothing.\n\n" +
         flags_help(groups, width_columns);
}

}  // namespace sidestream::launch
