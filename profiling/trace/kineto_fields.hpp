// One event of a Kineto trace, taken apart: every field as the text that stands in the file.
//
// The order of keys does not matter. Fields that no reader uses are
// passed over. Format: libkineto's output_json.cpp (which keys an
// event has) and the Chrome trace format (what ph, ts, dur mean).
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

namespace sidestream::trace {

// Numbers, words without escapes, and arrays as raw text; names with escapes resolved.
struct KinetoFields {
  std::string_view phase, category, name, time, duration, process, thread, id;
  bool has_arguments = false;

  // args of device work
  std::string_view stream, device, correlation, bytes, grid, block, registers, shared_memory,
      occupancy, blocks_per_sm;
  // args of operators and host ranges
  std::string_view external_id, sequence, dimensions, types, values, stack, module;
  // true: a range that had not ended when the recording did
  std::string_view open;
  // args of collectives: c10d's, then ours
  std::string_view collective, elements_in, elements_out, group_size, dtype, group_name,
      group_ranks, collective_sequence, bucket, payload_bytes;
  // args of allocations
  std::string_view address, memory_bytes, allocated, reserved, device_id, device_type;
  // args of metadata: {"name": "..."}
  std::string_view label;
};

class KinetoDecoder {
 public:
  KinetoDecoder();
  ~KinetoDecoder();
  KinetoDecoder(const KinetoDecoder&) = delete;
  KinetoDecoder& operator=(const KinetoDecoder&) = delete;

  enum class Result { kDone, kRepaired, kBroken };

  // `text` is followed by 64 readable bytes. The fields point into it and into this object; they
  // hold until the next call. kRepaired: there were bytes that are no UTF-8 or control characters,
  // now question marks, or tabs and line breaks in a text, now blanks. kBroken: no JSON object.
  Result decode(std::string_view text, KinetoFields& fields);
  // Arguments of the event decoded last that are finite numbers, whatever their names: the series
  // of a counter. The names hold until the next call.
  void visit_numbers(const std::function<void(std::string_view name, double value)>& visit);
  // What the fields of the last call point into: its text, or the repaired copy of it.
  std::string_view parsed_text() const noexcept { return parsed_text_; }

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
  std::string_view parsed_text_;
};

}  // namespace sidestream::trace
