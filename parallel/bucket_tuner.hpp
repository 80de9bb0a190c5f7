// Watches backward and its collectives while training goes on, and cuts the gradients into buckets
// by what it has seen: once the first steps are over, and again from time to time, for links and
// neighbours change. No number depends on the cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "parallel/bucket_cut.hpp"
#include "parallel/bucket_plan.hpp"
#include "parallel/config.hpp"
#include "profiling/record/clock.hpp"

namespace sidestream::parallel {

struct BucketProposal {
  BucketCut cut;
  std::string reason;  // a sentence for the log
};

class BucketTuner {
 public:
  using NowNs = std::function<std::int64_t()>;

  // now_ns: a clock that runs on; for tests.
  explicit BucketTuner(comm::Communicator& communicator, NowNs now_ns = record::monotonic_ns);

  // Around the last backward of a step, on the thread that starts collectives.
  void backward_begins(const BucketPlan& plan);
  void gradient_ready(std::size_t parameter);
  void backward_ended(const std::vector<std::optional<comm::WorkSpan>>& collectives);

  // Buckets are others than those that were measured: on all ranks.
  void plan_changed();

  // Between steps, on all ranks: collective and blocking when a few steps have been measured, else
  // nothing. A cut that all ranks agree on, of at most plan.most_buckets, where it should end the
  // step by 0.5 % earlier, or where buckets of one size do not show what a collective and what a
  // byte takes. moved_bytes: what would travel once so that a cut can be adopted, the same on all
  // ranks; the steps up to the next look have to save it, but for a cut that only is to show.
  std::optional<BucketProposal> propose(const BucketPlan& plan, core::DType dtype,
                                        std::size_t moved_bytes = 0);

 private:
  // Of one backward, in seconds.
  struct Measured {
    std::vector<double> ready_s;     // by parameter, since its micro-step began
    std::vector<double> transfer_s;  // by bucket, waiting for others included
  };

  bool measures() const noexcept;
  std::string own_account() const;
  std::optional<TransferCost> cost_of(const std::vector<TransferSample>& samples);

  comm::Communicator& communicator_;
  NowNs now_ns_;
  std::int64_t backwards_ = 0;  // since the last proposal was asked for and answered
  std::int64_t pause_ = 1;      // backwards before the next that is measured
  std::int64_t began_ns_ = 0;
  Measured current_;
  std::vector<Measured> measured_;
  std::optional<TransferCost> last_cost_;  // the same on all ranks
  bool probed_ = false;                    // since a cost was known: other sizes told nothing
};

// Null where the configuration names a size, where nothing overlaps, and on one node: there sums
// are made by the cores that compute, which the model of a link does not fit. On a device the host
// does not see when collectives run: the size follows from the model there, too.
std::unique_ptr<BucketTuner> make_bucket_tuner(const DataParallelConfig& config,
                                               comm::Communicator& communicator);

}  // namespace sidestream::parallel
