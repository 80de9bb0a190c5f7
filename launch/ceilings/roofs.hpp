// The roofs of a run: what was measured on its machine, and its GPU's datasheet where nothing was.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "launch/ceilings/ceilings.hpp"
#include "profiling/advice/facts.hpp"

namespace sidestream::launch {

// The ranks of a run. A link is measured between ranks of one host: between several it is another
// link, and not measured.
struct JoinedRanks {
  int count = 1;
  int hosts = 1;
};
JoinedRanks joined_ranks(const advice::Facts& facts);

// Of a rank on the processor: the part of the measured cores that it computes on. Nothing when the
// run's processor is another one than the measured one.
std::optional<advice::Ceilings> roofs_of_processor(const Ceilings& stored,
                                                   const advice::Facts& facts);

// Figure by figure: measured on a GPU of this name, else from its datasheet (datasheet.hpp), else
// not there. Nothing when there is neither. Memory: what the device has; 0: not known.
std::optional<advice::Ceilings> roofs_of_device(const std::optional<Ceilings>& stored,
                                                const std::string& device_name,
                                                const JoinedRanks& ranks,
                                                std::uint64_t memory_bytes = 0);

}  // namespace sidestream::launch
