// The tables about operators, kernels, modules and memory: a trace by hand in, a table out.
#include "profiling/analysis/details.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/trace/trace_text.hpp"

namespace sidestream::analysis {
namespace {

using test::complete_event;

class DetailsTest : public ::testing::Test {
 protected:
  void look(const std::vector<std::string>& events) {
    std::string text;
    for (const std::string& event : events) text += (text.empty() ? "" : ",") + event;
    test::write_text(scratch_ / "rank-0.json", test::trace_of(text));
    set_ = trace::load_traces(trace::find_traces({scratch_.path()}));
    analysis_ = analyse(set_, 1);
    details_ = look_closer(analysis_);
  }

  template <typename Rows>
  static const auto& named(const Rows& rows, const std::string& name) {
    const auto found =
        std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.name == name; });
    if (found == rows.end()) throw std::out_of_range(name);
    return *found;
  }

  static std::string memory_event(int time_us, std::int64_t bytes, std::int64_t total,
                                  int address) {
    return R"({"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":9,"ts":)" +
           std::to_string(time_us) + R"(,"args":{"Bytes":)" + std::to_string(bytes) +
           R"(,"Total Allocated":)" + std::to_string(total) + R"(,"Total Reserved":)" +
           std::to_string(total + 1) + R"(,"Device Type":1,"Device Id":0,"Addr":)" +
           std::to_string(address) + "}}";
  }

  core::ScratchFolder scratch_;
  trace::TraceSet set_;
  Analysis analysis_;
  Details details_;
};

// linear [0, 10] holds mm [2, 8], which launches two kernels of 30 and 4 us.
std::vector<std::string> linear_layer() {
  return {complete_event("user_annotation", "ProfilerStep#3", "0", "100"),
          complete_event("user_annotation", "h.0.mlp", "0", "20"),
          complete_event("cpu_op", "aten::linear", "0", "10",
                         R"("Sequence number": 5, "Input Dims": [[64, 32], [16, 32]])"),
          complete_event("cpu_op", "aten::mm", "2", "6",
                         R"("Input Dims": [[64, 32], [32, 16]], "Input type": ["float", "float"])"),
          complete_event("cuda_runtime", "cudaLaunchKernel", "3", "1", R"("correlation": 1)"),
          complete_event("cuda_runtime", "cudaLaunchKernel", "5", "1", R"("correlation": 2)"),
          complete_event("kernel", "gemm", "6", "30",
                         R"("correlation": 1, "stream": 7, "grid": [4, 1, 1], "block": [128, 1, 1],
                            "est. achieved occupancy %": 50)"),
          complete_event("kernel", "reduce", "36", "4", R"("correlation": 2, "stream": 7)")};
}

