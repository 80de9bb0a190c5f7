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
    if (!fs::is_directory(path)) return take(path, path.filename().string());
    const std::string name = own_name(path);
    std::error_code error;
    fs::recursive_directory_iterator walk(path, fs::directory_options::skip_permission_denied,
                                          error);
    for (; !error && walk != fs::recursive_directory_iterator(); walk.increment(error)) {
      std::error_code ignored;
      if (is_hidden(walk->path()) && walk->is_directory(ignored)) walk.disable_recursion_pending();
      if (!walk->is_regular_file(ignored) || !fits(walk->path(), patterns_)) continue;
      take(walk->path(), name + "/" + walk->path().lexically_relative(path).generic_string());
    }
    if (error) throw DataError("cannot walk " + path.string() + ": " + error.message());
  }

  std::vector<CorpusFile> sorted() && {
    std::sort(files_.begin(), files_.end(), [](const CorpusFile& a, const CorpusFile& b) {
      return std::tie(a.name, a.path) < std::tie(b.name, b.path);
    });
    return std::move(files_);
  }

 private:
  void take(const fs::path& path, std::string name) {
    std::error_code error;
    const std::uintmax_t bytes = fs::file_size(path, error);
    if (!seen_.insert(fs::weakly_canonical(path).string()).second) return;
    files_.push_back({path, std::move(name), error ? 0 : static_cast<std::uint64_t>(bytes)});
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
