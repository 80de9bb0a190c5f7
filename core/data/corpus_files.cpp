#include "core/data/corpus_files.hpp"

#include <fnmatch.h>
#include <glob.h>

#include <algorithm>
#include <set>
#include <system_error>
#include <tuple>

#include "core/base/error.hpp"

namespace sidestream::data {
namespace {

namespace fs = std::filesystem;
using core::DataError;

std::vector<fs::path> expand(const std::string& input) {
  std::error_code ignored;
  if (fs::exists(input, ignored)) return {input};
  glob_t found{};
  const int result = ::glob(input.c_str(), 0, nullptr, &found);
  std::vector<fs::path> paths;
  for (std::size_t i = 0; result == 0 && i < found.gl_pathc; ++i)
    paths.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  if (paths.empty())
    throw DataError("input " + input +
                    ": expected a file, a folder or a glob that fits, found nothing");
  return paths;
}

bool fits(const fs::path& path, const std::vector<std::string>& patterns) {
  const std::string name = path.filename().string();
  return patterns.empty() ||
         std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
           return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
         });
}

// The last real component: of "a/b/" it is b, of "." the folder's own name.
std::string own_name(const fs::path& folder) {
  const fs::path whole = fs::weakly_canonical(folder);
  return whole.filename().string();
}

// What tools keep for themselves, as .git does: not what a user means by a folder of texts.
bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

class Finder {
 public:
  explicit Finder(const std::vector<std::string>& patterns) : patterns_(patterns) {}

  void add(const fs::path& path) {
    if (fs::is_directory(path))
      walk(path, own_name(path));
    else
      take(path, path.filename().string());
  }

  std::vector<CorpusFile> sorted() && {
    std::sort(files_.begin(), files_.end(), [](const CorpusFile& a, const CorpusFile& b) {
      return std::tie(a.name, a.path) < std::tie(b.name, b.path);
    });
    return std::move(files_);
  }

 private:
  // A folder that cannot be read is told like a file that cannot; the others count all the same.
  void walk(const fs::path& folder, const std::string& name) {
    std::error_code error;
    fs::directory_iterator entry(folder, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
      const fs::path& path = entry->path();
      const std::string inner = name + "/" + path.filename().string();
      std::error_code ignored;
      if (entry->is_directory(ignored)) {
        if (!is_hidden(path) && !entry->is_symlink(ignored)) walk(path, inner);
      } else if (entry->is_regular_file(ignored) && fits(path, patterns_)) {
        take(path, inner);
      } else if (entry->is_symlink(ignored) && !fs::exists(path, ignored) &&
                 fits(path, patterns_)) {
        files_.push_back({.path = path, .name = inner, .fault = "a link to nothing"});
      }
    }
    if (error)
      files_.push_back({.path = folder,
                        .name = name + "/",
                        .fault = "cannot read this folder: " + error.message()});
  }

  void take(const fs::path& path, std::string name) {
    std::error_code error;
    const std::uintmax_t bytes = fs::file_size(path, error);
    if (!seen_.insert(fs::weakly_canonical(path).string()).second) return;
    files_.push_back({.path = path,
                      .name = std::move(name),
                      .bytes = error ? 0 : static_cast<std::uint64_t>(bytes)});
  }

  const std::vector<std::string>& patterns_;
  std::vector<CorpusFile> files_;
  std::set<std::string> seen_;
};

}  // namespace

std::vector<CorpusFile> find_corpus_files(const std::vector<std::string>& inputs,
                                          const std::vector<std::string>& patterns) {
  Finder finder(patterns);
  for (const std::string& input : inputs) {
    for (const fs::path& path : expand(input)) finder.add(path);
  }
  auto files = std::move(finder).sorted();
  if (files.empty())
    throw DataError("no file to prepare: the inputs hold none that fits the include patterns");
  return files;
}

}  // namespace sidestream::data
