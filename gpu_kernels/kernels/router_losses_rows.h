// What the kernel of the router's losses takes, and its launch.
#pragma once

#include <cstdint>

namespace hearth::HEARTH_GPU {

struct RouterLossArguments {
  // Device memory: `layers` pointers to counts, as many to prob_sums, and to squares if there are any.
  const double* const* sums = nullptr;
  bool has_squares = false;
  int layers = 0, experts = 0;
  bool pooled = false;
  double tokens = 0, aux_weight = 0;
  double *aux = nullptr, *z = nullptr;
  float* dprobs = nullptr;  // [layers, experts], null: not wanted
  int64_t dprobs_stride = 0;
};

/// Enqueues and returns.
void router_losses_on(void* stream, const RouterLossArguments& arguments);

}  // namespace hearth::HEARTH_GPU
