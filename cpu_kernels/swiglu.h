// SwiGLU on n elements, for the elementwise ops and for the experts.
#pragma once

#include <cstdint>

namespace hearth {

/// h = silu(gate) * up.
void swiglu(const float* gate, const float* up, float* h, int64_t n);

/// From dh: replaces gate and up by their gradients; h = silu(gate) * up; h may be dh. With s =
/// sigmoid(g): silu(g) = g s and silu'(g) = s (1 + g (1 - s)).
void swiglu_gradient(const float* dh, float* gate, float* up, float* h, int64_t n);

}  // namespace hearth
