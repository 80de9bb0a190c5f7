// Whether a model can be trained on the data: looks at every token.
//
// A large data set takes longer than the set-up may, so that ranks do it in parts and meet between
// them: what counts against the deadline is a part, and a rank that hangs is still found out.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "comm/topology.hpp"
#include "core/data/token_check.hpp"
#include "launch/assembly/data_assembly.hpp"
#include "launch/options/train_options.hpp"
#include "launch/process/program.hpp"

namespace sidestream::launch {

// Of both splits, the ranks of a node sharing the work.
class DataCheck {
 public:
  // `options` must have its vocabulary set; all outlive it. Throws DataError like open_data().
  DataCheck(const DataSources& sources, const TrainOptions& options,
            const comm::Topology& topology);

  // Until `until`, or a moment longer. Throws DataError for an id that the model has no row for,
  // and, once all is done, for too few tokens.
  void go_on(std::chrono::steady_clock::time_point until);
  // Of this rank's tokens that it has looked at, 0 to 1; 1 is all of them.
  double share() const noexcept;

 private:
  void require_enough() const;

  const DataSources& sources_;
  const TrainOptions& options_;
  int ranks_;
  std::optional<data::TokenStream> tokens_;  // the two below use it; empty: nothing to look at
  std::optional<data::TokenCheck> train_;
  std::optional<data::TokenCheck> validation_;
};

// All of it at once. Throws what DataCheck does.
void check_data(const DataSources& sources, const TrainOptions& options,
                const comm::Topology& topology);

// The same in parts that are short beside --timeout-setup; `beat` is called before each of them.
// Collective. Throws AgreedError.
void check_data_together(Session& session, const DataSources& sources, const TrainOptions& options,
                         const std::function<void()>& beat);

}  // namespace sidestream::launch
