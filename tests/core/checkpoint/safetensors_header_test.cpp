#include "core/checkpoint/safetensors_header.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/checkpoint/samples.hpp"

namespace sidestream::checkpoint {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

SafetensorsHeader parse(const std::string& file) {
  return parse_safetensors_header(bytes_of(file), "model.safetensors");
}

std::string header_error_of(const std::string& file) {
  return checkpoint_error_of([&] { parse(file); });
}

TEST(SafetensorsHeaderTest, valid_header_gives_entries_by_offset) {
  const auto header = parse(file_with_header(
      R"({"b":{"dtype":"F32","shape":[2,3],"data_offsets":[2,26]},"a":{"data_offsets":[0,2],"shape":[],"dtype":"BF16"},)"
      R"("__metadata__":{"format":"pt"}}  )",
      26));

  ASSERT_EQ(header.tensors.size(), 2u);
  EXPECT_EQ(header.tensors[0].name, "a");
  EXPECT_EQ(header.tensors[0].type, ElementType::kBF16);
  EXPECT_TRUE(header.tensors[0].shape.empty());
  EXPECT_EQ(header.tensors[1].shape, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(header.metadata.at("format"), "pt");
}

TEST(SafetensorsHeaderTest, empty_file_of_tensors_and_empty_tensors_are_valid) {
  EXPECT_TRUE(parse(file_with_header("{}", 0)).tensors.empty());
  EXPECT_EQ(parse(file_with_header(R"({"a":{"dtype":"F32","shape":[0,5],"data_offsets":[0,0]},)"
                                   R"("b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                                   1))
                .tensors.size(),
            2u);
}

TEST(SafetensorsHeaderTest, types_below_a_byte_need_whole_bytes) {
  EXPECT_EQ(parse(file_with_header(R"({"a":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}})", 2))
                .tensors.size(),
            1u);
  EXPECT_THAT(header_error_of(
                  file_with_header(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}})", 1)),
              HasSubstr("in whole bytes, found 12 bits"));
}

TEST(SafetensorsHeaderTest, more_tensors_than_any_model_has) {
  std::string header = "{";
  for (std::size_t i = 0; i <= kMaxTensors; ++i)
    header += '"' + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)";
  header.back() = '}';

  EXPECT_THAT(header_error_of(file_with_header(header, 0)), HasSubstr("at most 1000000 tensors"));
}

TEST(SafetensorsHeaderTest, shorter_than_the_length_field) {
  EXPECT_THAT(
      header_error_of("1234567"),
      AllOf(StartsWith("model.safetensors, byte 0: expected 8 bytes"), HasSubstr("7 bytes")));
  EXPECT_THAT(header_error_of(""), HasSubstr("a file of 0 bytes"));
}

TEST(SafetensorsHeaderTest, header_length_beyond_file_or_limit) {
  std::string file = file_with_header("{}", 0);
  file[0] = 3;
  EXPECT_THAT(
      header_error_of(file),
      HasSubstr("expected a header within the file of 10 bytes, found a header of 3 bytes"));
  file.replace(0, 8, std::string(8, '\xFF'));
  EXPECT_THAT(
      header_error_of(file),
      HasSubstr("expected a header of at most 100000000 bytes, found 18446744073709551615"));
}

struct BadHeader {
  std::string name;
  std::string header;
  std::size_t data_bytes;
  std::string message;

  friend void PrintTo(const BadHeader& bad, std::ostream* stream) {
    *stream << bad.header.substr(0, 200);
  }
};

class BadSafetensorsHeaderTest : public testing::TestWithParam<BadHeader> {};

TEST_P(BadSafetensorsHeaderTest, throws_a_message_with_file_byte_expected_and_found) {
  const std::string message =
      header_error_of(file_with_header(GetParam().header, GetParam().data_bytes));

  EXPECT_THAT(message,
              AllOf(StartsWith("model.safetensors, byte "), HasSubstr(GetParam().message)));
}

std::string tensor(const std::string& fields) { return "{\"a\":{" + fields + "}}"; }
std::string of_type(const std::string& type) {
  return tensor("\"dtype\":" + type + R"(,"shape":[1],"data_offsets":[0,4])");
}
std::string of_shape(const std::string& shape) {
  return tensor(R"("dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,4])");
}
std::string of_offsets(const std::string& offsets) {
  return tensor(R"("dtype":"F32","shape":[1],"data_offsets":)" + offsets);
}
std::string two_tensors(const std::string& first, const std::string& second,
                        const std::string& second_name = "b") {
  return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + first + "},\"" + second_name +
         R"(":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}";
}

