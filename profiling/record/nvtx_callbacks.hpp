// What NVTX calls when a range of this program opens or closes: passed on to the recorder of the
// process. Domains that are not ours have the handle null, and nothing of theirs is kept.
#pragma once

#include <nvtx3/nvToolsExt.h>

namespace sidestream::record {

// Fills NVTX's table of callbacks. 1: done; 0: this copy of NVTX is of another kind.
int attach_to_nvtx(NvtxGetExportTableFunc_t get_export_table);

}  // namespace sidestream::record
