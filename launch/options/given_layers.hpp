// Values from several places, lowest first: config file, --baseline, command line. The highest one
// wins.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/options/flag.hpp"

namespace sidestream::launch {

enum class Layer { kDefaults, kFile, kBaseline, kCommandLine };

class GivenLayers {
 public:
  // Layers are added from the lowest to the highest.
  void add(Layer layer, const std::vector<Given>& given);

  // Forgets what lower layers said about a name.
  void erase(const std::string& name) { values_.erase(name); }

  // Where the value that holds comes from.
  Layer layer_of(const std::string& name) const;

  // The value that holds, or `fallback` when nobody gave one.
  std::string value_of(const std::string& name, const std::string& fallback) const;

  // Replaces the value, keeping its origin in messages.
  void set(const std::string& name, const std::string& value);

  std::vector<Given> resolved() const;

 private:
  struct Held {
    Layer layer = Layer::kDefaults;
    std::vector<Given> given;  // more than one for a flag that may be repeated
  };
  std::map<std::string, Held> values_;
};

}  // namespace sidestream::launch
