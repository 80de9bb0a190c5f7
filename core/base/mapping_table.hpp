// Which files are mapped where in this process: for whoever has only an address, as the handler of
// a signal has.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>

namespace sidestream::core {

// The file behind an address; an empty name: none that is known.
struct MappedPlace {
  std::array<char, 512> file{};  // with a terminating zero; of a longer name the end
  std::size_t offset_bytes = 0;
};

// Thread-safe. Past 1024 mappings at a time more are not known.
void note_mapping(const std::byte* begin, std::size_t bytes,
                  const std::filesystem::path& file) noexcept;
void forget_mapping(const std::byte* begin) noexcept;

// Async-signal-safe.
MappedPlace find_mapping(const void* address) noexcept;

}  // namespace sidestream::core
