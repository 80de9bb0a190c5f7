// From arguments to TrainOptions, and back to text. Needs no MPI and no LibTorch: bad input ends a
// run before either.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/options/flag.hpp"
#include "launch/options/train_options.hpp"

namespace sidestream::launch {

// Defaults < --config file < --baseline < command line; validated. argv[0] is skipped. Throws
// ConfigError whose message starts with the flag, or with file:line.
TrainOptions parse_train_options(int argc, const char* const* argv);
TrainOptions parse_train_options(const std::vector<std::string>& arguments);

// The checks across flags that parse_train_options makes. Throws ConfigError.
void validate(const TrainOptions& options);

// Throws ConfigError for what only GPUs have. A rank on a processor asks where --device is auto.
void refuse_what_needs_a_gpu(const TrainOptions& options);

// Every setting as a configuration file, grouped, with the help as comments; what is not set is
// commented out. Read back with --config it gives the same options (except --baseline, --dry-run,
// --print-config: they belong to a call).
std::string config_text(const TrainOptions& options);

// For --help.
std::string train_help(int width_columns);

// Once the data is known: sets the vocabulary (unless --vocab-size was given) and pads it. Throws
// ConfigError.
void set_vocabulary(TrainOptions& options, std::int64_t vocab_size);

// --sequence-length, or the model's context where it was not given.
std::int64_t sequence_length(const TrainOptions& options);

// The flags and their groups.
std::vector<FlagGroup> train_flags();

}  // namespace sidestream::launch
