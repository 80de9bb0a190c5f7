#include "core/faults/fault.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

#include "core/base/error.hpp"

namespace sidestream::faults {
namespace {

template <typename Value>
using Names = std::vector<std::pair<std::string_view, Value>>;

const Names<Kind>& kinds() {
  static const Names<Kind> names = {
      {"kill", Kind::kKill},        {"stop", Kind::kStop},   {"hang", Kind::kHang},
      {"exit", Kind::kExit},        {"throw", Kind::kThrow}, {"memory", Kind::kMemory},
      {"slow", Kind::kSlow},        {"nan", Kind::kNan},     {"spike", Kind::kSpike},
      {"inf-grad", Kind::kInfGrad}, {"flip", Kind::kFlip},   {"disk-full", Kind::kDiskFull},
      {"desync", Kind::kDesync}};
  return names;
}

const Names<Point>& points() {
  static const Names<Point> names = {
      {"start", Point::kStart},           {"setup", Point::kSetUp},
      {"restore", Point::kRestore},       {"data", Point::kData},
      {"forward", Point::kForward},       {"update", Point::kUpdate},
      {"evaluation", Point::kEvaluation}, {"checkpoint", Point::kCheckpoint},
      {"commit", Point::kCommit}};
  return names;
}

template <typename Value>
Value named(const Names<Value>& names, std::string_view word, std::string_view what) {
  for (const auto& [name, value] : names) {
    if (name == word) return value;
  }
  std::vector<std::string_view> words;
  for (const auto& [name, value] : names) words.push_back(name);
  throw core::ConfigError(
      fmt::format("expected {}: one of {}, found '{}'", what, fmt::join(words, ", "), word));
}

template <typename Value>
std::string_view name_of(const Names<Value>& names, Value value) {
  return std::find_if(names.begin(), names.end(),
                      [&](const auto& entry) { return entry.second == value; })
      ->first;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = text.find(separator);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

template <typename Number>
Number number_in(std::string_view text, Number low, Number high) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= low && value <= high)
    return value;
  throw core::ConfigError(
      fmt::format("expected a number from {} to {}, found '{}'", low, high, text));
}

constexpr std::int64_t kMostSteps = 1'000'000'000;
constexpr std::int64_t kLongestMs = 86'400'000;

void set(Fault& fault, std::string_view key, std::string_view value) {
  if (key == "rank") {
    fault.rank.reset();
    if (value != "all") fault.rank = number_in(value, 0, 1'000'000);
  } else if (key == "step") {
    fault.step = number_in<std::int64_t>(value, 0, kMostSteps);
  } else if (key == "steps") {
    fault.steps = number_in<std::int64_t>(value, 0, kMostSteps);
  } else if (key == "at") {
    fault.at = named(points(), value, "a place");
  } else if (key == "attempt") {
    fault.attempt = value == "all" ? 0 : number_in(value, 0, 1'000'000);
  } else if (key == "ms") {
    fault.ms = std::chrono::milliseconds(number_in<std::int64_t>(value, 0, kLongestMs));
  } else if (key == "factor") {
    fault.factor = number_in(value, -1e30, 1e30);
  } else if (key == "code") {
    fault.code = number_in(value, 0, 255);
  } else {
    throw core::ConfigError(fmt::format(
        "expected a key: one of rank, step, steps, at, attempt, ms, factor, code, found '{}'",
        key));
  }
}

// Where a kind happens unless it is told, and how often.
Fault defaults_of(Kind kind) {
  Fault fault{.kind = kind};
  if (kind == Kind::kThrow) fault.at = Point::kData;
  if (kind == Kind::kDiskFull) fault.at = Point::kCheckpoint;
  if (kind == Kind::kFlip) fault.at = Point::kData;
  if (kind == Kind::kSlow) fault.steps = 0;
  return fault;
}

Fault parse_fault(std::string_view text) {
  const auto colon = text.find(':');
  Fault fault = defaults_of(named(kinds(), trimmed(text.substr(0, colon)), "a fault"));
  if (colon == std::string_view::npos) return fault;
  std::set<std::string_view> keys;
  for (const std::string_view pair : split(text.substr(colon + 1), ',')) {
    const auto equals = pair.find('=');
    if (equals == std::string_view::npos)
      throw core::ConfigError(fmt::format("expected KEY=VALUE, found '{}'", pair));
    const std::string_view key = trimmed(pair.substr(0, equals));
    if (!keys.insert(key).second)
      throw core::ConfigError(fmt::format("expected '{}' once, found it twice", key));
    set(fault, key, trimmed(pair.substr(equals + 1)));
  }
  return fault;
}

}  // namespace

std::vector<Fault> parse_faults(std::string_view text) {
  std::vector<Fault> faults;
  for (const std::string_view part : split(text, ';')) {
    if (part.empty()) continue;
    try {
      faults.push_back(parse_fault(part));
    } catch (const core::ConfigError& error) {
      throw core::ConfigError(fmt::format("'{}': {}", part, error.what()));
    }
  }
  if (faults.empty()) throw core::ConfigError("expected a fault such as kill:rank=1,step=50");
  return faults;
}

std::string describe(const Fault& fault) {
  return fmt::format("{} of {} at {}{}", name_of(kinds(), fault.kind),
                     fault.rank ? fmt::format("rank {}", *fault.rank) : "every rank",
                     name_of(points(), fault.at),
                     fault.step ? fmt::format(" of step {}", *fault.step) : "");
}

}  // namespace sidestream::faults
