#include "core/base/json_fault.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sidestream::core {
namespace {

using nlohmann::json;

std::string fault_of(std::string_view text, std::optional<std::uint64_t> offset = {}) {
  try {
    json::parse(text).at("machine");
  } catch (const json::exception& error) {
    return json_fault({.file = "run.json", .offset_bytes = offset, .expected = "a record"}, text,
                      error)
        .text();
  }
  return "none";
}

TEST(JsonFaultTest, json_fault_says_where_and_what) {
  EXPECT_EQ(fault_of("{\"a\": 1, ?}"), "run.json, byte 9: expected a record, found '?}'");
  EXPECT_EQ(fault_of("{\"a\": 1, ?}", 100), "run.json, byte 109: expected a record, found '?}'");
  EXPECT_EQ(fault_of("{\"a\""), "run.json, byte 4: expected a record, found its end, too early");
  EXPECT_EQ(fault_of(""), "run.json, byte 0: expected a record, found its end, too early");
}

TEST(JsonFaultTest, json_fault_of_what_parses_says_what_is_missing) {
  EXPECT_EQ(fault_of("{}"), "run.json: expected a record, found key 'machine' not found");
  EXPECT_EQ(fault_of("{\"machine\": 1}"), "none");
}

TEST(JsonFaultTest, json_words_leave_out_the_name_of_the_class) {
  try {
    json(1).get<std::string>();
    FAIL();
  } catch (const json::exception& error) {
    EXPECT_EQ(json_words(error), "type must be string, but is number");
  }
}

}  // namespace
}  // namespace sidestream::core
