// Arguments and launches of the kernels of router, dispatch and combine.
#pragma once

#include <cstdint>

#include "gpu_kernels/kernels/matrix.h"

namespace hearth::HEARTH_GPU {

struct RouterArguments {
  int64_t tokens = 0;
  int experts = 0, choices = 0;  // E and k
  bool normalize = false;
  Matrix<const float> logits;  // of the forwards
  Matrix<const float> probs;   // of the backwards and sums
  Matrix<float> probs_out;     // of the forward
  Matrix<const int32_t> choice;
  Matrix<int32_t> choice_out;  // of the forward
  Matrix<const float> dweight;
  Matrix<float> weight;          // of the forward
  const void* dprobs = nullptr;  // null: none
  bool dprobs_f64 = false;
  Matrix<float> dlogits;
  Matrix<const float> log_sum;  // of the z-loss, one column
  Matrix<float> log_sum_out;
  double scale = 0;
};

/// The auxiliary loss sums over fixed parts of the tokens, then over the parts.
constexpr int64_t kSumParts = 64;

struct RouterSums {
  int64_t tokens = 0;
  int experts = 0, choices = 0;
  Matrix<const float> probs;
  Matrix<const int32_t> choice;
  double *part_counts = nullptr, *part_sums = nullptr;  // [kSumParts, experts]
  double *counts = nullptr, *prob_sums = nullptr;       // [experts]
};

/// A counting sort in chunks. `places` first counts the choices of each expert in each chunk. A
/// running sum then turns the counts into the chunk's first position among the expert's rows.
struct RouteArguments {
  int64_t rows = 0;  // choices in total
  int experts = 0, choices = 0;
  int chunks = 0;
  int64_t chunk = 0;  // choices of a chunk, a multiple of 32
  Matrix<const int32_t> choice;
  const int32_t* position = nullptr;  // of each expert in their order; null: its number
  int32_t* places = nullptr;          // [experts, chunks]
  int32_t* offsets = nullptr;
  int32_t* source = nullptr;
  Matrix<int32_t> row_of;
};
constexpr int64_t kRouteChunks = 256;  // at most

struct MoveArguments {
  int64_t rows = 0, cols = 0;  // of the output
  bool quads = false;
  int choices = 0;
  // Of permute: rows that are written; of combine: rows that are summed; null: all.
  const int32_t *first = nullptr, *last = nullptr;
  const int32_t* source = nullptr;
  Matrix<const int32_t> row_of;
  Matrix<const float> from;
  Matrix<const float> weight, base;  // of combine; no data: weight one, base zero
  Matrix<float> to;
};

struct OrderArguments {
  int64_t rows = 0;
  int choices = 0;
  const int32_t* source = nullptr;
  Matrix<float> values;  // [tokens, choices]
  float* rows_data = nullptr;
};

// All functions enqueue and return. Without tokens they do nothing, except that sums become zero.
void router_on(void* stream, const RouterArguments& a);
void router_gradient_on(void* stream, const RouterArguments& a);
void router_sums_on(void* stream, const RouterSums& a);
void router_z_on(void* stream, const RouterArguments& a, double* squares);
void router_z_gradient_on(void* stream, const RouterArguments& a);
void route_on(void* stream, const RouteArguments& a);
void permute_on(void* stream, const MoveArguments& a);
void combine_on(void* stream, const MoveArguments& a);
void to_expert_order_on(void* stream, const OrderArguments& a);
void to_token_order_on(void* stream, const OrderArguments& a);

}  // namespace hearth::HEARTH_GPU