TEST_F(DetailsTest, operators_with_self_and_total_time_on_host_and_device) {
  look(linear_layer());

  const CallSums& linear = named(details_.operators, "aten::linear").sums;
  EXPECT_EQ(linear.host_total_ns, 10'000);
  EXPECT_EQ(linear.host_self_ns, 4'000);
  EXPECT_EQ(linear.device_total_ns, 34'000);
  EXPECT_EQ(linear.device_self_ns, 0);
  const OperatorRow& product = named(details_.operators, "aten::mm");
  EXPECT_EQ(product.sums.device_self_ns, 34'000);
  EXPECT_EQ(product.shapes, "[[64,32],[32,16]]");
  EXPECT_EQ(product.flops.total(), 2.0 * 64 * 32 * 16);
  EXPECT_DOUBLE_EQ(*product.flops.per_s(), 2.0 * 64 * 32 * 16 / 34e-6);
}

TEST_F(DetailsTest, the_longest_kernel_of_an_operator_did_its_work) {
  look(linear_layer());

  const KernelRow& gemm = named(details_.kernels, "gemm");
  EXPECT_EQ(gemm.flops.total(), 2.0 * 64 * 32 * 16);
  EXPECT_DOUBLE_EQ(*gemm.flops.per_s(), 2.0 * 64 * 32 * 16 / 30e-6);
  EXPECT_EQ(gemm.occupancy_percent, 50);
  EXPECT_EQ(gemm.grid[0], 4u);
  EXPECT_EQ(named(details_.kernels, "reduce").flops.total(), std::nullopt);
  EXPECT_EQ(named(details_.kernels, "reduce").occupancy_percent, std::nullopt);
}

// A fused operator that calls products on a device: what it launches itself did not multiply.
TEST_F(DetailsTest, kernels_of_a_fused_operator_have_no_part_in_products_of_others) {
  const std::string types = R"(, "Input type": ["float", "float", "float"])";
  look({complete_event("user_annotation", "ProfilerStep#3", "0", "100"),
        complete_event("cpu_op", "sidestream::linear", "0", "20",
                       R"("Input Dims": [[64, 32], [32, 16], [16]])" + types),
        complete_event("cpu_op", "aten::addmm", "2", "6",
                       R"("Input Dims": [[16], [64, 32], [32, 16]])" + types),
        complete_event("cuda_runtime", "cudaLaunchKernel", "3", "1", R"("correlation": 1)"),
        complete_event("cuda_runtime", "cudaLaunchKernel", "10", "1", R"("correlation": 2)"),
        complete_event("kernel", "gemm", "6", "30", R"("correlation": 1, "stream": 7)"),
        complete_event("kernel", "bias", "36", "4", R"("correlation": 2, "stream": 7)")});

  EXPECT_EQ(named(details_.kernels, "gemm").flops.total(), 2.0 * 64 * 32 * 16);
  EXPECT_LE(named(details_.kernels, "bias").flops.total().value_or(0), 2.0 * 64 * 16);
}

TEST_F(DetailsTest, the_tree_has_parents_before_what_is_inside_them) {
  look(linear_layer());

  ASSERT_EQ(details_.tree.size(), 4u);
  EXPECT_EQ(details_.tree[0].path, (std::vector<std::string>{"ProfilerStep"}));
  EXPECT_EQ(details_.tree[3].path,
            (std::vector<std::string>{"ProfilerStep", "h.0.mlp", "aten::linear", "aten::mm"}));
  EXPECT_EQ(details_.tree[3].sums.device_total_ns, 34'000);
}

// Ranges that a program numbers as it goes on; so many of them, each with one operator inside.
std::vector<std::string> numbered_ranges(const std::string& name, int count) {
  std::vector<std::string> events;
  for (int i = 0; i < count; ++i) {
    const std::string start = std::to_string(10 * i);
    events.push_back(complete_event("user_annotation", name + std::to_string(i), start, "8"));
    events.push_back(complete_event("cpu_op", "aten::mm", start, "5"));
  }
  return events;
}

TEST_F(DetailsTest, the_tree_does_not_grow_with_the_steps_of_a_run) {
  look(numbered_ranges("iteration ", 300));

  ASSERT_EQ(details_.tree.size(), 2u);
  EXPECT_EQ(details_.tree[1].path, (std::vector<std::string>{"iteration #", "aten::mm"}));
  EXPECT_EQ(details_.tree[1].sums.calls, 300);
}

TEST_F(DetailsTest, layers_keep_their_numbers_in_the_tree) {
  look(numbered_ranges("h.", 256));

  EXPECT_EQ(details_.tree.size(), 2 * 256u);
  EXPECT_EQ(details_.tree[0].path.size(), 1u);
  EXPECT_TRUE(details_.tree[0].path[0].starts_with("h.") && details_.tree[0].path[0] != "h.#");
}

TEST_F(DetailsTest, backward_of_a_layer_is_found_by_sequence_number) {
  std::vector<std::string> events = linear_layer();
  events.push_back(
      R"({"ph":"X","cat":"cpu_op","name":"autograd::engine::evaluate_function: MmBackward0","pid":1,)"
      R"("tid":2,"ts":50,"dur":25,"args":{"Sequence number": 5}})");
  look(events);

  const ModuleRow& layer = named(details_.modules, "h.0.mlp");
  EXPECT_EQ(layer.kind, "layer");
  EXPECT_EQ(layer.sums.host_total_ns, 20'000);
  EXPECT_EQ(layer.sums.device_total_ns, 34'000);
  EXPECT_EQ(layer.backward_host_ns, 25'000);
  EXPECT_EQ(named(details_.modules, "ProfilerStep").kind, "step");
}

TEST_F(DetailsTest, a_module_is_its_outermost_operators_of_forward_and_its_backward_once) {
  const std::string module = R"("Module Hierarchy": "h.0.mlp", "Sequence number": 5)";
  look({complete_event("cpu_op", "sidestream::mlp", "0", "20", module),
        complete_event("cpu_op", "aten::mm", "2", "8", module),
        complete_event("cpu_op", "aten::empty", "3", "1", module),
        complete_event("cpu_op", "autograd::engine::evaluate_function: MlpBackward", "50", "25",
                       module),
        complete_event("cpu_op", "sidestream::mlp_backward", "52", "20", module)});

  const ModuleRow& row = named(details_.modules, "h.0.mlp");
  EXPECT_EQ(row.kind, "module");
  EXPECT_EQ(row.sums.calls, 1);
  EXPECT_EQ(row.sums.host_total_ns, 20'000);
  EXPECT_EQ(row.backward_host_ns, 25'000);
}

TEST_F(DetailsTest, memory_at_the_peak_by_the_phase_that_took_it) {
  look({complete_event("user_annotation", "forward", "0", "50"),
        complete_event("user_annotation", "backward", "50", "50"), memory_event(10, 300, 1300, 1),
        memory_event(20, 100, 1400, 2), memory_event(60, -100, 1300, 2),
        memory_event(70, 500, 1800, 3), memory_event(80, -300, 1500, 1),
        memory_event(150, 10, 1510, 4)});

  ASSERT_EQ(details_.memory.size(), 1u);
  const MemoryUse& use = details_.memory[0];
  EXPECT_EQ(use.device, 0);
  EXPECT_EQ(use.peak_allocated_bytes, 1800);
  EXPECT_EQ(use.peak_reserved_bytes, 1801);
  EXPECT_EQ(use.peak_time_ns, 70'000);
  EXPECT_EQ(use.allocations, 4);
  EXPECT_EQ(use.releases, 2);
  EXPECT_EQ(named(use.categories, "forward").bytes_at_peak, 300);
  EXPECT_EQ(named(use.categories, "forward").allocated_bytes, 400);
  EXPECT_EQ(named(use.categories, "backward").bytes_at_peak, 500);
  EXPECT_EQ(named(use.categories, "before the trace").bytes_at_peak, 1000);
  EXPECT_EQ(named(use.categories, "other").allocations, 1);
  EXPECT_EQ(use.curve.size(), 6u);
}

TEST_F(DetailsTest, counters_have_mean_least_and_most) {
  const auto sample = [](int time_us, double value) {
    return R"({"ph":"C","name":"process cpu [%]","pid":1,"tid":0,"ts":)" + std::to_string(time_us) +
           R"(,"args":{"running":)" + std::to_string(value) + R"(,"waiting":1}})";
  };
  look({complete_event("user_annotation", "ProfilerStep#1", "0", "100"), sample(10, 120),
        sample(20, 180), sample(30, 90)});

  ASSERT_EQ(details_.counters.size(), 2U);
  const CounterRow& row = details_.counters[0];
  EXPECT_EQ(row.counter + "/" + row.series, "process cpu [%]/running");
  EXPECT_EQ(row.samples, 3);
  EXPECT_DOUBLE_EQ(row.mean, 130);
  EXPECT_DOUBLE_EQ(row.least, 90);
  EXPECT_DOUBLE_EQ(row.most, 180);
}

TEST_F(DetailsTest, a_long_curve_keeps_its_peak) {
  std::vector<std::string> events;
  for (int i = 0; i < 4321; ++i)
    events.push_back(memory_event(i, 1, i == 2345 ? 1'000'000 : i + 1, i + 1));
  look(events);

  const auto& curve = details_.memory.at(0).curve;
  EXPECT_LE(curve.size(), 1000u);
  EXPECT_TRUE(std::any_of(curve.begin(), curve.end(),
                          [](const MemoryPoint& one) { return one.allocated_bytes == 1'000'000; }));
}

TEST_F(DetailsTest, model_flops_utilisation_by_both_formulas) {
  test::write_text(
      scratch_ / "rank-0.json",
      R"({"distributedInfo":{"rank":0,"world_size":1},"sidestream":{"flops_per_token":6e9,)"
      R"("flops_per_token_palm":7e9,"tokens_per_step":1000,"peak_flops_per_s":1e15,)"
      R"("unprofiled_step_ms":8,"unprofiled_data_wait_ms":2},"traceEvents":[)" +
          complete_event("user_annotation", "ProfilerStep#3", "0", "10000") + "," +
          complete_event("kernel", "gemm", "5", "10") + "]}");
  set_ = trace::load_traces(trace::find_traces({scratch_.path()}));
  analysis_ = analyse(set_, 1);

  EXPECT_DOUBLE_EQ(*analysis_.model.tokens_per_s, 1e5);
  EXPECT_DOUBLE_EQ(*analysis_.model.mfu, 0.6);
  EXPECT_DOUBLE_EQ(*analysis_.model.mfu_palm, 0.7);
  EXPECT_DOUBLE_EQ(*analysis_.model.profiler_cost, 0.25);
  EXPECT_DOUBLE_EQ(analysis_.model.unprofiled_data_wait.at(0), 0.25);
}

// Four steps that scatter more than the profiler costs. More ranks of the same steps are no more
// steps, and what the first one says of itself is compared with its own.
TEST_F(DetailsTest, ranks_that_wait_for_each_other_make_no_cost_of_the_profiler_surer) {
  const auto write = [&](int rank) {
    std::string events;
    int now_us = 0, step = 3;
    for (const int of_first_us : {9000, 10'000, 11'000, 12'000}) {
      const int length_us = of_first_us + 2000 * rank;
      events += (events.empty() ? "" : ",") +
                complete_event("user_annotation", "ProfilerStep#" + std::to_string(step++),
                               std::to_string(now_us), std::to_string(length_us)) +
                "," + complete_event("kernel", "gemm", std::to_string(now_us), "10");
      now_us += length_us;
    }
    test::write_text(
        scratch_ / ("rank-" + std::to_string(rank) + ".json"),
        test::trace_of(events, rank, 4).insert(1, R"("sidestream":{"unprofiled_step_ms":10},)"));
  };
  for (int rank = 0; rank < 4; ++rank) write(rank);
  set_ = trace::load_traces(trace::find_traces({scratch_.path()}));
  analysis_ = analyse(set_, 1);

  EXPECT_FALSE(analysis_.model.profiler_cost);
  EXPECT_NEAR(analysis_.model.profiler_cost_below.value(), 0.186, 0.001);
}

}  // namespace
}  // namespace sidestream::analysis
