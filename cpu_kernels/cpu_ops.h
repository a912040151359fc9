// The fast CPU back end of the op set: packed f32 products of its own, bf16 products of oneDNN
// where the machine has them in hardware, tiles on the stream's pool.
#pragma once

#include "ops/op_set.h"

namespace hearth {

/// Named "cpu". Activations are f32; weights are computed in f32 or bf16. Streams must be of a host
/// device (`host_stream`). Thread-safe: it holds no state.
///
/// Tiles are cut by shape alone and every element is summed in one fixed order, so results do not
/// depend on the number of workers. With f32 compute they do not depend on the machine either, and
/// the result of a row does not depend on how many rows come with it.
const OpSet& cpu_ops();

/// Makes it known to `find_op_set`. Called once, by main.
void register_cpu_ops();

}  // namespace hearth
