#include "profiling/trace/clock_samples.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/file.hpp"

namespace sidestream::trace {
namespace {

using Json = nlohmann::json;

struct Sample {
  ClockPair pair;
  std::int64_t round_trip_ns = 0;
};

RankSamples samples_of(const Json& rank) {
  RankSamples result;
  result.boot_id = rank.value("boot_id", "");
  std::vector<Sample> samples;
  for (const Json& one : rank.value("samples", Json::array())) {
    samples.push_back(
        {{one.at("local_ns").get<std::int64_t>(), one.at("reference_ns").get<std::int64_t>()},
         one.at("round_trip_ns").get<std::int64_t>()});
  }
  std::sort(samples.begin(), samples.end(),
            [](const Sample& a, const Sample& b) { return a.round_trip_ns < b.round_trip_ns; });
  samples.resize((samples.size() + 1) / 2);
  for (const Sample& one : samples) result.pairs.push_back(one.pair);
  if (!samples.empty()) result.round_trip_ns = samples.back().round_trip_ns;
  return result;
}

}  // namespace

std::optional<ClockSamples> read_clock_samples(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return std::nullopt;
  try {
    const Json parsed = Json::parse(core::read_file(file));
    ClockSamples all;
    for (const Json& rank : parsed.at("ranks")) all[rank.at("rank").get<int>()] = samples_of(rank);
    return all;
  } catch (const Json::exception& error) {
    throw core::DataError(
        core::FileFault{file.string(), std::nullopt, "clock samples", error.what()});
  }
}

}  // namespace sidestream::trace
