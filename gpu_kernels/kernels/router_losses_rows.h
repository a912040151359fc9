// Arguments and launch of the kernel of the router's losses.
#pragma once

#include <cstdint>

namespace hearth::HEARTH_GPU {

struct RouterLossArguments {
  // Device memory: `layers` pointers to counts, then to prob_sums, then (has_squares) to squares.
  const double* const* sums = nullptr;
  bool has_squares = false;
  int layers = 0, experts = 0;
  bool pooled = false;
  double tokens = 0, aux_weight = 0;
  double *aux = nullptr, *z = nullptr;
  float* dprobs = nullptr;  // [layers, experts]; null: not needed
  int64_t dprobs_stride = 0;
};

/// Enqueues and returns.
void router_losses_on(void* stream, const RouterLossArguments& arguments);

}  // namespace hearth::HEARTH_GPU
