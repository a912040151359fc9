// The CUDA back end of the op set.
#pragma once

#include <string>

#include "ops/op_set.h"

namespace hearth {

/// Registers the op set "cuda" for `find_op_set`, and returns an empty text. If this build does not
/// have it, returns the reason. Needs neither a driver nor a GPU until an op runs.
///
/// Activations are f32; products are f32 (no TF32) or bf16 with f32 sums. Views and scratch are
/// device memory, and streams must be of a cuda device. Ops only enqueue, so the caller keeps
/// inputs and outputs valid until the stream has run. Every sum has a fixed order, so results are
/// reproducible to the bit; the order differs from "cpu".
std::string register_cuda_ops();

/// What plans of GPUs ask: the types of "cuda", and what its ops take of scratch. Also in builds
/// without CUDA, where libraries take none.
const OpSet& planned_cuda_ops();

}  // namespace hearth
