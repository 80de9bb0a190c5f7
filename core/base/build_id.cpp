#include "core/base/build_id.hpp"

#include <elf.h>
#include <link.h>

#include <cstring>
#include <filesystem>
#include <string_view>

namespace sidestream::core {
namespace {

std::size_t padded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

// The build id among the notes of a segment; empty when it is not there.
std::string build_id_in(const char* notes, std::size_t bytes) {
  std::size_t at = 0;
  while (at + sizeof(ElfW(Nhdr)) <= bytes) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes + at, sizeof(note));
    const std::size_t name = at + sizeof(note), content = name + padded(note.n_namesz);
    at = content + padded(note.n_descsz);
    if (at > bytes) break;
    const bool is_gnu = note.n_namesz == 4 && std::memcmp(notes + name, "GNU", 4) == 0;
    if (!is_gnu || note.n_type != NT_GNU_BUILD_ID) continue;
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string digits;
    for (std::size_t i = 0; i < note.n_descsz; ++i) {
      const auto byte = static_cast<unsigned char>(notes[content + i]);
      digits += {kDigits[byte >> 4], kDigits[byte & 15]};
    }
    return digits;
  }
  return "";
}

// The first object is the program itself: 1 ends the walk.
int look_at_program(dl_phdr_info* object, std::size_t, void* result) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* notes = reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr);
    const std::string found = build_id_in(notes, segment.p_memsz);
    if (!found.empty()) *static_cast<std::string*>(result) = found;
  }
  return 1;
}

}  // namespace

std::string build_id() {
  std::string found;
  dl_iterate_phdr(look_at_program, &found);
  return found;
}

std::string program_identity() {
  std::string id = build_id();
  if (!id.empty()) return id;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  const auto written = std::filesystem::last_write_time(program).time_since_epoch();
  return std::to_string(std::filesystem::file_size(program)) + " bytes, " +
         std::to_string(written.count());
}

}  // namespace sidestream::core
