// Traces of a device run as Kineto writes them, healthy or with one fault planted. Times in
// microseconds; a step of 100 ms: forward, backward with collectives beside it, optimizer.
#pragma once

#include <string>
#include <vector>

#include "tests/profiling/trace/trace_text.hpp"

namespace sidestream::advice {

// One more event of every step, in a time of its own between forward and backward.
struct ExtraEvent {
  std::string category = "kernel";  // or "cpu_op", "gpu_memcpy", "cuda_runtime"
  std::string name = {};
  int at_us = 0;  // from the start of that time
  int duration_us = 0;
  int stream = 7;  // of device events
  double occupancy = 50;
  std::string arguments = {};
};

struct StepShape {
  int ranks = 2;
  int steps = 4;
  int data_us = 300;         // in next(loader); the device is idle after kHidden of it
  int hidden_data_us = 300;  // of it, beside device work
  bool overlap = true;       // collectives beside backward
  int buckets = 5;
  int bucket_elements = 6'500'000;
  int bucket_us = 6000;
  int optimizer_operators = 4;
  int optimizer_us = 3000;
  int optimizer_host_us = 0;  // to launch it; 0: as long as the device takes
  int decay_us = 0;           // weight decay beside a fused update
  int heavy_operator_us = 0;  // of the host, before forward; nothing is on the device meanwhile
  int item_calls = 0;
  int item_wait_us = 0;   // idle after each
  int launch_gap_us = 0;  // before each of the 20 forward kernels
  int slow_rank_us = 0;   // rank 1's forward is longer
  int checkpoint_us = 0;  // inside a step
  int checkpoint_between_us = 0;
  int vocabulary = 50304;
  std::string type = "c10::BFloat16";
  std::string kernel = "sm90_xmma_gemm_bf16bf16_bf16f32_tn_n";
  double occupancy = 50;
  int extra_us = 0;  // the time of the extra events
  std::vector<ExtraEvent> extras = {};
};

class TraceMaker {
 public:
  explicit TraceMaker(const StepShape& shape) : shape_(shape) {}

  std::string of_rank(int rank) {
    events_.clear();
    now_ = 1'000'000;
    correlation_ = sequence_ = 0;
    for (int step = 2; step < 2 + shape_.steps; ++step) add_step(rank, step);
    std::string all;
    for (const std::string& one : events_) all += (all.empty() ? "" : ",\n") + one;
    return R"({"distributedInfo":{"rank":)" + std::to_string(rank) + R"(,"world_size":)" +
           std::to_string(shape_.ranks) +
           R"(},"deviceProperties":[{"id":0,"name":"H100","totalGlobalMem":80000000000,)" +
           R"("computeMajor":9,"computeMinor":0,"numSms":132}],"traceEvents":[)" + all + "]}";
  }

 private:
  static constexpr int kHost = 1, kCompute = 7, kSide = 20, kKernels = 20, kKernelUs = 1500;

