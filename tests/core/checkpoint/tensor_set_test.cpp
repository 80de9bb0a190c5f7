#include "core/checkpoint/tensor_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/checkpoint/tensor_assignment.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/core/checkpoint/samples.hpp"

namespace sidestream::checkpoint {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class TensorSetTest : public testing::Test {
 protected:
  core::ScratchFolder folder_;
  CheckpointStore store_{folder_.path()};
};

TEST_F(TensorSetTest, open_optimizer_joins_the_shards_of_all_ranks_by_name) {
  save_sample(store_, {.step = 5, .world_size = 3});
  const Checkpoint checkpoint = *store_.newest_valid().checkpoint;

  const TensorSet optimizer = TensorSet::open_optimizer(checkpoint);
  const TensorSet model = TensorSet::open_model(checkpoint);

  EXPECT_THAT(optimizer.names(), ElementsAre("moments.0", "moments.1", "moments.2"));
  EXPECT_EQ(optimizer.at("moments.2").elements(), 1000u);
  EXPECT_TRUE(model.contains("weights"));
  EXPECT_THAT(checkpoint_error_of([&] { optimizer.at("moments.3"); }),
              HasSubstr("expected a tensor named 'moments.3'"));
}

TEST_F(TensorSetTest, file_that_the_manifest_does_not_list_is_named) {
  save_sample(store_, {.step = 5, .world_size = 3});
  Checkpoint checkpoint = *store_.newest_valid().checkpoint;
  checkpoint.manifest.files.pop_back();
  std::erase_if(checkpoint.manifest.files,
                [](const FileDigest& file) { return file.name == "model.safetensors"; });

  EXPECT_THAT(checkpoint_error_of([&] { TensorSet::open_model(checkpoint); }),
              HasSubstr("expected model.safetensors among its files"));

  EXPECT_THAT(checkpoint_error_of([&] { TensorSet::open_optimizer(checkpoint); }),
              HasSubstr("expected optimizer_00002_of_00003.safetensors among its files"));
}

TEST_F(TensorSetTest, weights_in_other_files_are_named) {
  EXPECT_THAT(checkpoint_error_of([&] { TensorSet::open_model(folder_.path()); }),
              HasSubstr("model.safetensors: No such file"));
  for (const char* other : {"pytorch_model.bin", "model.safetensors.index.json"}) {
    std::ofstream(folder_ / other) << "{}";
    EXPECT_THAT(
        checkpoint_error_of([&] { TensorSet::open_model(folder_.path()); }),
        AllOf(HasSubstr("expected all weights in model.safetensors, found " + std::string(other)),
              HasSubstr("max_shard_size")));
  }
}

// As OpenAI's own GPT-2 is published.
TEST_F(TensorSetTest, names_of_a_model_without_its_head_get_those_with_it) {
  const auto values = values_of_step(1, 4);
  write_safetensors(folder_ / "model.safetensors", std::vector{source_of("h.0.ln_1.weight", values),
                                                               source_of("wte.weight", values)});

  const TensorSet set = TensorSet::open_model(folder_.path());

  EXPECT_THAT(set.names(), ElementsAre("transformer.h.0.ln_1.weight", "transformer.wte.weight"));
  EXPECT_EQ(set.at("transformer.wte.weight").elements(), 4u);
}

TEST_F(TensorSetTest, tensor_in_two_files_is_refused) {
  const auto values = values_of_step(1, 4);
  const std::vector<std::filesystem::path> files{folder_ / "a", folder_ / "b"};
  for (const auto& file : files) write_safetensors(file, std::vector{source_of("same", values)});

  EXPECT_THAT(checkpoint_error_of([&] { TensorSet set(files); }),
              HasSubstr("expected tensor 'same' in one file only"));
}

TEST(TensorAssignmentTest, ranks_share_the_bytes) {
  const std::vector<std::uint64_t> bytes{100, 10, 60, 30, 50, 50};

  const auto ranks = assign_tensors(bytes, 3);

  std::vector<std::uint64_t> load(3);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    load.at(static_cast<std::size_t>(ranks[i])) += bytes[i];
  EXPECT_THAT(load, ElementsAre(100, 100, 100));
}

TEST(TensorAssignmentTest, one_rank_gets_all_and_more_ranks_than_tensors_is_fine) {
  EXPECT_THAT(assign_tensors(std::vector<std::uint64_t>{5, 5}, 1), ElementsAre(0, 0));
  EXPECT_THAT(assign_tensors(std::vector<std::uint64_t>{5, 5}, 8), ElementsAre(0, 1));
  EXPECT_TRUE(assign_tensors({}, 2).empty());
  EXPECT_THROW(assign_tensors({}, 0), core::Error);
}

TEST(TensorAssignmentTest, file_name_has_five_digits) {
  EXPECT_EQ(optimizer_file_name(1, 4), "optimizer_00001_of_00004.safetensors");
}

}  // namespace
}  // namespace sidestream::checkpoint
