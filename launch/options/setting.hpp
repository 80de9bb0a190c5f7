// A flag bound to a member of an option struct: how to set it from text and how to write it back.
//
// A command has one table of settings; parsing, --help, --print-config and the frozen list of flags
// all come from it.
//   count<Options>({"steps", "N", "optimizer steps"}, [](auto& o) -> auto& { return o.steps; },
//   {.min = 0})
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "launch/options/flag.hpp"
#include "launch/options/value_text.hpp"

namespace sidestream::launch {

template <typename Options>
struct Setting {
  Flag flag;
  std::function<void(Options&, const std::string&)> set;  // throws ConfigError without the origin
  std::function<std::optional<std::string>(const Options&)> get;  // nothing: not set
};

template <typename Options>
struct SettingGroup {
  std::string title;
  std::vector<Setting<Options>> settings;
};

template <typename Options>
using SettingTable = std::vector<SettingGroup<Options>>;

// Integers of any width.
template <typename Options, typename Access>
Setting<Options> count(Flag flag, Access access, IntegerRange range) {
  return {std::move(flag),
          [=](Options& options, const std::string& text) {
            auto& member = access(options);
            member = static_cast<std::decay_t<decltype(member)>>(parse_integer(text, range));
          },
          [=](const Options& options) { return std::optional(std::to_string(access(options))); }};
}

// std::optional of an integer type; what is not set stays with the component.
template <typename Options, typename Access>
Setting<Options> optional_count(Flag flag, Access access, IntegerRange range) {
  return {std::move(flag),
          [=](Options& options, const std::string& text) {
            auto& member = access(options);
            using Integer = typename std::decay_t<decltype(member)>::value_type;
            member = static_cast<Integer>(parse_integer(text, range));
          },
          [=](const Options& options) -> std::optional<std::string> {
            const auto& member = access(options);
            return member ? std::optional(std::to_string(*member)) : std::nullopt;
          }};
}

// double, or std::optional<double> (not set until given).
template <typename Options, typename Access>
Setting<Options> number(Flag flag, Access access, NumberRange range) {
  return {std::move(flag),
          [=](Options& options, const std::string& text) {
            access(options) = parse_number(text, range);
          },
          [=](const Options& options) -> std::optional<std::string> {
            const std::optional<double> value = access(options);
            return value ? std::optional(number_text(*value)) : std::nullopt;
          }};
}

// bool as on|off, or as a switch when the flag is one.
template <typename Options, typename Access>
Setting<Options> on_off(Flag flag, Access access) {
  return {std::move(flag),
          [=](Options& options, const std::string& text) { access(options) = parse_on_off(text); },
          [=](const Options& options) {
            return std::optional<std::string>(access(options) ? "on" : "off");
          }};
}

// std::string or std::filesystem::path; empty counts as not set.
template <typename Options, typename Access>
Setting<Options> text(Flag flag, Access access) {
  return {std::move(flag),
          [=](Options& options, const std::string& value) {
            if (value.empty()) throw core::ConfigError("expected a value, found nothing");
            access(options) = value;
          },
          [=](const Options& options) -> std::optional<std::string> {
            const auto& member = access(options);
            if (member.empty()) return std::nullopt;
            return std::string(member);
          }};
}

// An enumeration, or any other value, by name.
template <typename Value>
using Names = std::vector<std::pair<std::string, Value>>;

template <typename Options, typename Value, typename Access>
Setting<Options> choice(Flag flag, Names<Value> names, Access access) {
  std::vector<std::string> words;
  for (const auto& [word, value] : names) words.push_back(word);
  return {std::move(flag),
          [=](Options& options, const std::string& text) {
            access(options) = names[parse_choice(text, words)].second;
          },
          [=](const Options& options) -> std::optional<std::string> {
            const auto found = std::find_if(names.begin(), names.end(), [&](const auto& entry) {
              return entry.second == access(options);
            });
            return found == names.end() ? std::nullopt : std::optional(found->first);
          }};
}

// Flags of a table, with the defaults filled in for the help.
template <typename Options>
std::vector<FlagGroup> flags_of(const SettingTable<Options>& table) {
  const Options defaults{};
  std::vector<FlagGroup> groups;
  for (const SettingGroup<Options>& group : table) {
    groups.push_back({group.title, {}});
    for (const Setting<Options>& setting : group.settings) {
      Flag flag = setting.flag;
      if (flag.default_text.empty()) flag.default_text = setting.get(defaults).value_or("");
      groups.back().flags.push_back(std::move(flag));
    }
  }
  return groups;
}

// Sets what was given, in the order of the table. Throws ConfigError that starts with the origin of
// the value.
template <typename Options>
void apply(const SettingTable<Options>& table, const std::vector<Given>& given, Options& options) {
  for (const SettingGroup<Options>& group : table) {
    for (const Setting<Options>& setting : group.settings) {
      for (const Given& value : given) {
        if (value.name != setting.flag.name) continue;
        try {
          setting.set(options, value.value);
        } catch (const core::ConfigError& error) {
          throw core::ConfigError(value.origin + ": " + error.what());
        }
      }
    }
  }
}

}  // namespace sidestream::launch