  void add(const std::string& category, const std::string& name, int pid, int tid, int start,
           int duration, const std::string& arguments = "") {
    events_.push_back(R"({"ph":"X","cat":")" + category + R"(","name":")" + name + R"(","pid":)" +
                      std::to_string(pid) + R"(,"tid":)" + std::to_string(tid) + R"(,"ts":)" +
                      std::to_string(start) + R"(,"dur":)" + std::to_string(duration) +
                      R"(,"args":{)" + arguments + "}}");
  }
  void range(const std::string& name, int start, int duration) {
    add("user_annotation", name, kHost, kHost, start, duration);
  }
  // A launch at `launched`, the kernel at `start`.
  void kernel(const std::string& name, int stream, int launched, int start, int duration,
              const std::string& more = "") {
    kernel(name, stream, launched, start, duration, shape_.occupancy, more);
  }
  void kernel(const std::string& name, int stream, int launched, int start, int duration,
              double occupancy, const std::string& more) {
    const std::string link = std::to_string(++correlation_);
    add("cuda_runtime", "cudaLaunchKernel", kHost, kHost, launched, 3, R"("correlation":)" + link);
    add("kernel", name, 0, stream, start, duration,
        R"("device":0,"stream":)" + std::to_string(stream) + R"(,"correlation":)" + link +
            R"(,"est. achieved occupancy %":)" + std::to_string(occupancy) + more);
  }
  void product(int start) {
    const std::string vocabulary = std::to_string(shape_.vocabulary);
    add("cpu_op", "aten::mm", kHost, kHost, start, 10,
        R"("Input Dims":[[4096,768],[768,)" + vocabulary + R"(]],"Input type":[")" + shape_.type +
            R"(",")" + shape_.type + R"("])");
  }
  void collective(int launched, int start) {
    kernel(
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL", kSide, launched, start, shape_.bucket_us,
        R"(,"Collective name":"allreduce","In msg nelems":)" +
            std::to_string(shape_.bucket_elements) + R"(,"Out msg nelems":)" +
            std::to_string(shape_.bucket_elements) + R"(,"Group size":)" +
            std::to_string(shape_.ranks) +
            R"(,"dtype":"Float","Process Group Name":"0","Process Group Ranks":"[0, 1]","Seq":)" +
            std::to_string(++sequence_));
  }

  void add_extra(const ExtraEvent& one, int start) {
    if (one.category == "kernel") {
      kernel(one.name, one.stream, start - 2, start, one.duration_us, one.occupancy, one.arguments);
    } else if (one.category == "gpu_memcpy") {
      add("gpu_memcpy", one.name, 0, one.stream, start, one.duration_us,
          R"("device":0,"stream":)" + std::to_string(one.stream) + one.arguments);
    } else {
      add(one.category, one.name, kHost, kHost, start, one.duration_us, one.arguments);
    }
  }

  void add_step(int rank, int step) {
    const int start = now_;
    int device = start;
    range("data", start, shape_.data_us);
    device = start + std::max(0, shape_.data_us - shape_.hidden_data_us);
    if (shape_.heavy_operator_us > 0)
      add("cpu_op", "aten::sort", kHost, kHost, device, shape_.heavy_operator_us - 100);
    device += shape_.heavy_operator_us;
    const int extra = rank == 1 ? shape_.slow_rank_us : 0;
    const int forward = device;
    for (int i = 0; i < kKernels; ++i) {
      device += shape_.launch_gap_us;
      product(device - 20);
      kernel(shape_.kernel, kCompute, device - 2, device, kKernelUs + extra / kKernels);
      device += kKernelUs + extra / kKernels;
    }
    range("forward", forward, device - forward);
    for (int i = 0; i < shape_.item_calls; ++i) {
      add("cpu_op", "aten::item", kHost, kHost, device - 500, 500 + shape_.item_wait_us);
      device += shape_.item_wait_us;
    }
    for (const ExtraEvent& one : shape_.extras) add_extra(one, device + one.at_us);
    device += shape_.extra_us;
    const int backward = device, backward_us = 60'000;
    kernel(shape_.kernel, kCompute, backward - 2, backward, backward_us);
    const int others =
        shape_.slow_rank_us - extra;  // the others wait inside their first collective
    int link = shape_.overlap ? backward + 5000 : backward + backward_us;
    for (int bucket = 0; bucket < shape_.buckets; ++bucket) {
      collective(backward + 10, link);
      if (bucket == 0 && others > 0) stretch_last(others);
      link += shape_.bucket_us + (bucket == 0 ? others : 0);
    }
    range("backward", backward, backward_us);
    device = std::max(backward + backward_us, link);
    const int launching_us =
        shape_.optimizer_host_us > 0 ? shape_.optimizer_host_us : shape_.optimizer_us;
    range("optimizer", device, launching_us + shape_.decay_us);
    if (shape_.decay_us > 0) {
      add("cpu_op", "aten::_fused_adamw_", kHost, kHost, device, 2);
      add("cpu_op", "aten::_foreach_mul_", kHost, kHost, device + 10, 8);
      kernel("void at::native::multi_tensor_apply_kernel", kCompute, device + 12, device + 20,
             shape_.decay_us - 20);
      device += shape_.decay_us;
    }
    for (int i = 0; i < shape_.optimizer_operators; ++i) {
      const int each = shape_.optimizer_us / shape_.optimizer_operators;
      const int launched = device + i * (launching_us / shape_.optimizer_operators);
      add("cpu_op", "aten::add_", kHost, kHost, launched, 2);
      kernel("void at::native::multi_tensor_apply_kernel", kCompute, launched - 2,
             device + i * each, each);
    }
    device += shape_.optimizer_us;
    if (shape_.checkpoint_us > 0) range("checkpoint", device, shape_.checkpoint_us);
    device += shape_.checkpoint_us;
    range("ProfilerStep#" + std::to_string(step), start, device - start);
    if (shape_.checkpoint_between_us > 0) range("checkpoint", device, shape_.checkpoint_between_us);
    now_ = device + shape_.checkpoint_between_us;
  }

  // The collective of a rank that came early ends with the late one's.
  void stretch_last(int by) {
    std::string& last = events_.back();
    const std::string old = R"("dur":)" + std::to_string(shape_.bucket_us);
    last.replace(last.find(old), old.size(), R"("dur":)" + std::to_string(shape_.bucket_us + by));
  }

  StepShape shape_;
  std::vector<std::string> events_;
  int now_ = 0, correlation_ = 0, sequence_ = 0;
};

}  // namespace sidestream::advice
