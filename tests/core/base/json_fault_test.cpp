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
  EXPECT_EQ(fault_of("{}"), "run.json: expected a record, found no 'machine'");
  EXPECT_EQ(fault_of("[]"),
            "run.json: expected a record, found a value of type array where an "
            "object belongs");
  EXPECT_EQ(fault_of("{\"machine\": 1}"), "none");
}

std::string refusal_of(std::string_view text) {
  try {
    number_within(json::parse(text), "n", {.least = 0, .most = 9},
                  {.file = "f", .offset_bytes = 7, .expected = "a line"});
  } catch (const DataError& error) {
    return error.what();
  }
  return "none";
}

TEST(JsonFaultTest, number_within_says_what_stands_there) {
  EXPECT_EQ(refusal_of(R"({"n": 9})"), "none");
  const std::string expected = "f, byte 7: expected a line with a number from 0 to 9 as \"n\", ";
  EXPECT_EQ(refusal_of(R"({"n": -5})"), expected + "found -5");
  EXPECT_EQ(refusal_of(R"({"n": "x"})"), expected + "found \"x\"");
  EXPECT_EQ(refusal_of(R"({"n": null})"), expected + "found null");
  EXPECT_EQ(refusal_of("{}"), expected + "found none");
  EXPECT_EQ(refusal_of("[]"), expected + "found a value of type array");
  const std::string deep(100'000, '[');
  EXPECT_EQ(refusal_of("{\"n\": " + deep + std::string(deep.size(), ']') + "}"),
            expected + "found a value of type array");
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
