// A finding points at an event of its own, not at the longest one of a wider kind.
#include <gtest/gtest.h>

#include <string_view>

#include "profiling/advice/advice.hpp"
#include "tests/profiling/advice/traced_facts.hpp"

namespace sidestream::advice {
namespace {

constexpr std::int64_t kUs = 1000;

std::int64_t length_ns(const Place& place) { return place.end_ns - place.start_ns; }

// Of the first finding of a rule; of length 0 when it has none.
Place place_of(const StepShape& shape, const std::string& rule) {
  Facts facts = facts_of(shape);
  facts.config = {{"cudnn-benchmark", "off"}};
  for (const Finding& one : advise(facts).findings) {
    if (one.rule->id == rule && one.place) return *one.place;
  }
  return {};
}

// Thirty ms of one long softmax beside what is planted.
StepShape beside_a_softmax(std::vector<ExtraEvent> planted) {
  planted.push_back({.name = "softmax_forward", .at_us = 30'000, .duration_us = 30'000});
  return {.extra_us = 60'000, .extras = std::move(planted)};
}

TEST(PlacesTest, small_kernels_point_at_a_small_one) {
  std::vector<ExtraEvent> many;
  for (int i = 0; i < 2500; ++i)
    many.push_back({.name = "elementwise_kernel", .at_us = 10 * i, .duration_us = i == 40 ? 9 : 8});
  EXPECT_EQ(length_ns(place_of(beside_a_softmax(many), "small-kernels")), 9 * kUs);
}

TEST(PlacesTest, low_occupancy_points_at_a_kernel_of_low_occupancy) {
  const auto shape =
      beside_a_softmax({{.name = "gather_kernel", .duration_us = 20'000, .occupancy = 5}});
  EXPECT_EQ(length_ns(place_of(shape, "low-occupancy")), 20'000 * kUs);
}

TEST(PlacesTest, what_holds_for_all_of_a_step_points_at_the_longest_step) {
  Facts facts = facts_of(beside_a_softmax({}));
  facts.cuda_runtime = 12000;
  facts.cuda_driver = 13000;
  facts.compute_capability = 100;  // its first CUDA is 12.8
  for (const Finding& one : advise(facts).findings) {
    if (std::string_view(one.rule->id) != "old-libraries") continue;
    ASSERT_TRUE(one.place);
    EXPECT_NEAR(static_cast<double>(length_ns(*one.place)), facts.step->window_ns,
                0.01 * facts.step->window_ns);
    return;
  }
  FAIL() << "old-libraries says nothing";
}

TEST(PlacesTest, layout_kernels_and_convolutions_point_at_one) {
  const auto shape = beside_a_softmax(
      {{.name = "void cudnn::ops::nchwToNhwcKernel<float>", .duration_us = 9000},
       {.name = "sm80_xmma_fprop_implicit_gemm_bf16", .at_us = 9000, .duration_us = 19'000}});
  EXPECT_EQ(length_ns(place_of(shape, "channels-first")), 9000 * kUs);
  EXPECT_EQ(length_ns(place_of(shape, "convolution-choice")), 19'000 * kUs);
}

TEST(PlacesTest, pageable_copies_point_at_a_pageable_one) {
  const auto shape = beside_a_softmax({{.category = "gpu_memcpy",
                                        .name = "Memcpy HtoD (Pageable -> Device)",
                                        .duration_us = 8000,
                                        .arguments = R"(,"bytes":80000000)"},
                                       {.category = "gpu_memcpy",
                                        .name = "Memcpy HtoD (Pinned -> Device)",
                                        .at_us = 8000,
                                        .duration_us = 12'000,
                                        .arguments = R"(,"bytes":80000000)"}});
  EXPECT_EQ(length_ns(place_of(shape, "pageable-copies")), 8000 * kUs);
  EXPECT_EQ(length_ns(place_of(shape, "default-stream")), 12'000 * kUs);
}

TEST(PlacesTest, tiny_buckets_point_at_a_small_collective) {
  StepShape shape{.buckets = 120, .bucket_elements = 20'000, .bucket_us = 700, .extra_us = 9000};
  shape.extras = {{.name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                   .duration_us = 9000,
                   .stream = 20,
                   .arguments = R"(,"Collective name":"allreduce","In msg nelems":9000000,)"
                                R"("Out msg nelems":9000000,"Group size":2,"dtype":"Float",)"
                                R"("Process Group Name":"1","Seq":1)"}};
  EXPECT_EQ(length_ns(place_of(shape, "tiny-buckets")), 700 * kUs);
}

TEST(PlacesTest, products_of_bad_shapes_point_at_one) {
  StepShape shape{.vocabulary = 50257, .extra_us = 9000};
  shape.extras = {{.category = "cpu_op",
                   .name = "aten::mm",
                   .duration_us = 9000,
                   .arguments = R"("Input Dims":[[64,64],[64,64]],)"
                                R"("Input type":["c10::BFloat16","c10::BFloat16"])"}};
  EXPECT_EQ(length_ns(place_of(shape, "shapes")), 10 * kUs);
  shape.vocabulary = 50272;
  EXPECT_EQ(length_ns(place_of(shape, "shapes-64")), 10 * kUs);
}

TEST(PlacesTest, a_straggler_is_shown_on_its_own_rank) {
  StepShape shape{.slow_rank_us = 20'000};
  shape.bucket_us = 55'000 / shape.buckets;
  const Place place = place_of(shape, "straggler");

  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(length_ns(place), (20 * 1500 + 20'000) * kUs);  // its forward
}

TEST(PlacesTest, late_launches_point_at_a_gap) {
  const Place place = place_of({.launch_gap_us = 1500}, "launch-bound");

  EXPECT_GT(length_ns(place), 1000 * kUs);
  EXPECT_LE(length_ns(place), 1500 * kUs);
  EXPECT_FALSE(place.stream);
}

TEST(PlacesTest, a_fetched_value_points_at_its_call) {
  const Place place = place_of({.item_calls = 1, .item_wait_us = 6000}, "item-each-step");
  EXPECT_EQ(length_ns(place), 6500 * kUs);
}

TEST(LayoutCopiesTest, a_copy_belongs_to_the_product_after_it) {
  const auto copies = [](const char* next) {
    StepShape shape{.extra_us = 20'000};
    shape.extras = {
        {.category = "cpu_op", .name = "aten::contiguous", .duration_us = 5000},
        {.category = "cpu_op", .name = "aten::copy_", .at_us = 10, .duration_us = 4000},
        {.name = "direct_copy_kernel", .at_us = 100, .duration_us = 3000},
        {.category = "cpu_op", .name = next, .at_us = 6000, .duration_us = 50},
        {.category = "cpu_op", .name = "aten::copy_", .at_us = 7000, .duration_us = 4000},
        {.name = "direct_copy_kernel", .at_us = 7100, .duration_us = 1000}};
    return *facts_of(shape).layout_copies;
  };
  EXPECT_NEAR(copies("aten::mm").before_products_ns, 3e6, 1);
  EXPECT_NEAR(copies("aten::mm").copies_ns, 4e6, 1);
  EXPECT_EQ(copies("aten::add").before_products_ns, 0);
}

}  // namespace
}  // namespace sidestream::advice
