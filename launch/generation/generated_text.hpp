// What a model makes up, on its way to who reads it.
#pragma once

#include <string>
#include <string_view>

namespace sidestream::launch {

enum class Reader { kTerminal, kFile };

// Bytes of a model may be escape sequences: on a terminal '?' stands for control characters, and
// carriage returns are left out. A file gets all bytes as they are.
class GeneratedText {
 public:
  explicit GeneratedText(Reader reader) : reader_(reader) {}

  // What is to be written for the bytes that come next.
  std::string next(std::string_view bytes);

 private:
  Reader reader_;
  std::string held_;  // may be the first byte of a control character above DEL
};

}  // namespace sidestream::launch
