#include "core/data/gpt2_splitter.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <string>

#include "core/base/error.hpp"

namespace sidestream::data {
namespace {

#define SIDESTREAM_WHITE_SPACE \
  R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})"

constexpr const char* kPattern =
    R"('(?:[stmd]|re|ve|ll)| ?\p{L}++| ?\p{N}++| ?[^)" SIDESTREAM_WHITE_SPACE
    R"(\p{L}\p{N}]++|[)" SIDESTREAM_WHITE_SPACE R"(]+(?![^)" SIDESTREAM_WHITE_SPACE
    R"(])|[)" SIDESTREAM_WHITE_SPACE R"(]++)";

std::string text_of(int error_number) {
  char buffer[256];
  pcre2_get_error_message(error_number, reinterpret_cast<PCRE2_UCHAR*>(buffer), sizeof(buffer));
  return buffer;
}

}  // namespace

struct Gpt2Pattern::Code {
  pcre2_code* code = nullptr;

  Code() {
    int error_number = 0;
    PCRE2_SIZE offset = 0;
    code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(kPattern), PCRE2_ZERO_TERMINATED,
                         PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &error_number, &offset, nullptr);
    if (code == nullptr) {
      throw core::Error("PCRE2 cannot compile GPT-2's pattern at " + std::to_string(offset) + ": " +
                        text_of(error_number));
    }
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without it matching is slower, not different
  }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { pcre2_code_free(code); }
};

struct Gpt2Splitter::State {
  const pcre2_code* code;
  pcre2_match_data* data;

  explicit State(const pcre2_code* compiled)
      : code(compiled), data(pcre2_match_data_create(1, nullptr)) {
    if (data == nullptr) throw core::MemoryError("PCRE2 has no memory for match data");
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { pcre2_match_data_free(data); }
};

Gpt2Pattern::Gpt2Pattern() : code_(std::make_unique<Code>()) {}
Gpt2Pattern::~Gpt2Pattern() = default;

Gpt2Splitter::Gpt2Splitter(const Gpt2Pattern& pattern)
    : state_(std::make_unique<State>(pattern.code_->code)) {}
Gpt2Splitter::~Gpt2Splitter() = default;

std::size_t Gpt2Splitter::word_end(std::string_view text, std::size_t start) {
  const int found = pcre2_match(state_->code, reinterpret_cast<PCRE2_SPTR>(text.data()),
                                text.size(), start, PCRE2_NO_UTF_CHECK, state_->data, nullptr);
  if (found < 0)
    throw core::Error("GPT-2's pattern at byte " + std::to_string(start) + ": " + text_of(found));
  return pcre2_get_ovector_pointer(state_->data)[1];
}

}  // namespace sidestream::data
