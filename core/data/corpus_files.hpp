// The files of a corpus, in an order that does not depend on the file system.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sidestream::data {

struct CorpusFile {
  std::filesystem::path path;
  std::string name;  // relative to the folder that was given, with that folder's own name in front
  std::uint64_t bytes = 0;
  std::string fault = {};  // why nothing of it can be read: a folder that cannot be opened
};

// Files, folders (walked, but for hidden ones; links to folders are not followed) and globs. Inside
// folders a file is taken when its name fits one of the patterns (*.hpp), or when there are none.
// Sorted by name; a file that is met twice is taken once. Throws DataError for an input that names
// nothing, and when no file is left.
std::vector<CorpusFile> find_corpus_files(const std::vector<std::string>& inputs,
                                          const std::vector<std::string>& patterns);

}  // namespace sidestream::data
