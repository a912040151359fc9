// The reference op set: plain loops that read like the formulas of ops/op_table.h.
//
// It is the oracle that every other back end is tested against, and it runs whole models in f64 for
// gradient checks. Activations are f32 or f64; sums are always formed in double and rounded once to
// the type of the output, so its f32 results are nearly correctly rounded. Stored weights may have
// any floating type, gradients of weights f32 or f64: each view's own type counts. With
// Compute::bf16 both operands of a product are rounded to bf16 and the sum stays in double.
//
// All work runs on the calling thread; results do not depend on the stream.
#pragma once

#include "ops/op_set.h"

namespace hearth {

const OpSet& reference_ops();

/// Adds its implementations to the table of another back end on host memory, behind those that are
/// there: the reference then does what the back end lacks or declines.
void add_reference_ops(OpTable& ops);

/// Adds it to `op_sets()` under the name "reference".
void register_reference_ops();

}  // namespace hearth
