#include "profiling/trace/nsys_times.hpp"

#include "profiling/trace/latest_time.hpp"

namespace sidestream::trace {
namespace {

constexpr TimeWords words_of_column(const char* missing, const char* number, const char* range) {
  return {.missing = missing,
          .no_number = "time that is no number",
          .out_of_range = "time out of range",
          .number = number,
          .range = range,
          .most_ns = kLongestNs};
}

constexpr TimeWords kStartWords = words_of_column(
    "no time", "\"start\" in nanoseconds", "\"start\" in nanoseconds, of less than 104 days");
constexpr TimeWords kEndWords = words_of_column("no end", "\"end\" in nanoseconds",
                                                "\"end\" in nanoseconds, of less than 104 days");
constexpr TimeWords kInstantWords =
    words_of_column("no time", "\"timestamp\" in nanoseconds",
                    "\"timestamp\" in nanoseconds, of less than 104 days");

// SQLite keeps any type in any column. Times count from when the recording began.
std::optional<TimeFault> read_column(const SqliteRows& rows, int column, const TimeWords& words,
                                     std::int64_t& value_ns) {
  if (rows.is_null(column)) return words.is_missing();
  if (!rows.is_number(column)) return words.is_no_number(rows.text(column));
  const std::int64_t value = rows.integer(column);  // the nearest for one that does not fit
  if (!is_within(value, words.most_ns)) return words.is_out_of_range(rows.text(column));
  value_ns = value;
  return std::nullopt;
}

}  // namespace

NsysTimes nsys_times_of(const SqliteRows& rows, int start_column, int end_column) {
  NsysTimes times;
  std::int64_t end_ns = 0;
  times.fault = read_column(rows, start_column, kStartWords, times.start_ns);
  if (!times.fault) times.fault = read_column(rows, end_column, kEndWords, end_ns);
  if (times.fault) return times;
  times.duration_ns = end_ns - times.start_ns;
  if (times.duration_ns < 0)
    times.fault =
        TimeFault{"negative duration", "\"end\" at or behind \"start\"", rows.text(end_column)};
  return times;
}

NsysTimes nsys_instant_of(const SqliteRows& rows, int column) {
  NsysTimes times;
  times.fault = read_column(rows, column, kInstantWords, times.start_ns);
  return times;
}

}  // namespace sidestream::trace
