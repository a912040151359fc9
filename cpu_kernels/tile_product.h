// bf16 products of any size on AMX tiles.
#pragma once

#include "cpu_kernels/product.h"

namespace hearth {

/// As ProductImplementation::run; a tail has at most kTileTail columns of A.
void tile_multiply(Scratch& scratch, const MatrixProduct& product);
size_t tile_multiply_scratch();
constexpr int64_t kTileTail = 64;

}  // namespace hearth
