// The reference op set: plain loops that read like the formulas of ops/op_table.h.
//
// It is the oracle that every other back end is tested against, and it runs whole models in f64 for
// gradient checks. Activations are f32 or f64; sums are always formed in double and rounded once to
// the type of the output, so its f32 results are nearly correctly rounded. Stored weights may have
// any floating type, weight gradients f32 or f64. With Compute::bf16 both operands of a product are
// rounded to bf16 and the sum is double.
//
// All work runs on the calling thread; results do not depend on the stream.
#pragma once

#include "ops/op_set.h"

namespace hearth {

const OpSet& reference_ops();

/// Appends the reference's implementations to the table of another back end on host memory. They
/// run if the back end lacks an op or declines the arguments.
void add_reference_ops(OpTable& ops);

/// Registers the op set under the name "reference".
void register_reference_ops();

}  // namespace hearth
