// The fast CPU back end of the op set: f32 products by a packed kernel of its own, which also takes
// other stored types, bf16 products by oneDNN where the CPU has them, and OpenMP tiles.
#pragma once

#include "ops/op_set.h"

namespace hearth {

/// Named "cpu". Activations are f32; weights are computed in f32 or bf16. Streams must be of a host
/// device (`host_stream`). Thread-safe: it holds no state.
///
/// Tiles are cut by shape alone and every element is summed in one fixed order, so results do not
/// depend on the number of workers. They may depend on the machine, whose instructions oneDNN chooses
/// by, and a row's on how many rows come with it, which decides the kind of product.
const OpSet& cpu_ops();

/// Makes it known to `find_op_set`. Called once (tools/commands/commands.cpp).
void register_cpu_ops();

}  // namespace hearth
