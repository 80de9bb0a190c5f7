#include "profiling/trace/clock_samples.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/shallow_json.hpp"
#include "profiling/trace/latest_time.hpp"
#include "profiling/trace/most_ranks.hpp"
#include "profiling/trace/shorter_half.hpp"

namespace sidestream::trace {
namespace {

using Json = nlohmann::json;

constexpr const char* kExpected =
    "clock samples (ranks, each with local_ns, reference_ns, round_trip_ns)";

struct Sample {
  ClockPair pair;
  std::int64_t round_trip_ns = 0;
};

std::int64_t whole_number(const Json& object, const char* key) {
  const Json& value = object.at(key);
  if (!value.is_number_integer())
    throw std::invalid_argument(std::string(key) + " that is no whole number");
  return value.get<std::int64_t>();
}

std::int64_t time_of(const Json& object, const char* key) {
  const std::int64_t time_ns = whole_number(object, key);
  if (time_ns < 0 || time_ns > kLatestNs)
    throw std::invalid_argument(std::string(key) + " that is no time since 1970");
  return time_ns;
}

Sample sample_of(const Json& one) {
  const Sample sample{{time_of(one, "local_ns"), time_of(one, "reference_ns")},
                      whole_number(one, "round_trip_ns")};
  if (sample.round_trip_ns < 0) throw std::invalid_argument("a round trip below 0 ns");
  if (sample.round_trip_ns > kLatestNs) throw std::invalid_argument("a round trip of decades");
  return sample;
}

int rank_of(const Json& one) {
  const std::int64_t rank = whole_number(one, "rank");
  if (!is_rank_number(rank)) throw std::invalid_argument("a rank that no job has");
  return static_cast<int>(rank);
}

RankSamples samples_of(const Json& rank) {
  RankSamples result;
  result.boot_id = rank.value("boot_id", "");
  std::vector<Sample> samples;
  for (const Json& one : rank.value("samples", Json::array())) samples.push_back(sample_of(one));
  keep_shorter_half(samples);
  for (const Sample& one : samples) result.pairs.push_back(one.pair);
  if (!samples.empty()) result.round_trip_ns = samples.back().round_trip_ns;
  return result;
}

}  // namespace

std::optional<ClockSamples> read_clock_samples(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return std::nullopt;
  try {
    const Json parsed = core::parse_shallow_json(core::read_file(file));
    ClockSamples all;
    for (const Json& rank : parsed.at("ranks")) all[rank_of(rank)] = samples_of(rank);
    return all;
  } catch (const Json::exception&) {
    throw core::DataError(core::FileFault{file.string(), std::nullopt, kExpected,
                                          "something else: remove the file to align clocks on "
                                          "collectives alone"});
  } catch (const core::NestingError& error) {
    throw core::DataError(core::FileFault{file.string(), std::nullopt, error.what(), "more"});
  } catch (const std::invalid_argument& found) {
    throw core::DataError(core::FileFault{file.string(), std::nullopt, kExpected, found.what()});
  } catch (const core::Error& error) {  // cannot be read
    throw core::DataError(error.what());
  }
}

}  // namespace sidestream::trace
