// Cross-entropy in chunks of trained rows: which rows those are is found on the device, how many of
// them there are at most the caller says. What is left of the last chunk works on rows of zeros.
#include <algorithm>

#include "gpu_kernels/gpu_stream.h"
#include "gpu_kernels/kernels/loss_rows.h"
#include "gpu_kernels/kernels/product.h"
#include "gpu_kernels/ops/gpu_op_set.h"
#include "gpu_kernels/ops/op_scratch.h"

namespace hearth::HEARTH_GPU {
namespace {

/// The rows that chunks are made of: few different numbers, as a library chooses its kernel for each.
int64_t rows_in_chunks(const Labels& labels) {
  const int64_t most = std::clamp<int64_t>(labels.most_trained, 0, labels.ids.cols);
  return std::min(labels.ids.cols, (most + kTileRows - 1) / kTileRows * kTileRows);
}

FloatRows rows_of(const ConstView& x) { return {const_cast<float*>(x.as<float>()), x.stride}; }

void cross_entropy(Stream& stream, ConstView x, const LinearView& head, const Labels& labels,
                   double scale, View loss, View dx, const LinearGradient& gradient) {
  const int64_t vocabulary = head.out(), hidden = head.in(), tokens = x.rows;
  GpuStream gpu = gpu_stream(stream);
  Scratch::Frame frame(gpu.scratch());
  const int64_t chunk = chunk_rows(tokens, vocabulary), stride = logits_stride(vocabulary);
  auto* trained = gpu.scratch().take<int32_t>(tokens);
  auto* row_loss = gpu.scratch().take<double>(tokens);
  auto* logits = gpu.scratch().take<float>(chunk * stride);
  auto* some = gpu.scratch().take<float>(chunk * hidden);
  auto* some_dx = dx ? gpu.scratch().take<float>(chunk * hidden) : nullptr;
  const auto* label = labels.ids.as<int32_t>();
  const int64_t in_chunks = rows_in_chunks(labels);
  const int rows = static_cast<int>(tokens), width = static_cast<int>(hidden);

  compact_labels_on(gpu.handle(), label, rows, trained);
  if (dx) clear_untrained_on(gpu.handle(), label, rows, width, rows_of(dx));
  for (int64_t first = 0; first < in_chunks; first += chunk) {
    const int64_t n = std::min(chunk, in_chunks - first);
    const auto count = static_cast<int>(n);
    const View z(logits, DType::f32, n, vocabulary, stride);
    const View inputs(some, DType::f32, n, hidden);
    LinearView part = head;
    part.low_rank.dropout.ids = {trained + first, DType::i32, 1, n};
    part.low_rank.dropout.first_row = 0;
    gather_trained_on(gpu.handle(), trained + first, count, width, rows_of(x), rows_of(inputs));
    linear_forward(stream, inputs, part, z);
    loss_rows_on(gpu.handle(), {trained + first, label, count, static_cast<int>(vocabulary), logits,
                                stride, scale, static_cast<bool>(dx), row_loss + first});
    if (!dx) continue;
    const View gradients(some_dx, DType::f32, n, hidden);
    linear_dgrad(stream, z, part, gradients, false);
    if (gradient) linear_wgrad(stream, z, inputs, part, gradient);
    scatter_trained_on(gpu.handle(), trained + first, count, width, rows_of(gradients),
                       rows_of(dx));
  }
  sum_loss_on(gpu.handle(), {row_loss, static_cast<int>(in_chunks),
                             in_chunks < tokens ? trained + in_chunks : nullptr, loss.as<double>(),
                             dx ? dx.as<float>() : nullptr,
                             gradient.weight ? gradient.weight.as<float>() : nullptr});
}

}  // namespace

void add_cross_entropy(OpTable& ops) { ops.cross_entropy.add(GpuOps::kName, cross_entropy); }

}  // namespace hearth::HEARTH_GPU
