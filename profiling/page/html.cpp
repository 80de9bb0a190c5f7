#include "profiling/page/html.hpp"

#include "profiling/page/assets.hpp"
#include "profiling/report/escaped_html.hpp"

namespace sidestream::page {
namespace {

// Inside a script element the text must not look like its end: names of kernels are full of "<".
std::string json_for_script(const nlohmann::ordered_json& document) {
  const std::string text = document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string result;
  result.reserve(text.size());
  for (const char one : text) one == '<' ? result += "\\u003c" : result += one;
  return result;
}

}  // namespace

std::string html_page(const nlohmann::ordered_json& document) {
  const std::string title = report::escaped_html(document.at("title").get<std::string>());
  std::string page =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>";
  page += title + "</title>\n<style>\n";
  page += assets::style();
  page +=
      "</style>\n</head>\n<body>\n<header><h1>" + title +
      "</h1><span class=\"grow\"></span></header>\n<div class=\"frame\"><nav></nav><main></main>"
      "</div>\n<script type=\"application/json\" id=\"data\">";
  page += json_for_script(document);
  page += "</script>\n<script>\n";
  page += assets::library();
  page += "</script>\n<script>\n";
  page += assets::script();
  return page + "</script>\n</body>\n</html>\n";
}

}  // namespace sidestream::page
