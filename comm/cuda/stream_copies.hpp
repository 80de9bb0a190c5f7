// The engine of copies on streams of a Driver: one stream for each direction, events between them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/cuda/driver.hpp"
#include "core/base/copy_engine.hpp"

namespace sidestream::comm::cuda {

// current_stream: where the calling thread's computation is queued. flag: of the option that wants
// the copies, for the message of a MemoryError.
std::shared_ptr<core::CopyEngine> make_stream_copies(std::shared_ptr<Driver> driver,
                                                     std::function<Stream()> current_stream,
                                                     std::string flag);

}  // namespace sidestream::comm::cuda
