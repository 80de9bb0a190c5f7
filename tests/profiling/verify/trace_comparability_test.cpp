// Traces of different models, devices or world sizes are no A and B; one capture is one block.
#include "profiling/verify/trace_comparability.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/analysed.hpp"
#include "tests/profiling/trace/trace_text.hpp"

namespace sidestream::verify {
namespace {

using ::testing::HasSubstr;

class TraceComparabilityTest : public ::testing::Test {
 protected:
  // Steps of 100 us in one operation.
  analysis::Analysis analysed(const std::string& operation, int start_us = 0) {
    const core::ScratchFolder scratch;
    test::write_text(
        scratch / "rank-0.json",
        test::trace_of(
            test::complete_event("user_annotation", "ProfilerStep#1", std::to_string(start_us),
                                 "100") +
            "," + test::complete_event("cpu_op", operation, std::to_string(start_us + 1), "90")));
    sets_.push_back(std::make_unique<trace::TraceSet>(
        trace::load_traces(trace::find_traces({scratch.path()}))));
    return analysis::analyse(*sets_.back(), 1);
  }
  // As Sidestream writes it: with what it says of itself, and of the ranks there are.
  analysis::Analysis of_run(const std::string& figures, int world_size = 1,
                            const std::string& work = "cpu_op", const std::string& top = {}) {
    const core::ScratchFolder scratch;
    std::string text =
        test::trace_of(test::complete_event("user_annotation", "ProfilerStep#1", "0", "100") + "," +
                           test::complete_event(work, "aten::mm", "1", "90"),
                       0, world_size);
    test::write_text(scratch / "rank-0.json",
                     text.insert(1, top + R"("sidestream":{)" + figures + "},"));
    sets_.push_back(std::make_unique<trace::TraceSet>(
        trace::load_traces(trace::find_traces({scratch.path()}))));
    return analysis::analyse(*sets_.back(), 1);
  }
  std::vector<std::unique_ptr<trace::TraceSet>> sets_;
};

constexpr const char* kFigures = R"("flops_per_token":1e6,"tokens_per_step":512)";

TEST_F(TraceComparabilityTest, other_models_batches_ranks_and_devices_are_named) {
  const auto refused = [&](const analysis::Analysis& other) {
    return refusal_text(differences_of(of_run(kFigures), other));
  };
  EXPECT_EQ(refused(of_run(kFigures)), "");
  EXPECT_EQ(refused(of_run(R"("flops_per_token":2e6,"tokens_per_step":512)")),
            "FLOPs of a token is 1e+06 and 2e+06");
  EXPECT_EQ(refused(of_run(R"("flops_per_token":1e6,"tokens_per_step":1024)")),
            "tokens of a step is 512 and 1024");
  EXPECT_EQ(refused(of_run(kFigures, 2)), "world_size is 1 and 2");
  EXPECT_EQ(refused(of_run(kFigures, 1, "kernel")), "device is a processor and a device");
}

TEST_F(TraceComparabilityTest, other_versions_of_cuda_are_named) {
  const auto with_cuda = [&](const char* runtime) {
    return of_run(
        kFigures, 1, "kernel",
        fmt::format(R"("cuda_runtime_version":{},"cuda_driver_version":13010,)", runtime));
  };
  const analysis::Analysis base = with_cuda("13000");
  EXPECT_EQ(refusal_text(differences_of(base, with_cuda("13000"))), "");
  EXPECT_EQ(refusal_text(differences_of(base, with_cuda("12090"))),
            "CUDA is CUDA 13.0, driver 13.1 and CUDA 12.9, driver 13.1");
  EXPECT_EQ(refusal_text(differences_of(base, of_run(kFigures, 1, "kernel"))), "");  // not said
}

TEST_F(TraceComparabilityTest, sides_without_common_operations_are_different_models) {
  EXPECT_THAT(refusal_text(differences_of(analysed("aten::mm"), analysed("aten::conv2d"))),
              HasSubstr("operations that the other does not have"));
  EXPECT_EQ(refusal_text(differences_of(analysed("aten::mm"), analysed("aten::mm"))), "");
}

TEST_F(TraceComparabilityTest, the_same_operations_with_other_shapes_are_another_model_or_batch) {
  const auto product = [&](const char* rows, const char* operation = "aten::mm") {
    const core::ScratchFolder scratch;
    test::write_text(
        scratch / "rank-0.json",
        test::trace_of(test::complete_event("user_annotation", "ProfilerStep#1", "0", "100") + "," +
                       test::complete_event("cpu_op", operation, "1", "90",
                                            fmt::format(R"("Input Dims":[[{},64],[64,64]],)"
                                                        R"("Input type":["float","float"])",
                                                        rows))));
    sets_.push_back(std::make_unique<trace::TraceSet>(
        trace::load_traces(trace::find_traces({scratch.path()}))));
    return analysis::analyse(*sets_.back(), 1);
  };
  EXPECT_EQ(refusal_text(differences_of(product("64"), product("64"))), "");
  EXPECT_EQ(refusal_text(differences_of(product("64"), product("128"))),
            "FLOPs of a step by the shapes is 5.243e+05 and 1.049e+06");
}

TEST_F(TraceComparabilityTest, a_copy_of_a_capture_is_the_same_capture) {
  EXPECT_EQ(identity_of(analysed("aten::mm")), identity_of(analysed("aten::mm")));
  EXPECT_NE(identity_of(analysed("aten::mm")), identity_of(analysed("aten::mm", 500)));
}

}  // namespace
}  // namespace sidestream::verify
