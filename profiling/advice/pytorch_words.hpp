// The advice in the words of those whose trace is not Sidestream's: what to change in a program of
// their own, in PyTorch's terms, instead of a flag that they do not have.
#pragma once

#include <string_view>

namespace sidestream::advice {

struct PyTorchWords {
  const char* rule;
  const char* fix;
  const char* false_if = nullptr;  // null: the rule's own
  const char* check = nullptr;
};

// Nothing for an id of no rule.
const PyTorchWords* pytorch_words(std::string_view rule);

}  // namespace sidestream::advice
