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

// Profilers write numbers that JSON has no word for: NaN, Infinity, -nan. Outside of texts they
// become null.
void append_with_numbers(std::string_view text, std::string& output) {
  const auto is_letter = [](char one) {
    return (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z');
  };
  bool in_text = false;
  for (std::size_t at = 0; at < text.size();) {
    const char one = text[at];
    if (in_text && one == '\\') {
      output += text.substr(at, 2);
      at += 2;
      continue;
    }
    if (one == '"') in_text = !in_text;
    const bool minus = one == '-' && at + 1 < text.size() && is_letter(text[at + 1]);
    if (in_text || !(minus || is_letter(one))) {
      output += one;
      ++at;
      continue;
    }
    const std::size_t begin = at;
    for (++at; at < text.size() && is_letter(text[at]);) ++at;
    const std::string_view word = text.substr(begin, at - begin);
    const bool exponent = word == "e" || word == "E";
    output += exponent || word == "true" || word == "false" ? word : "null";
  }
}

bool may_have_no_number(std::string_view text) {
  for (const char* word : {"NaN", "nan", "nf"}) {  // Infinity, inf, Inf
    if (text.find(word) != std::string_view::npos) return true;
  }
  return false;
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
  const std::size_t begin = output.size();
  std::size_t at = 0;
  for (const Part& part : parts_) {
    append_without_breaks(text_.substr(at, part.begin - at), output);
    output += part.with;
    at = part.end;
  }
  append_without_breaks(text_.substr(at), output);
  if (!may_have_no_number(std::string_view(output).substr(begin))) return;
  const std::string text = output.substr(begin);
  output.resize(begin);
  append_with_numbers(text, output);
}

std::string microseconds_text(std::int64_t nanoseconds) {
  const std::int64_t whole = nanoseconds / 1000, rest = nanoseconds % 1000;
  std::string decimals = std::to_string(1000 + (rest < 0 ? -rest : rest));
  decimals[0] = '.';
  return (nanoseconds < 0 && whole == 0 ? "-" : "") + std::to_string(whole) + decimals;
}

}  // namespace sidestream::trace
