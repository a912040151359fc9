#include "gpu_kernels/gpu_stream.h"
#include "gpu_kernels/kernels/router_rows.h"
#include "gpu_kernels/ops/gpu_op_set.h"

namespace hearth::HEARTH_GPU {
namespace {

RouterArguments of_tokens(int64_t tokens, int64_t experts, int64_t choices) {
  HEARTH_CHECK(experts > 0, "router: experts");
  RouterArguments a;
  a.tokens = tokens;
  a.experts = static_cast<int>(experts);
  a.choices = static_cast<int>(choices);
  return a;
}

void router_forward(Stream& stream, ConstView logits, bool normalize, View probs, View choice,
                    View weight) {
  RouterArguments a = of_tokens(logits.rows, logits.cols, choice.cols);
  a.normalize = normalize;
  a.logits = matrix_of<float>(logits);
  a.probs_out = matrix_of<float>(probs);
  a.choice_out = matrix_of<int32_t>(choice);
  a.weight = matrix_of<float>(weight);
  router_on(gpu_stream(stream).handle(), a);
}

void router_backward(Stream& stream, ConstView dweight, ConstView probs, ConstView choice,
                     bool normalize, ConstView dprobs, View dlogits) {
  RouterArguments a = of_tokens(probs.rows, probs.cols, choice.cols);
  a.normalize = normalize;
  a.dweight = matrix_of<float>(dweight);
  a.probs = matrix_of<float>(probs);
  a.choice = matrix_of<int32_t>(choice);
  if (dprobs) {
    a.dprobs_f64 = dprobs.dtype == DType::f64;
    a.dprobs = a.dprobs_f64 ? static_cast<const void*>(dprobs.as<double>()) : dprobs.as<float>();
  }
  a.dlogits = matrix_of<float>(dlogits);
  router_gradient_on(gpu_stream(stream).handle(), a);
}

void router_sums(Stream& stream, ConstView probs, ConstView choice, View counts, View prob_sums) {
  GpuStream gpu = gpu_stream(stream);
  Scratch::Frame frame(gpu.scratch());
  RouterSums a;
  a.tokens = probs.rows;
  a.experts = static_cast<int>(probs.cols);
  a.choices = static_cast<int>(choice.cols);
  a.probs = matrix_of<float>(probs);
  a.choice = matrix_of<int32_t>(choice);
  a.part_counts = gpu.scratch().take<double>(kSumParts * probs.cols);
  a.part_sums = gpu.scratch().take<double>(kSumParts * probs.cols);
  a.counts = counts.as<double>();
  a.prob_sums = prob_sums.as<double>();
  router_sums_on(gpu.handle(), a);
}

void router_z_forward(Stream& stream, ConstView logits, View log_sum, View squares) {
  RouterArguments a = of_tokens(logits.rows, logits.cols, 0);
  a.logits = matrix_of<float>(logits);
  a.log_sum_out = matrix_of<float>(log_sum);
  router_z_on(gpu_stream(stream).handle(), a, squares.as<double>());
}

void router_z_backward(Stream& stream, ConstView log_sum, ConstView probs, double scale,
                       View dlogits) {
  RouterArguments a = of_tokens(probs.rows, probs.cols, 0);
  a.log_sum = matrix_of<float>(log_sum);
  a.probs = matrix_of<float>(probs);
  a.scale = scale;
  a.dlogits = matrix_of<float>(dlogits);
  router_z_gradient_on(gpu_stream(stream).handle(), a);
}

}  // namespace

void add_router(OpTable& ops) {
  ops.router_forward.add(GpuOps::kName, router_forward);
  ops.router_backward.add(GpuOps::kName, router_backward);
  ops.router_sums.add(GpuOps::kName, router_sums);
  ops.router_z_forward.add(GpuOps::kName, router_z_forward);
  ops.router_z_backward.add(GpuOps::kName, router_z_backward);
}

}  // namespace hearth::HEARTH_GPU
