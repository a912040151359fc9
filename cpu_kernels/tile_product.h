// bf16 products of any size on AMX tiles.
#pragma once

#include "cpu_kernels/product.h"

namespace hearth {

/// As ProductImplementation::run; a tail has at most kMostTail columns of A.
void tile_multiply(Scratch& scratch, const MatrixProduct& product);
size_t tile_multiply_scratch();

/// As right_in_pairs and multiply_small, for up to kTileSmallDepth elements of k.
constexpr int64_t kTileSmallDepth = 896;
SmallRight tile_right(const Operand& b, float* packed);
void tile_multiply_small(const Operand& a, const SmallRight& b, float* c, int64_t ldc,
                         bool accumulate, float* left);

}  // namespace hearth
