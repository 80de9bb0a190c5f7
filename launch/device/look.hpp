// Whether somebody wants to see the numbers of a step, and how soon.
#pragma once

namespace sidestream::launch {

enum class Look {
  kNone,
  kLate,    // they may come with the next step, so that the device has work meanwhile
  kAtOnce,  // before anything else is done with the weights: an evaluation, a checkpoint, the end
};

}  // namespace sidestream::launch
