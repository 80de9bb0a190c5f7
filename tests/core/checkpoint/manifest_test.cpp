#include "core/checkpoint/manifest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/digest.hpp"
#include "core/checkpoint/newer_format_error.hpp"
#include "tests/core/checkpoint/samples.hpp"

namespace sidestream::checkpoint {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Manifest sample() {
  Manifest manifest{.step = 100, .world_size = 2};
  manifest.files = {
      {.name = "model.safetensors", .bytes = 1ull << 40, .sha256 = std::string(64, 'a')}};
  manifest.model = {{"layers", 12}};
  manifest.training = {{"loss", 0.1}, {"seed", 1337u}, {"nested", {{"list", {1, 2.5, "x"}}}}};
  return manifest;
}

// A manifest with changed content and a hash that fits.
std::string changed(const std::function<void(json&)>& change) {
  json document = json::parse(manifest_text(sample()));
  document.erase("sha256");
  change(document);
  document["sha256"] = core::sha256_hex(document.dump());
  return document.dump();
}

std::string error_of(const std::string& text) {
  return checkpoint_error_of([&] { parse_manifest(text, "manifest.json"); });
}

TEST(ManifestTest, text_is_read_back) {
  const Manifest manifest = parse_manifest(manifest_text(sample()), "manifest.json");

  EXPECT_EQ(manifest.step, 100);
  EXPECT_EQ(manifest.world_size, 2);
  EXPECT_EQ(manifest.files, sample().files);
  EXPECT_EQ(manifest.model, sample().model);
  EXPECT_EQ(manifest.training, sample().training);
}

TEST(ManifestTest, any_flipped_bit_is_found_or_changes_nothing) {
  const std::string text = manifest_text(sample());
  const json original = json::parse(text);
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      // White space may become other white space.
      const bool accepted = error_of(damaged).empty();
      ASSERT_TRUE(!accepted || json::parse(damaged) == original) << at << ' ' << bit;
    }
  }
}

TEST(ManifestTest, every_truncation_is_refused) {
  const std::string text = manifest_text(sample());
  for (std::size_t length = 0; length + 1 < text.size(); ++length) {
    ASSERT_NE(error_of(text.substr(0, length)), "") << length;
  }
}

TEST(ManifestTest, newer_version_is_an_error_of_its_own) {
  const std::string newer = changed([](json& document) { document["format_version"] = 2; });

  EXPECT_THROW(parse_manifest(newer, "manifest.json"), NewerFormatError);
  EXPECT_THAT(error_of(newer),
              HasSubstr("expected format_version 1 or older, found 2; a newer version wrote"));
}

TEST(ManifestTest, names_that_leave_the_folder_are_refused) {
  for (const std::string name : {"../model.safetensors", "/etc/passwd", "a/b", "..", ".", "",
                                 ".hidden", "a\\b", "manifest.json"}) {
    EXPECT_THAT(error_of(changed([&](json& document) { document["files"][0]["name"] = name; })),
                HasSubstr("expected a plain file name"))
        << name;
  }
  EXPECT_THAT(error_of(changed([](json& d) { d["files"][0]["name"] = std::string("a\0b", 3); })),
              HasSubstr("plain"));
}

TEST(ManifestTest, wrong_content_with_a_fitting_hash_is_refused) {
  EXPECT_THAT(error_of(changed([](json& d) { d.erase("step"); })),
              HasSubstr("expected step, world_size"));
  EXPECT_THAT(error_of(changed([](json& d) { d["step"] = "x"; })),
              HasSubstr("from 0 to 9223372036854775807 as step, found \"x\""));
  EXPECT_THAT(error_of(changed([](json& d) { d["step"] = -1; })), HasSubstr("as step, found -1"));
  EXPECT_THAT(error_of(changed([](json& d) { d["step"] = 4.7; })), HasSubstr("as step, found 4.7"));
  EXPECT_THAT(error_of(changed([](json& d) { d["step"] = 1e300; })), HasSubstr("as step"));
  EXPECT_THAT(error_of(changed([](json& d) { d["world_size"] = 4294967297; })),
              HasSubstr("from 0 to 2147483647 as world_size, found 4294967297"));
  EXPECT_THAT(error_of(changed([](json& d) { d["world_size"] = 0; })),
              HasSubstr("a world_size from 1"));
  EXPECT_THAT(error_of(changed([](json& d) { d["format"] = "x"; })), HasSubstr("another document"));
  EXPECT_THAT(error_of(changed([](json& d) { d["format_version"] = 0; })),
              HasSubstr("format_version from 1"));
  EXPECT_THAT(error_of(changed([](json& d) { d["files"] = 1; })),
              HasSubstr("list of at most 65536 files"));
  EXPECT_THAT(error_of(changed([](json& d) { d["files"][0]["bytes"] = -1; })),
              HasSubstr("a file size from 0"));
  EXPECT_THAT(error_of(changed([](json& d) { d["files"][0]["bytes"] = 1ull << 51; })),
              HasSubstr("in all files"));
  EXPECT_THAT(error_of(changed([](json& d) { d["files"][0]["sha256"] = "ab"; })),
              HasSubstr("64 hexadecimal"));
  EXPECT_THAT(error_of(changed([](json& d) { d["files"].push_back(d["files"][0]); })),
              HasSubstr("twice"));
}

TEST(ManifestTest, deep_nesting_is_refused) {
  EXPECT_THAT(error_of("{\"a\":" + std::string(1'000'000, '[')), HasSubstr("nested levels"));
}

TEST(ManifestTest, digests_survive_the_exchange_as_text) {
  const auto files = sample().files;

  EXPECT_EQ(digests_from_text(digests_to_text(files)), files);
  EXPECT_THROW(digests_from_text("[{}]"), core::CheckpointError);
  EXPECT_THROW(digests_from_text(""), core::CheckpointError);
}

}  // namespace
}  // namespace sidestream::checkpoint
