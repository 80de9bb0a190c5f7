// Copies that only lay a tensor out anew for the product after them: a transposed one made
// contiguous.
#pragma once

#include "profiling/advice/facts.hpp"
#include "profiling/analysis/call_tree.hpp"
#include "profiling/analysis/step_rows.hpp"

namespace sidestream::advice {

// Adds those of one rank and its steps. A copy belongs to a product when it is inside
// aten::contiguous, aten::clone or aten::reshape and nothing else is computed on its thread before
// the product.
void add_layout_copies(const analysis::RankView& rank, const analysis::StepRows& rows,
                       const analysis::CallTree& tree, LayoutCopyFacts& facts);

}  // namespace sidestream::advice
