#include "profiling/trace/event_times.hpp"

#include <charconv>

#include "profiling/trace/decimal.hpp"
#include "profiling/trace/latest_time.hpp"

namespace sidestream::trace {
namespace {

// What is said of one of the two fields.
struct FieldWords {
  const char* missing;
  const char* no_number;
  const char* out_of_range;
  const char* number;
  const char* range;
  std::int64_t most_ns;
};

constexpr FieldWords kStartWords = {.missing = "no time",
                                    .no_number = "time that is no number",
                                    .out_of_range = "time out of range",
                                    .number = "\"ts\" in microseconds",
                                    .range = "\"ts\" in microseconds, of less than 73 years",
                                    .most_ns = kLatestNs};
constexpr FieldWords kDurationWords = {.missing = "no duration",
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

std::optional<TimeFault> read_field(std::string_view text, const FieldWords& words,
                                    std::int64_t& value_ns) {
  if (text.data() == nullptr || text == "null") return TimeFault{words.missing, "", text};
  const auto value = nanoseconds_of_microseconds(text);
  if (!value && !is_number(text)) return TimeFault{words.no_number, words.number, text};
  if (!value || !is_within(*value, words.most_ns))
    return TimeFault{words.out_of_range, words.range, text};
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
