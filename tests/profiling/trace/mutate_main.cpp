// Drives a fuzz target without libFuzzer: COUNT SEED FOLDER, each input one of the folder's files
// with a few bytes changed, cut, repeated or swapped. The same seed gives the same inputs.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  void change(Bytes& bytes) {
    if (bytes.empty()) return;
    const std::size_t at = below(bytes.size());
    switch (below(5)) {
      case 0:
        bytes[at] = static_cast<std::uint8_t>(random_());
        break;
      case 1:
        bytes[at] = static_cast<std::uint8_t>("{}[]\",:\\0-e."[below(12)]);
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                     bytes.begin() + static_cast<std::ptrdiff_t>(at),
                     bytes.begin() + static_cast<std::ptrdiff_t>(at + below(bytes.size() - at)));
        break;
      default:
        std::swap(bytes[at], bytes[below(bytes.size())]);
    }
  }

 private:
  std::mt19937_64 random_;
};

std::vector<Bytes> read_folder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> corpus;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::vector<Bytes> corpus = read_folder(argv[3]);
  if (corpus.empty()) return 2;
  const auto count = std::strtoull(argv[1], nullptr, 10);
  Mutator mutator(std::strtoull(argv[2], nullptr, 10));
  for (std::uint64_t i = 0; i < count; ++i) {
    Bytes input = corpus[mutator.below(corpus.size())];
    for (std::size_t changes = 1 + mutator.below(8); changes > 0; --changes) mutator.change(input);
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%llu inputs\n", static_cast<unsigned long long>(count));
  return 0;
}
