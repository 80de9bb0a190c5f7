// One self-contained HTML file: no network, any browser.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace sidestream::page {

// The document as document.hpp makes it; its "title" is the page's.
std::string html_page(const nlohmann::ordered_json& document);

}  // namespace sidestream::page
