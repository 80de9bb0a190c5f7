#include "launch/recording/nvml_index.hpp"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace sidestream::launch {

int nvml_index(std::optional<int> cuda_index) {
  if (!cuda_index) return -1;
  const char* const variable = std::getenv("CUDA_VISIBLE_DEVICES");
  if (variable == nullptr) return *cuda_index;
  std::string_view list = variable;
  for (int place = 0; !list.empty(); ++place) {
    const std::string_view word = list.substr(0, list.find(','));
    list.remove_prefix(std::min(word.size() + 1, list.size()));
    int index = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
    if (error != std::errc() || end != word.data() + word.size()) return -1;
    if (place == *cuda_index) return index;
  }
  return -1;
}

}  // namespace sidestream::launch
