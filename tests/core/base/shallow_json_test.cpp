#include "core/base/shallow_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/base/file.hpp"
#include "tests/core/base/nested_json.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::core {
namespace {

TEST(ShallowJsonTest, parse_whatIsNotDeep) {
  EXPECT_EQ(parse_shallow_json(R"({"a": [1, {"b": null}]})").dump(), R"({"a":[1,{"b":null}]})");
  EXPECT_NO_THROW(parse_shallow_json(nested_json(32)));
}

TEST(ShallowJsonTest, parse_deepIsRefused) {
  for (const std::size_t levels : {std::size_t{40}, std::size_t{400'000}})
    EXPECT_THROW(parse_shallow_json(nested_json(levels)), NestingError) << levels;
  EXPECT_THROW(parse_shallow_json(std::string(400'000, '[')), NestingError);
}

TEST(ShallowJsonTest, parse_noJson) {
  EXPECT_THROW(parse_shallow_json("{"), nlohmann::json::parse_error);
}

TEST(ShallowJsonTest, orNull_whatCannotBeReadIsNone) {
  EXPECT_EQ(shallow_json_or_null("[1]"), nlohmann::json({1}));
  for (const std::string& text : {std::string("{"), nested_json()})
    EXPECT_TRUE(shallow_json_or_null(text).is_null()) << text.size();
}

TEST(ShallowJsonTest, read_moreThanTheLimit) {
  const ScratchFolder scratch;
  write_file_atomically(scratch / "a.json", "[1, 2, 3]");

  EXPECT_EQ(read_shallow_json(scratch / "a.json", 9).size(), 3U);
  EXPECT_THROW(read_shallow_json(scratch / "a.json", 8), Error);
}

}  // namespace
}  // namespace sidestream::core
