// Opens what --data names: shards of a folder, or arithmetic.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "comm/topology.hpp"
#include "core/data/fingerprint.hpp"
#include "core/data/loader.hpp"
#include "core/data/token_stream.hpp"
#include "launch/options/train_options.hpp"

namespace sidestream::launch {

struct DataSources {
  std::shared_ptr<const data::SampleSource> train;
  std::shared_ptr<const data::TokenStream>
      validation;               // null: synthetic data, or a folder without a val shard
  std::int64_t vocab_size = 0;  // of dataset.json, else of the model
  std::shared_ptr<const std::string> tokenizer = {};  // the text of tokenizer.json; null: none
  std::optional<std::int64_t> end_of_text = {};       // its id, where it is known
};

// Opens shards and reads dataset.json where there is one. Throws DataError.
DataSources open_data(const TrainOptions& options);

// Throws DataError.
data::Fingerprints fingerprints_of(const DataSources& sources, const TrainOptions& options);

// The loader of this rank, starting at `first_step` of an order that is shifted by `first_sample`
// samples.
struct LoaderStart {
  std::uint64_t first_step = 1;
  std::uint64_t first_sample = 0;
};
// Where batches lie, and how many the caller keeps at the same time.
struct LoaderMemory {
  data::SlotAllocator allocator = data::SlotAllocator::heap();
  int max_held = 2;
};
data::LoaderConfig loader_config(const TrainOptions& options, const comm::Topology& topology,
                                 const LoaderStart& start, const LoaderMemory& memory);
std::unique_ptr<data::Loader> make_loader(const DataSources& sources, const TrainOptions& options,
                                          const comm::Topology& topology, const LoaderStart& start,
                                          const LoaderMemory& memory = {});

}  // namespace sidestream::launch
