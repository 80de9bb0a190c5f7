#include "profiling/trace/kineto_stream.hpp"

#include "profiling/trace/byte_source.hpp"
#include "profiling/trace/json_window.hpp"

namespace sidestream::trace {
namespace {

std::string shown(char found) {
  return found == 0 ? std::string("the end of the file") : "'" + std::string(1, found) + "'";
}

void visit_value(JsonWindow& window, const KinetoVisitor& visitor) {
  const bool object = window.peek() == '{';
  const JsonValue value = window.take_value();
  if (value.too_large) return visitor.skipped("event above 16 MB");
  if (value.too_deep) return visitor.skipped("event nested too deeply");
  if (!object) return visitor.skipped("no object");
  visitor.event(value.text);
}

enum class EventArray { kMember, kWholeFile };

// Behind the '['. An array without its ']' is fine in the Chrome format when it is the whole file.
void visit_events(JsonWindow& window, const KinetoVisitor& visitor, EventArray array) {
  for (bool first = true;; first = false) {
    char next = window.peek();
    if (next == ']') return window.pass();
    if (next == ',') {
      if (first) window.fail("an event", "','");
      window.pass();
      next = window.peek();
      if (next == ']') return window.pass();
    } else if (!first && next != 0) {
      window.fail("',' or ']' after an event", shown(next));
    }
    if (next == 0) {
      if (array == EventArray::kWholeFile) return;
      window.fail("more of traceEvents", "the end of the file");
    }
    if (next == '}' || next == ':' || next == ',') window.fail("an event", shown(next));
    visit_value(window, visitor);
  }
}

// True: it was traceEvents.
bool visit_member(JsonWindow& window, const KinetoVisitor& visitor) {
  if (window.peek() != '"') window.fail("a key", shown(window.peek()));
  std::string key(window.take_value().text);
  key = key.size() < 2 ? "" : key.substr(1, key.size() - 2);
  if (window.peek() != ':') window.fail("':' after a key", shown(window.peek()));
  window.pass();
  const char next = window.peek();
  if (key == "traceEvents" && next == '[') {
    window.pass();
    visit_events(window, visitor, EventArray::kMember);
    return true;
  }
  if (key == "traceEvents" && next != 0)
    window.fail("traceEvents as a list of events", shown(next));
  if (next == 0 || next == ',' || next == '}' || next == ']') window.fail("a value", shown(next));
  const JsonValue value = window.take_value();
  if (!value.text.empty()) visitor.metadata(key, value.text);
  return false;
}

constexpr const char* kNoEvents =
    "the end of the object: no trace of PyTorch's profiler, or one without events";

}  // namespace

void visit_kineto(const std::filesystem::path& path, const KinetoVisitor& visitor) {
  const std::unique_ptr<ByteSource> source = open_byte_source(path);
  JsonWindow window(*source, path.string());
  const char first = window.peek();
  if (first == '[') {
    window.pass();
    return visit_events(window, visitor, EventArray::kWholeFile);
  }
  if (first != '{') window.fail("a JSON object with traceEvents", shown(first));
  window.pass();
  if (window.peek() == '}') window.fail("traceEvents", kNoEvents);
  for (bool events = false;;) {
    events = visit_member(window, visitor) || events;
    const char next = window.peek();
    if (next == '}') {
      if (!events) window.fail("traceEvents", kNoEvents);
      window.pass();
      // Asking for more is also what finds a gzip file without its end.
      if (window.peek() != 0) visitor.skipped("something behind the end of the trace");
      return;
    }
    if (next != ',') window.fail("',' or '}'", shown(next));
    window.pass();
  }
}

}  // namespace sidestream::trace
