// What the build embeds: the page's own style and script, and Chart.js.
#pragma once

#include <string_view>

namespace sidestream::page::assets {

std::string_view style();
std::string_view library();
std::string_view script();

}  // namespace sidestream::page::assets
