// GPT-2's pattern: cuts a text into the words inside which BPE merges.
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// PCRE2, compiled just in time; \s is written out because PCRE2's own has U+180E, which is no white
// space any more.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

namespace sidestream::data {

// The compiled pattern, shared by threads.
class Gpt2Pattern {
 public:
  // Throws Error when PCRE2 was built without Unicode.
  Gpt2Pattern();
  Gpt2Pattern(const Gpt2Pattern&) = delete;
  Gpt2Pattern& operator=(const Gpt2Pattern&) = delete;
  ~Gpt2Pattern();

 private:
  friend class Gpt2Splitter;
  struct Code;
  std::unique_ptr<Code> code_;
};

// One thread's state of matching. The pattern must outlive it.
class Gpt2Splitter {
 public:
  explicit Gpt2Splitter(const Gpt2Pattern& pattern);
  Gpt2Splitter(const Gpt2Splitter&) = delete;
  Gpt2Splitter& operator=(const Gpt2Splitter&) = delete;
  ~Gpt2Splitter();

  // End of the word that starts at `start` < text.size(). The text must be UTF-8.
  std::size_t word_end(std::string_view text, std::size_t start);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sidestream::data
