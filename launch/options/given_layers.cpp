#include "launch/options/given_layers.hpp"

namespace sidestream::launch {

void GivenLayers::add(Layer layer, const std::vector<Given>& given) {
  for (const Given& value : given) {
    Held& held = values_[value.name];
    if (held.layer != layer) held = Held{layer, {}};
    held.given.push_back(value);
  }
}

Layer GivenLayers::layer_of(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? Layer::kDefaults : found->second.layer;
}

std::string GivenLayers::value_of(const std::string& name, const std::string& fallback) const {
  const auto found = values_.find(name);
  return found == values_.end() ? fallback : found->second.given.back().value;
}

void GivenLayers::set(const std::string& name, const std::string& value) {
  Held& held = values_[name];
  const std::string origin = held.given.empty() ? "--" + name : held.given.back().origin;
  held.given = {Given{name, value, origin}};
}

std::vector<Given> GivenLayers::resolved() const {
  std::vector<Given> all;
  for (const auto& [name, held] : values_)
    all.insert(all.end(), held.given.begin(), held.given.end());
  return all;
}

}  // namespace sidestream::launch
