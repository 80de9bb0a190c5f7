#include "core/checkpoint/safetensors_writer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/digest.hpp"
#include "core/checkpoint/safetensors_reader.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/core/checkpoint/samples.hpp"

namespace sidestream::checkpoint {
namespace {

using core::DType;
using testing::HasSubstr;

class SafetensorsWriterTest : public testing::Test {
 protected:
  std::string error_of(const std::vector<TensorSource>& tensors) const {
    return checkpoint_error_of([&] { write_safetensors(path_, tensors); });
  }

  core::ScratchFolder folder_;
  std::filesystem::path path_ = folder_ / "a.safetensors";
  std::string data_ = "0123456789abcdef";
};

TEST_F(SafetensorsWriterTest, reader_returns_names_types_shapes_and_bytes) {
  const std::vector<TensorSource> tensors{
      {.name = "bytes", .dtype = DType::kUInt8, .shape = {3}, .bytes = bytes_of(data_).first(3)},
      {.name = "matrix", .dtype = DType::kFloat32, .shape = {2, 2}, .bytes = bytes_of(data_)},
      {.name = "scalar", .dtype = DType::kInt64, .shape = {}, .bytes = bytes_of(data_).first(8)},
      {.name = "nothing", .dtype = DType::kBFloat16, .shape = {5, 0}, .bytes = {}}};

  const FileDigest digest = write_safetensors(path_, tensors, {{"format", "pt"}});
  const SafetensorsReader reader(path_);

  ASSERT_EQ(reader.size(), tensors.size());
  EXPECT_EQ(reader.metadata().at("format"), "pt");
  for (const TensorSource& tensor : tensors) {
    const TensorView view = reader.at(tensor.name);
    EXPECT_EQ(view.dtype(), tensor.dtype);
    EXPECT_EQ(std::vector(view.shape.begin(), view.shape.end()), tensor.shape);
    EXPECT_TRUE(
        std::equal(view.bytes.begin(), view.bytes.end(), tensor.bytes.begin(), tensor.bytes.end()));
    const auto address = reinterpret_cast<std::uintptr_t>(view.bytes.data());
    EXPECT_EQ(address % core::size_of(tensor.dtype), 0u) << tensor.name << " is misaligned";
  }
  EXPECT_EQ(digest.name, "a.safetensors");
  EXPECT_EQ(digest.bytes, std::filesystem::file_size(path_));
  EXPECT_EQ(digest.sha256, core::sha256_hex_of_file(path_));
}

TEST_F(SafetensorsWriterTest, data_section_begins_at_a_multiple_of_eight) {
  for (std::size_t length = 1; length <= 9; ++length) {
    const std::filesystem::path path = folder_ / std::to_string(length);
    write_safetensors(path, std::vector<TensorSource>{{.name = std::string(length, 'n'),
                                                       .dtype = DType::kUInt8,
                                                       .shape = {1},
                                                       .bytes = bytes_of(data_).first(1)}});
    EXPECT_EQ((std::filesystem::file_size(path) - 1) % 8, 0u);
  }
}

TEST_F(SafetensorsWriterTest, names_with_quotes_and_other_scripts_are_read_back) {
  const std::string name = "a\"b\\c\n \xC3\xA9 \xE6\x97\xA5";
  write_safetensors(
      path_,
      std::vector<TensorSource>{
          {.name = name, .dtype = DType::kUInt8, .shape = {1}, .bytes = bytes_of(data_).first(1)}});

  EXPECT_TRUE(SafetensorsReader(path_).contains(name));
}

TEST_F(SafetensorsWriterTest, existing_file_is_never_overwritten) {
  core::write_file_atomically(path_, "keep me");

  EXPECT_THAT(error_of({}), HasSubstr("File exists"));
  EXPECT_EQ(core::read_file(path_), "keep me");
}

TEST_F(SafetensorsWriterTest, unusable_tensors_throw_and_leave_no_file) {
  const TensorSource good{
      .name = "a", .dtype = DType::kUInt8, .shape = {2}, .bytes = bytes_of(data_).first(2)};
  const auto with = [&](auto change) {
    TensorSource tensor = good;
    change(tensor);
    return error_of({tensor});
  };

  EXPECT_THAT(error_of({good, good}), HasSubstr("two tensors are named 'a'"));
  EXPECT_THAT(with([](auto& t) { t.name = ""; }), HasSubstr("usable name"));
  EXPECT_THAT(with([](auto& t) { t.name = "__metadata__"; }), HasSubstr("usable name"));
  EXPECT_THAT(with([](auto& t) { t.name = "\xFF"; }), HasSubstr("not UTF-8"));
  EXPECT_THAT(with([](auto& t) { t.shape = {3}; }),
              HasSubstr("expected 3 bytes for its shape and type, found 2"));
  EXPECT_THAT(with([](auto& t) { t.shape = {1ull << 63, 4}; }), HasSubstr("found 2"));
  EXPECT_THAT(with([](auto& t) { t.shape = {1, 1, 1, 1, 1, 1, 1, 1, 2}; }),
              HasSubstr("9 dimensions"));
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(SafetensorsWriterTest, reader_names_absent_tensor_and_unused_type) {
  core::write_file_atomically(
      path_, file_with_header(R"({"mask":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})", 1));
  const SafetensorsReader reader(path_);

  EXPECT_THAT(checkpoint_error_of([&] { reader.at("weights"); }),
              HasSubstr("expected a tensor named 'weights'"));
  EXPECT_THAT(checkpoint_error_of([&] { reader.at("mask").dtype(); }), HasSubstr("found BOOL"));
  EXPECT_EQ(reader.at("mask").bytes.size(), 1u);
}

TEST_F(SafetensorsWriterTest, reader_of_an_absent_file_or_a_folder_throws) {
  EXPECT_THAT(checkpoint_error_of([&] { SafetensorsReader reader(folder_ / "absent"); }),
              HasSubstr("No such file"));
  EXPECT_THAT(checkpoint_error_of([&] { SafetensorsReader reader(folder_.path()); }),
              HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace sidestream::checkpoint
