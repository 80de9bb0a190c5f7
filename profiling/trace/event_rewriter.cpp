#include "profiling/trace/event_rewriter.hpp"

#include <algorithm>
#include <cstdint>

namespace sidestream::trace {
namespace {

// Strings of JSON hold no raw line breaks: what follows one is indentation.
void append_without_breaks(std::string_view text, std::string& output) {
  while (!text.empty()) {
    const std::size_t at = std::min(text.find('\n'), text.size());
    output.append(text.substr(0, at));
    text.remove_prefix(at);
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  }
}

}  // namespace

void EventRewriter::replace(std::string_view part, std::string with) {
  if (part.data() == nullptr) return;
  Part one{static_cast<std::size_t>(part.data() - text_.data()), 0, std::move(with)};
  one.end = one.begin + part.size();
  const bool quoted = one.begin > 0 && one.end < text_.size() && text_[one.begin - 1] == '"' &&
                      text_[one.end] == '"';
  if (!quoted && part.empty()) return;
  if (quoted) {
    --one.begin;
    ++one.end;
  }
  parts_.push_back(std::move(one));
}

void EventRewriter::write_to(std::string& output) {
  std::sort(parts_.begin(), parts_.end(),
            [](const Part& a, const Part& b) { return a.begin < b.begin; });
  std::size_t at = 0;
  for (const Part& part : parts_) {
    append_without_breaks(text_.substr(at, part.begin - at), output);
    output += part.with;
    at = part.end;
  }
  append_without_breaks(text_.substr(at), output);
}

std::string microseconds_text(std::int64_t nanoseconds) {
  const std::int64_t whole = nanoseconds / 1000, rest = nanoseconds % 1000;
  std::string decimals = std::to_string(1000 + (rest < 0 ? -rest : rest));
  decimals[0] = '.';
  return (nanoseconds < 0 && whole == 0 ? "-" : "") + std::to_string(whole) + decimals;
}

}  // namespace sidestream::trace
