// Writes what tensorboard_oracle.py expects: tensorboard_sample FOLDER
#include <limits>

#include "launch/reporting/tensorboard_writer.hpp"

int main(int argc, char** argv) {
  using namespace sidestream::launch;
  if (argc != 2) return 2;
  {
    TensorBoardWriter first(argv[1]);
    for (int step = 1; step <= 5; ++step)
      first.write({.step = step, .loss = 10.0 / step, .lr = 0.5});
    first.write(5, {{"odd/long_" + std::string(300, 'x'), -1.5},
                    {"odd/nan", std::numeric_limits<double>::quiet_NaN()}});
  }
  TensorBoardWriter resumed(argv[1], 3);
  for (int step = 4; step <= 6; ++step)
    resumed.write({.step = step, .loss = 20.0 / step, .val_loss = 7.0});
}
