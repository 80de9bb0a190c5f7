// What may be asked of NCCL for speed; its own choice unless said otherwise.
#pragma once

namespace sidestream::comm::nccl {

// How NCCL weighs its own speed against the compute units (CTAs) that it takes from the kernels
// beside it (ncclConfig_t::CTAPolicy).
enum class CtaPolicy {
  kDefault,
  kEfficiency,  // fewer where that costs little
  kZero         // none where the copy engines can do it, in registered windows
};

struct Tuning {
  CtaPolicy cta_policy = CtaPolicy::kDefault;
  int ctas = 0;  // exactly so many a collective; 0: NCCL chooses
  // Memory of allocate() is registered with the peers, for NCCL's symmetric kernels and copy
  // engines (ncclCommWindowRegister).
  bool windows = true;

  // Whether NCCL is told how many compute units to take.
  bool is_tuned() const { return ctas != 0 || cta_policy != CtaPolicy::kDefault; }
};

}  // namespace sidestream::comm::nccl
