// The fast CPU back end of the op set. Its own packed kernel computes f32 products from any stored
// type. oneDNN computes bf16 products if the CPU supports them. OpenMP runs the tiles.
#pragma once

#include "ops/op_set.h"

namespace hearth {

/// Named "cpu". Activations are f32; products are f32 or bf16. Streams must be host streams
/// (`host_stream`). Thread-safe: it has no state.
///
/// Tiles are cut by shape alone and every element is summed in one fixed order, so results do not
/// depend on the number of workers. They can depend on the machine's instruction set, which
/// oneDNN's choices follow. A row's results of linear maps can depend on the number of rows, which
/// decides the kind of product; those of experts depend on the rows of their segment alone
/// (ExpertRows).
const OpSet& cpu_ops();

/// Registers the op set for `find_op_set`. Call once (tools/commands/commands.cpp).
void register_cpu_ops();

}  // namespace hearth
