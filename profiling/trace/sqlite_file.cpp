#include "profiling/trace/sqlite_file.hpp"

#include <sqlite3.h>

#include <array>
#include <cstdio>
#include <fstream>

#include "core/base/error.hpp"

namespace sidestream::trace {
namespace {

[[noreturn]] void fail(sqlite3* database, const std::string& file) {
  const char* text = database == nullptr ? "out of memory" : sqlite3_errmsg(database);
  throw core::DataError(core::FileFault{file, std::nullopt, "a readable SQLite database",
                                        std::string("'") + text + "'"});
}

constexpr std::size_t kHeaderBytes = 100;

std::uint32_t big_endian(const unsigned char* bytes, int count) {
  std::uint32_t value = 0;
  for (int i = 0; i < count; ++i) value = value << 8 | bytes[i];
  return value;
}

// https://www.sqlite.org/fileformat.html, 1.3: a file that was cut is read without an error until a
// page is missed, and most queries miss none. The count of pages is of this version of the file
// where the number it is valid for is that of the last change; programs before 3.7 leave it as it
// was. Pages of a journal beside the file do not count: it is read as if there were none.
void check_is_whole(const std::filesystem::path& path, const std::string& file) {
  std::array<unsigned char, kHeaderBytes> header = {};
  std::ifstream stream(path, std::ios::binary);
  if (!stream.read(reinterpret_cast<char*>(header.data()), header.size())) return;
  const std::uint32_t change = big_endian(&header[24], 4), pages = big_endian(&header[28], 4);
  if (pages == 0 || change != big_endian(&header[92], 4)) return;
  const std::uint32_t stored_size = big_endian(&header[16], 2);
  const std::uint64_t page_bytes = stored_size == 1 ? 65536 : stored_size;
  const std::uint64_t expected = pages * page_bytes, found = std::filesystem::file_size(path);
  if (found >= expected) return;
  throw core::DataError(core::FileFault{file, found,
                                        std::to_string(expected) + " bytes, as the header has " +
                                            std::to_string(pages) + " pages of " +
                                            std::to_string(page_bytes),
                                        "the end of the file"});
}

// https://www.sqlite.org/uri.html: everything but plain letters is escaped.
std::string uri_of(const std::filesystem::path& path) {
  std::string uri = "file:";
  for (const char one : std::filesystem::absolute(path).string()) {
    const bool plain = (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z') ||
                       (one >= '0' && one <= '9') || one == '/' || one == '.' || one == '_' ||
                       one == '-';
    char escaped[4] = {};
    std::snprintf(escaped, sizeof escaped, "%%%02X", static_cast<unsigned char>(one));
    uri += plain ? std::string(1, one) : std::string(escaped);
  }
  return uri + "?mode=ro&immutable=1";
}

}  // namespace

void SqliteTraits::close(sqlite3* database) noexcept { sqlite3_close(database); }
void SqliteStatementTraits::close(sqlite3_stmt* statement) noexcept { sqlite3_finalize(statement); }

SqliteRows::SqliteRows(sqlite3* database, std::string file, const std::string& query)
    : database_(database), file_(std::move(file)) {
  sqlite3_stmt* statement = nullptr;
  const int result = sqlite3_prepare_v2(database, query.c_str(), -1, &statement, nullptr);
  statement_.reset(statement);
  if (result != SQLITE_OK) fail(database, file_);
}

bool SqliteRows::next() {
  const int result = sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) return true;
  if (result != SQLITE_DONE) fail(database_, file_);
  return false;
}

bool SqliteRows::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

bool SqliteRows::is_number(int column) const {
  const int type = sqlite3_column_type(statement_.get(), column);
  return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

std::int64_t SqliteRows::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double SqliteRows::real(int column) const {
  return sqlite3_column_double(statement_.get(), column);
}

std::string_view SqliteRows::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (text == nullptr) return "";
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

std::string_view SqliteRows::bytes(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  if (bytes == nullptr) return "";
  return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

SqliteFile::SqliteFile(const std::filesystem::path& path) : file_(path.string()) {
  check_is_whole(path, file_);
  sqlite3* database = nullptr;
  const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
  const int result = sqlite3_open_v2(uri_of(path).c_str(), &database, flags, nullptr);
  database_.reset(database);
  if (result != SQLITE_OK) fail(database, file_);
  // An export has no views; one of another program may never end.
  SqliteRows rows = query("SELECT name FROM sqlite_master WHERE type = 'table'");
  while (rows.next()) tables_.insert(std::string(rows.text(0)));
}

std::set<std::string> SqliteFile::tables() const { return tables_; }

std::set<std::string> SqliteFile::columns(std::string_view table) const {
  std::set<std::string> names;
  SqliteRows rows = query("PRAGMA table_info(\"" + std::string(table) + "\")");
  while (rows.next()) names.insert(std::string(rows.text(1)));
  return names;
}

std::string SqliteFile::first_of(const std::set<std::string>& columns,
                                 std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (columns.contains(name)) return "\"" + std::string(name) + "\"";
  }
  return "NULL";
}

}  // namespace sidestream::trace
