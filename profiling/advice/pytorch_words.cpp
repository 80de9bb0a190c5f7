#include "profiling/advice/pytorch_words.hpp"

#include <algorithm>
#include <array>

namespace sidestream::advice {
namespace {

constexpr std::array<PyTorchWords, 37> kWords = {{
    {"input-no-workers", "DataLoader(num_workers=2, prefetch_factor=4)"},
    {"input-no-prefetch", "DataLoader(num_workers=2, prefetch_factor=4, persistent_workers=True)",
     "a run that takes the same batch again and again is as slow"},
    {"input-slow",
     "DataLoader with more num_workers or a larger prefetch_factor, persistent_workers=True; "
     "prepare the data once, in large files",
     "a run that takes the same batch again and again is as slow",
     "a run that takes the same batch again and again removes it"},
    {"pageable-copies", "DataLoader(pin_memory=True) and tensor.to(device, non_blocking=True)"},
    {"default-stream",
     "the next batch copied ahead on a torch.cuda.Stream of its own, with non_blocking=True and "
     "wait_stream() before its use"},
    {"many-small-files", "the same data in a few large files"},
    {"storage-saturated", "data on faster storage or in memory, or smaller"},
    {"not-overlapped",
     "DistributedDataParallel, which sums a bucket while backward goes on; gradients with "
     "no_sync() or a backward of their own are not hidden"},
    {"tiny-buckets", "DistributedDataParallel(bucket_cap_mb=25) or more"},
    {"one-bucket", "DistributedDataParallel(bucket_cap_mb=25) or less"},
    {"link-bound",
     "ddp_comm_hooks.default_hooks.bf16_compress_hook, several batches an update under no_sync(), "
     "or a larger batch"},
    {"straggler", "look at this rank's machine"},
    {"one-stream",
     "collectives on a stream of their own: DistributedDataParallel, or async_op=True and wait() "
     "where the result is needed"},
    {"collective-choice",
     "reduce_scatter_tensor before a sharded update: FullyShardedDataParallel, or a "
     "ZeroRedundancyOptimizer with its overlap hook"},
    {"item-each-step", "loss.item() every tenth step only, or loss.detach() kept on the device"},
    {"synchronisation",
     "no torch.cuda.synchronize(), print of a tensor or copy without non_blocking=True in a step"},
    {"logging-each-step", "log every tenth step"},
    {"unfused-optimizer", "torch.optim.AdamW(..., fused=True), or foreach=True"},
    {"separate-weight-decay",
     "weight_decay of the optimizer itself with fused=True, clip_grad_norm_(foreach=True)"},
    {"heavy-host-operators",
     "the operator on the device, or ahead of time by DataLoader's workers"},
    {"launch-bound",
     "torch.compile(mode=\"reduce-overhead\") or torch.cuda.graph, or a larger batch"},
    {"checkpoint-in-step",
     "save less often, with torch.distributed.checkpoint.async_save, or to faster storage"},
    {"oversubscribed", "torch.set_num_threads(cores over ranks of the node)", nullptr,
     "threads of a rank"},
    {"denormals", "torch.set_flush_denormal(True)"},
    {"no-amp", "torch.autocast(device, dtype=torch.bfloat16)", nullptr,
     "step time and loss of a run with it"},
    {"shapes", "widths, vocabulary and batches in multiples of 8"},
    {"shapes-64", "widths, heads, vocabulary and batches in multiples of 64"},
    {"low-occupancy", "a larger batch, or fused operators (torch.compile)"},
    {"unfused-operators", "torch.compile, which fuses them", nullptr, "step time compiled"},
    {"small-kernels", "torch.compile, or a CUDA graph of the step"},
    {"channels-first", "model.to(memory_format=torch.channels_last), and the same for the input"},
    {"convolution-choice", "torch.backends.cudnn.benchmark = True"},
    {"memory-full",
     "torch.utils.checkpoint, a sharded optimizer (FullyShardedDataParallel), or a smaller batch"},
    {"memory-free", "a larger batch", nullptr, "step time per sample"},
    {"foreign-load",
     "the machine to the run alone; beside other programs, torch.set_num_threads of what they "
     "leave"},
    {"numa",
     "one rank a NUMA node, bound to it (numactl, or torchrun's launcher), with as many threads as "
     "that node has cores"},
    {"old-libraries", "a driver as new as the CUDA of the program"},
}};

}  // namespace

const PyTorchWords* pytorch_words(std::string_view rule) {
  const auto* found = std::find_if(kWords.begin(), kWords.end(),
                                   [&](const PyTorchWords& one) { return rule == one.rule; });
  return found == kWords.end() ? nullptr : found;
}

}  // namespace sidestream::advice
