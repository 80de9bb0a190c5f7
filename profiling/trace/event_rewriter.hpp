// An event's own text with other numbers in it: what stands in the file stays, to the letter.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sidestream::trace {

class EventRewriter {
 public:
  // `text` is the whole event; the parts given to replace() lie inside it.
  void begin(std::string_view text) {
    text_ = text;
    parts_.clear();
  }
  // A part that is quoted in the text loses its quotes. A part that is not there (null) is ignored,
  // and so is an empty one without quotes.
  void replace(std::string_view part, std::string with);
  // Appends the event without line breaks.
  void write_to(std::string& output);

 private:
  struct Part {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::string with;
  };

  std::string_view text_;
  std::vector<Part> parts_;
};

// Microseconds with nanosecond decimals: the time base of the format.
std::string microseconds_text(std::int64_t nanoseconds);

}  // namespace sidestream::trace
