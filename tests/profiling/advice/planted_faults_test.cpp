// One trace a fault: the right rule speaks first, and no other one above 3 % but those that the
// fault itself causes. Healthy traces get no advice above 3 %.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "profiling/advice/advice.hpp"
#include "tests/profiling/advice/traced_facts.hpp"

namespace sidestream::advice {
namespace {

using Config = std::map<std::string, std::string>;

struct Case {
  const char* name;
  std::function<void(StepShape&)> plant;
  const char* rule = "";                  // empty: healthy
  std::vector<std::string> allowed = {};  // follow from the fault
  Config config = {{"loader-workers", "2"}, {"flush-denormals", "on"}};
  Config environment = {
      {"cores", "16"}, {"threads_per_rank", "8"}, {"world_size", "2"}, {"nodes", "1"}};
};

Advice advice_of(const Case& one) {
  StepShape shape;
  if (one.plant) one.plant(shape);
  Facts facts = facts_of(shape);
  facts.config = one.config;
  facts.environment = one.environment;
  return advise(facts);
}

std::string text_of(const Advice& advice) { return advice_text(advice, {.width_columns = 100}); }

class PlantedFaultTest : public ::testing::TestWithParam<Case> {};

TEST_P(PlantedFaultTest, is_found_and_nothing_else) {
  const Advice advice = advice_of(GetParam());
  const std::string wanted = GetParam().rule;

  if (!wanted.empty()) {
    ASSERT_FALSE(advice.findings.empty()) << wanted << " said nothing";
    EXPECT_EQ(advice.findings.front().rule->id, wanted) << text_of(advice);
    EXPECT_TRUE(advice.findings.front().what.bound) << text_of(advice);
  }
  for (const Finding& finding : advice.findings) {
    const bool expected =
        finding.rule->id == wanted ||
        std::count(GetParam().allowed.begin(), GetParam().allowed.end(), finding.rule->id);
    if (!expected) {
      ASSERT_TRUE(finding.what.bound) << text_of(advice);
      EXPECT_LE(*finding.what.bound, 0.03) << text_of(advice);
    }
  }
}

const Case kCases[] = {
    {"healthy", {}},
    {"healthy_one_rank",
     [](StepShape& s) {
       s.ranks = 1;
       s.buckets = 0;
     }},
    {"healthy_many_steps", [](StepShape& s) { s.steps = 12; }},
    {"healthy_short_collectives",
     [](StepShape& s) {
       s.bucket_us = 2000;
       s.buckets = 8;
     }},
    {"healthy_slow_input_that_hides",
     [](StepShape& s) {
       s.data_us = 2000;
       s.hidden_data_us = 2000;
     }},
    {"loader_workers_0",
     [](StepShape& s) { s.data_us = 30'000; },
     "input-no-workers",
     {},
     {{"loader-workers", "0"}}},
    {"slow_loader", [](StepShape& s) { s.data_us = 30'000; }, "input-slow"},
    {"overlap_off", [](StepShape& s) { s.overlap = false; }, "not-overlapped"},
    {"tiny_buckets",
     [](StepShape& s) {
       s.buckets = 120;
       s.bucket_elements = 20'000;
       s.bucket_us = 700;
     },
     "tiny-buckets",
     {"link-bound"}},
    {"one_bucket",
     [](StepShape& s) {
       s.overlap = false;
       s.buckets = 1;
       s.bucket_elements = 32'000'000;
       s.bucket_us = 30'000;
     },
     "one-bucket"},
    {"unfused_optimizer",
     [](StepShape& s) {
       s.optimizer_operators = 1200;
       s.optimizer_us = 24'000;
     },
     "unfused-optimizer"},
    {"unfused_optimizer_that_its_host_is_soon_through_with",
     [](StepShape& s) {
       s.optimizer_operators = 120;
       s.optimizer_us = 24'000;
       s.optimizer_host_us = 1200;
     },
     "unfused-optimizer"},
    {"weight_decay_beside_a_fused_update", [](StepShape& s) { s.decay_us = 9000; },
     "separate-weight-decay"},
    {"heavy_host_operator", [](StepShape& s) { s.heavy_operator_us = 30'000; },
     "heavy-host-operators"},
    {"shapes_of_half_lines", [](StepShape& s) { s.vocabulary = 50272; }, "shapes-64"},
    {"item_each_step",
     [](StepShape& s) {
       s.item_calls = 1;
       s.item_wait_us = 6000;
     },
     "item-each-step"},
    {"item_each_step_as_a_profiler_writes_it",
     [](StepShape& s) {
       s.extra_us = 6000;
       s.extras = {
           {.category = "cpu_op", .name = "aten::item", .duration_us = 6000},
           {.category = "cpu_op", .name = "aten::_local_scalar_dense", .duration_us = 5990},
           {.category = "cuda_runtime", .name = "cudaStreamSynchronize", .duration_us = 5980},
           {.category = "gpu_memcpy",
            .name = "Memcpy DtoH (Device -> Pageable)",
            .duration_us = 2,
            .arguments = R"(,"bytes":4)"}};
     },
     "item-each-step"},
    {"item_each_step_that_leaves_nothing_launched",
     [](StepShape& s) {
       s.extra_us = 14'000;
       s.extras = {{.category = "cpu_op", .name = "aten::item", .at_us = -500, .duration_us = 510}};
     },
     "item-each-step"},
    {"logging_each_step_with_a_sync",
     [](StepShape& s) {
       s.extra_us = 6000;
       s.extras = {
           {.category = "cuda_runtime", .name = "cudaStreamSynchronize", .duration_us = 6000}};
     },
     "logging-each-step",
     {},
     {{"loader-workers", "2"}, {"log-every", "1"}}},
    {"a_sync_each_step_without_logging",
     [](StepShape& s) {
       s.extra_us = 6000;
       s.extras = {
           {.category = "cuda_runtime", .name = "cudaDeviceSynchronize", .duration_us = 6000}};
     },
     "synchronisation",
     {},
     {{"loader-workers", "2"}, {"log-every", "10"}}},
    {"launch_bound", [](StepShape& s) { s.launch_gap_us = 1500; }, "launch-bound"},
    {"slow_rank",
     [](StepShape& s) {
       s.slow_rank_us = 20'000;
       s.bucket_us = 55'000 / s.buckets;  // to the end of backward: waiting makes the step longer
     },
     "straggler"},
    {"one_bucket_and_a_slow_rank",  // most of what nothing hides is waiting
     [](StepShape& s) {
       s.overlap = false;
       s.buckets = 1;
       s.bucket_elements = 32'000'000;
       s.bucket_us = 10'000;
       s.slow_rank_us = 30'000;
     },
     "straggler",
     {"one-bucket"}},
    {"slow_rank_that_nobody_waits_for",  // the waiting of the others hides behind their backward
     [](StepShape& s) { s.slow_rank_us = 20'000; }},
    {"checkpoint_in_step",
     [](StepShape& s) { s.checkpoint_us = 20'000; },
     "checkpoint-in-step",
     {"launch-bound"}},
    {"checkpoint_between_steps", [](StepShape& s) { s.checkpoint_between_us = 20'000; },
     "checkpoint-in-step"},
    {"vocabulary_50257", [](StepShape& s) { s.vocabulary = 50257; }, "shapes"},
    {"vocabulary_50257_on_hopper",
     [](StepShape& s) {
       s.vocabulary = 50257;
       s.kernel = "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTN";
     },
     "shapes"},
    {"fp32_where_bf16_is_at_hand",
     [](StepShape& s) {
       s.type = "float";
       s.kernel = "ampere_sgemm_128x64_nn";
     },
     "no-amp"},
    {"low_occupancy",
     [](StepShape& s) {
       s.occupancy = 10;
       s.kernel = "softmax_forward";
     },
     "low-occupancy",
     {"no-amp"}},
    {"low_occupancy_beside_products",
     [](StepShape& s) {
       s.extra_us = 20'000;
       s.extras = {{.name = "softmax_forward", .duration_us = 20'000, .occupancy = 10}};
     },
     "low-occupancy"},
    {"copies_on_the_stream_of_the_kernels",
     [](StepShape& s) {
       s.extra_us = 10'000;
       s.extras = {{.category = "gpu_memcpy",
                    .name = "Memcpy HtoD (Pinned -> Device)",
                    .duration_us = 10'000,
                    .arguments = R"(,"bytes":400000000)"}};
     },
     "default-stream"},
    {"copies_on_a_stream_of_their_own",
     [](StepShape& s) {
       s.extras = {{.category = "gpu_memcpy",
                    .name = "Memcpy HtoD (Pinned -> Device)",
                    .duration_us = 10'000,
                    .stream = 21,
                    .arguments = R"(,"bytes":400000000)"}};
     }},
    {"oversubscription",
     {},
     "oversubscribed",
     {},
     {{"loader-workers", "2"}},
     {{"cores", "8"}, {"threads_per_rank", "8"}, {"world_size", "2"}, {"nodes", "1"}}},
};

INSTANTIATE_TEST_SUITE_P(Traces, PlantedFaultTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sidestream::advice
