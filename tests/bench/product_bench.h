// All implementations of products side by side, on the calling machine.
#pragma once

namespace hearth::bench {

/// Prints a table: GFLOP/s of each implementation by rows and by the three products of a linear map,
/// one product a worker, with weights that are not in the worker's own caches.
void print_products(int workers);

}  // namespace hearth::bench
