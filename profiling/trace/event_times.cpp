#include "profiling/trace/event_times.hpp"

#include <charconv>

#include "profiling/trace/decimal.hpp"
#include "profiling/trace/latest_time.hpp"

namespace sidestream::trace {
namespace {

constexpr TimeWords kStartWords = {.missing = "no time",
                                   .no_number = "time that is no number",
                                   .out_of_range = "time out of range",
                                   .number = "\"ts\" in microseconds",
                                   .range = "\"ts\" in microseconds, of less than 73 years",
                                   .most_ns = kLatestNs};
constexpr TimeWords kDurationWords = {.missing = "no duration",
                                      .no_number = "duration that is no number",
                                      .out_of_range = "duration out of range",
                                      .number = "\"dur\" in microseconds",
                                      .range = "\"dur\" in microseconds, of less than 104 days",
                                      .most_ns = kLongestNs};

bool is_number(std::string_view text) {
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && result.ec != std::errc::invalid_argument &&
         result.ptr == text.data() + text.size();
}

std::optional<TimeFault> read_field(std::string_view text, const TimeWords& words,
                                    std::int64_t& value_ns) {
  if (text.data() == nullptr || text == "null") return words.is_missing();
  const auto value = nanoseconds_of_microseconds(text);
  if (!value && !is_number(text)) return words.is_no_number(text);
  if (!value || !is_within(*value, words.most_ns)) return words.is_out_of_range(text);
  value_ns = *value;
  return std::nullopt;
}

}  // namespace

EventTimes times_of(const KinetoFields& fields, EventShape shape) {
  EventTimes times;
  times.fault = read_field(fields.time, kStartWords, times.start_ns);
  if (times.fault || shape == EventShape::kInstant) return times;
  times.fault = read_field(fields.duration, kDurationWords, times.duration_ns);
  if (!times.fault && times.duration_ns < 0)
    times.fault = TimeFault{"negative duration", "\"dur\" of 0 or more", fields.duration};
  return times;
}

}  // namespace sidestream::trace
