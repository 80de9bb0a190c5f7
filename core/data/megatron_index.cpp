#include "core/data/megatron_index.hpp"

#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/file.hpp"

namespace sidestream::data {
namespace {

using core::DataError;

constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
constexpr std::size_t kVersionAt = 9;
constexpr std::size_t kTypeAt = 17;
constexpr std::size_t kSequencesAt = 18;
constexpr std::size_t kDocumentsAt = 26;
constexpr std::size_t kHeaderBytes = 34;

// Reads little-endian numbers of a file that is known to be long enough.
class Fields {
 public:
  Fields(const std::filesystem::path& path, std::span<const std::byte> bytes)
      : path_(path), bytes_(bytes) {}

  template <typename Number>
  Number at(std::uint64_t offset) const {
    Number value{};
    std::memcpy(&value, bytes_.data() + offset, sizeof(value));
    return value;
  }
  std::uint64_t size() const noexcept { return bytes_.size(); }

  [[noreturn]] void fail(std::uint64_t offset, const std::string& expected,
                         const std::string& found) const {
    throw DataError({path_.string(), offset, expected, found});
  }

 private:
  const std::filesystem::path& path_;
  std::span<const std::byte> bytes_;
};

void check_header(const Fields& fields, std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes) {
    fields.fail(bytes.size(), "an index of Megatron-LM, with a header of 34 bytes",
                "the end of the file");
  }
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    fields.fail(0, "the magic MMIDIDX of an index of Megatron-LM", "other bytes");
  const auto version = fields.at<std::uint64_t>(kVersionAt);
  if (version != 1) fields.fail(kVersionAt, "version 1", std::to_string(version));
}

std::size_t token_bytes_of(const Fields& fields) {
  const auto type = fields.at<std::uint8_t>(kTypeAt);
  if (type == 8) return 2;
  if (type == 4) return 4;
  fields.fail(kTypeAt, "type 8 (uint16) or 4 (int32) of token ids", std::to_string(type));
}

// Where the tables are; they have to fit before anything in them is read.
struct Tables {
  std::uint64_t lengths = kHeaderBytes;
  std::uint64_t pointers = 0;
  std::uint64_t documents = 0;
};

Tables place_tables(const Fields& fields, const MegatronIndex& index) {
  const std::uint64_t room = fields.size() - kHeaderBytes;
  if (index.sequences > room / 12) {
    fields.fail(kSequencesAt, "tables of 12 bytes a sequence in " + std::to_string(room) + " bytes",
                std::to_string(index.sequences) + " sequences");
  }
  if (index.documents > (room - 12 * index.sequences) / 8) {
    fields.fail(kDocumentsAt, "a table of 8 bytes a document in the rest of the file",
                std::to_string(index.documents) + " documents");
  }
  Tables tables;
  tables.pointers = tables.lengths + 4 * index.sequences;
  tables.documents = tables.pointers + 8 * index.sequences;
  const std::uint64_t end = tables.documents + 8 * index.documents;
  if (fields.size() != end && fields.size() != end + index.sequences) {  // with modes
    fields.fail(end, "the end of the file, or a mode a sequence",
                std::to_string(fields.size() - end) + " more bytes");
  }
  return tables;
}

// Ids of all sequences, which follow one another.
std::uint64_t count_tokens(const Fields& fields, const Tables& tables, const MegatronIndex& index,
                           std::uint64_t shard_bytes) {
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < index.sequences; ++i) {
    const auto length = fields.at<std::int32_t>(tables.lengths + 4 * i);
    if (length < 0) {
      fields.fail(tables.lengths + 4 * i, "a length from 0 of sequence " + std::to_string(i),
                  std::to_string(length));
    }
    const auto pointer = fields.at<std::int64_t>(tables.pointers + 8 * i);
    if (pointer < 0 || static_cast<std::uint64_t>(pointer) != at) {
      fields.fail(tables.pointers + 8 * i,
                  "sequence " + std::to_string(i) + " at byte " + std::to_string(at) +
                      " of the shard, behind the one before",
                  "byte " + std::to_string(pointer));
    }
    const std::uint64_t bytes = static_cast<std::uint64_t>(length) * index.token_bytes;
    if (bytes > shard_bytes - at) {
      fields.fail(tables.lengths + 4 * i,
                  "sequence " + std::to_string(i) + " inside a shard of " +
                      std::to_string(shard_bytes) + " bytes",
                  "its end at byte " + std::to_string(at + bytes));
    }
    at += bytes;
  }
  if (at != shard_bytes) {
    fields.fail(tables.lengths,
                "sequences that fill the shard of " + std::to_string(shard_bytes) + " bytes",
                std::to_string(at) + " bytes");
  }
  return at / index.token_bytes;
}

void check_documents(const Fields& fields, const Tables& tables, const MegatronIndex& index) {
  std::int64_t before = 0;
  for (std::uint64_t i = 0; i < index.documents; ++i) {
    const std::uint64_t offset = tables.documents + 8 * i;
    const auto first = fields.at<std::int64_t>(offset);
    if (first < before || first > static_cast<std::int64_t>(index.sequences) ||
        (i == 0 && first != 0)) {
      fields.fail(offset,
                  "document " + std::to_string(i) + " to begin at a sequence from " +
                      std::to_string(before) + " to " +
                      std::to_string(i == 0 ? 0 : index.sequences),
                  std::to_string(first));
    }
    before = first;
  }
}

}  // namespace

std::filesystem::path megatron_index_of(const std::filesystem::path& shard) {
  return std::filesystem::path(shard).replace_extension(".idx");
}

MegatronIndex read_megatron_index(const std::filesystem::path& path, std::uint64_t shard_bytes) {
  try {
    const core::MappedFile file(path);
    const Fields fields(path, file.bytes());
    check_header(fields, file.bytes());
    MegatronIndex index{.token_bytes = token_bytes_of(fields),
                        .tokens = 0,
                        .sequences = fields.at<std::uint64_t>(kSequencesAt),
                        .documents = fields.at<std::uint64_t>(kDocumentsAt)};
    const Tables tables = place_tables(fields, index);
    index.tokens = count_tokens(fields, tables, index, shard_bytes);
    check_documents(fields, tables, index);
    return index;
  } catch (const DataError&) {
    throw;
  } catch (const core::Error& error) {
    throw DataError("index of a token shard: " + std::string(error.what()));
  }
}

}  // namespace sidestream::data
