// A SQLite database that is read and never touched: opened read-only and immutable, so that neither
// a journal nor a lock file appears beside it and its bytes stay as they are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "core/base/unique_handle.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace sidestream::trace {

struct SqliteTraits {
  using Value = sqlite3*;
  static constexpr sqlite3* null = nullptr;
  static void close(sqlite3* database) noexcept;
};

struct SqliteStatementTraits {
  using Value = sqlite3_stmt*;
  static constexpr sqlite3_stmt* null = nullptr;
  static void close(sqlite3_stmt* statement) noexcept;
};

// Rows of one query. Texts hold until the next call of next().
class SqliteRows {
 public:
  SqliteRows(sqlite3* database, std::string file, const std::string& query);

  // False at the end. Throws core::DataError for a damaged database.
  bool next();
  bool is_null(int column) const;
  bool is_number(int column) const;  // whole or not
  // Of a number that is not whole what stands before the point; of one too large the nearest.
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string_view text(int column) const;
  std::string_view bytes(int column) const;  // as they are, whatever the type

 private:
  sqlite3* database_;
  std::string file_;
  core::UniqueHandle<SqliteStatementTraits> statement_;
};

class SqliteFile {
 public:
  // Throws core::DataError for a file that is no database, or is shorter than its header says.
  explicit SqliteFile(const std::filesystem::path& path);

  std::set<std::string> tables() const;
  bool has(std::string_view table) const { return tables_.contains(std::string(table)); }
  std::set<std::string> columns(std::string_view table) const;
  // The first of these names that the table has, quoted for a query; "NULL" when it has none.
  static std::string first_of(const std::set<std::string>& columns,
                              std::initializer_list<const char*> names);
  SqliteRows query(const std::string& text) const { return {database_.get(), file_, text}; }
  const std::string& name() const noexcept { return file_; }

 private:
  std::string file_;
  core::UniqueHandle<SqliteTraits> database_;
  std::set<std::string> tables_;
};

}  // namespace sidestream::trace