INSTANTIATE_TEST_SUITE_P(
    Faults, BadSafetensorsHeaderTest,
    testing::Values(
        BadHeader{"empty_header", "", 0, "byte 8: expected '{', found an empty header"},
        BadHeader{"leading_space", " {}", 0, "byte 8: expected '{', found byte 32"},
        BadHeader{"top_level_list", "[]", 0, "expected '{'"},
        BadHeader{"cut_json", "{\"a\":{", 0, "expected valid JSON"},
        BadHeader{"text_behind_the_object", "{} x", 0, "expected valid JSON"},
        BadHeader{"zero_byte_behind_the_object", std::string("{}\0junk", 7), 0,
                  "byte 10: expected JSON text, found a zero byte"},
        BadHeader{"not_utf8", "{\"\xFF\":{}}", 0, "expected valid JSON in UTF-8"},
        BadHeader{"duplicate_tensor", two_tensors("[0,4]", "[4,8]", "a"), 8, "'a' twice"},
        BadHeader{"duplicate_field",
                  tensor(R"("dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4])"), 4,
                  "'dtype' twice"},
        BadHeader{"duplicate_metadata", R"({"__metadata__":{},"__metadata__":{}})", 0,
                  "__metadata__ once"},
        BadHeader{"duplicate_metadata_key", R"({"__metadata__":{"k":"1","k":"2"}})", 0,
                  "'k' twice"},
        BadHeader{"metadata_number", R"({"__metadata__":{"k":1}})", 0,
                  "expected a string for 'k' of __metadata__, found 1"},
        BadHeader{"metadata_nested", R"({"__metadata__":{"k":{}}})", 0, "found an object"},
        BadHeader{"metadata_text", R"({"__metadata__":"k"})", 0,
                  "expected an object for '__metadata__'"},
        BadHeader{"tensor_is_a_number", R"({"a":1})", 0, "expected an object for 'a', found 1"},
        BadHeader{"tensor_is_null", R"({"a":null})", 0, "found null"},
        BadHeader{"tensor_is_a_list", R"({"a":[]})", 0, "found an array"},
        BadHeader{"unknown_field",
                  tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1)"), 4,
                  "found 'x'"},
        BadHeader{"no_shape", tensor(R"("dtype":"F32","data_offsets":[0,4])"), 4, "found no shape"},
        BadHeader{"no_type", tensor(R"("shape":[1],"data_offsets":[0,4])"), 4, "found no dtype"},
        BadHeader{"no_offsets", tensor(R"("dtype":"F32","shape":[1])"), 4, "found no data_offsets"},
        BadHeader{"unknown_type", of_type("\"F31\""), 4,
                  "expected a known dtype for tensor 'a', found 'F31'"},
        BadHeader{"type_is_a_number", of_type("32"), 4,
                  "expected a string for 'dtype' of tensor 'a', found 32"},
        BadHeader{"type_is_a_list", of_type("[\"F32\"]"), 4, "found an array"},
        BadHeader{"shape_is_a_string", of_shape("\"1\""), 4, "found the string '1'"},
        BadHeader{"shape_with_a_string", of_shape("[\"1\"]"), 4, "found the string '1'"},
        BadHeader{"negative_dimension", of_shape("[-1]"), 4, "expected whole numbers from 0"},
        BadHeader{"fractional_dimension", of_shape("[1.0]"), 4, "found 1.0"},
        BadHeader{"exponent_dimension", of_shape("[1e0]"), 4, "found 1e0"},
        BadHeader{"dimension_beyond_64_bits", of_shape("[18446744073709551616]"), 4,
                  "found 18446744073709551616"},
        BadHeader{"nested_shape", of_shape("[[1]]"), 4, "found an array"},
        BadHeader{"too_many_dimensions", of_shape("[1,1,1,1,1,1,1,1,1]"), 4, "at most 8 numbers"},
        BadHeader{"product_wraps_to_zero", of_shape("[4294967296,4294967296]"), 4,
                  "a shape whose product is larger"},
        BadHeader{"product_wraps_to_size", of_shape("[2305843009213693953,8]"), 4,
                  "a shape whose product is larger"},
        BadHeader{"size_differs", of_shape("[2]"), 4,
                  "expected 8 bytes for tensor 'a', found 4 in its data_offsets"},
        BadHeader{"one_offset", of_offsets("[4]"), 4,
                  "expected two data_offsets for tensor 'a', found 1"},
        BadHeader{"three_offsets", of_offsets("[0,4,8]"), 4, "at most 2 numbers"},
        BadHeader{"negative_offset", of_offsets("[-4,0]"), 4, "found -4"},
        BadHeader{"end_before_begin", of_offsets("[4,0]"), 4, "in order, found 4 to 0"},
        BadHeader{"huge_offsets", of_offsets("[18446744073709551611,18446744073709551615]"), 4,
                  "to begin at byte 0"},
        BadHeader{"hole", two_tensors("[0,4]", "[5,9]"), 9,
                  "expected tensor 'b' to begin at byte 4 of the data"},
        BadHeader{"overlap", two_tensors("[0,4]", "[3,7]"), 7,
                  "expected tensor 'b' to begin at byte 4 of the data"},
        BadHeader{"data_cut", two_tensors("[0,4]", "[4,8]"), 7,
                  "expected 8 bytes of data, found 7"},
        BadHeader{"trailing_bytes", two_tensors("[0,4]", "[4,8]"), 9,
                  "expected 8 bytes of data, found 9"},
        BadHeader{"empty_name", R"({"":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4,
                  "a tensor name of 1 to 1024"},
        BadHeader{"long_name", "{\"" + std::string(1025, 'n') + "\":{}}", 0, "1025 bytes"},
        BadHeader{"deep_nesting", "{\"a\":" + std::string(100000, '['), 0, "found an array"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sidestream::checkpoint
