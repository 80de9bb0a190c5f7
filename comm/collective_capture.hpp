// Collectives that are captured into a CUDA graph with the work around them, and run whenever that
// graph is replayed.
//
//   capture.begin_capture();          // from here on no collective runs, nothing waits for one
//   ... capture the graph ...
//   capture.end_capture();
//   ... launch the graph on `stream` ...
//   capture.replayed(stream);         // its collectives have a deadline from here on
//   ... destroy the graph ...
//   capture.dropped();
//
// Every rank captures and replays in the same order. Between replays collectives run as ever.
#pragma once

#include "comm/work.hpp"

namespace sidestream::comm {

class CollectiveCapture {
 public:
  virtual ~CollectiveCapture() = default;
  CollectiveCapture(const CollectiveCapture&) = delete;
  CollectiveCapture& operator=(const CollectiveCapture&) = delete;

  // Every rank calls it; orders no stream, does not block the host, throws nothing. Collectives up
  // to end_capture() follow their `after` stream, which is being captured, and are waited for with
  // Work::wait_on before the capture ends; Work::wait throws.
  virtual void begin_capture() noexcept = 0;

  // Every rank calls it, after a failed capture too. Orders no stream, does not block, throws
  // nothing.
  virtual void end_capture() noexcept = 0;

  // The graph of the last capture, or what there was of it, is gone; once or more. Does not block,
  // throws nothing.
  virtual void dropped() noexcept = 0;

  // The work of the last capture has been queued on `stream` once more. Every rank calls it; does
  // not block the host. Throws CollectiveError, PeerError of an earlier failure.
  virtual void replayed(Stream stream) = 0;

 protected:
  CollectiveCapture() = default;
};

// Where a capture needs no care: collectives are work on the `after` stream like any other.
class PlainCapture final : public CollectiveCapture {
 public:
  void begin_capture() noexcept override {}
  void end_capture() noexcept override {}
  void dropped() noexcept override {}
  void replayed(Stream /*stream*/) override {}
};

}  // namespace sidestream::comm
