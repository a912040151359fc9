#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/loss_chunks.h"
#include "cpu_kernels/low_rank.h"
#include "cpu_kernels/tiles.h"
#include "cpu_kernels/vector_math.h"
#include "cpu_kernels/weight_tiles.h"

namespace hearth {
namespace {

constexpr int32_t kNotTrained = -100;

HEARTH_CLONES float largest(const float* z, int64_t n) {
  float lane[16];
  std::fill_n(lane, 16, z[0]);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (int l = 0; l < 16; ++l) lane[l] = z[i + l] > lane[l] ? z[i + l] : lane[l];
  }
  for (int l = 0; i < n; ++i, ++l) lane[l] = z[i] > lane[l] ? z[i] : lane[l];
  return *std::max_element(lane, lane + 16);
}

// z[i] = exp(z[i] - shift); their sum, f32 in sixteen lanes over at most 1024 elements.
HEARTH_CLONES double exp_block(float* z, float shift, int64_t n) {
  float lane[16] = {};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (int l = 0; l < 16; ++l) {
      z[i + l] = fast_exp(z[i + l] - shift);
      lane[l] += z[i + l];
    }
  }
  for (int l = 0; i < n; ++i, ++l) lane[l] += z[i] = fast_exp(z[i] - shift);
  double sum = 0;
  for (const float x : lane) sum += x;
  return sum;
}

HEARTH_CLONES void scale_row(float* z, float scale, int64_t n) {
  for (int64_t i = 0; i < n; ++i) z[i] *= scale;
}

// One row of logits becomes its gradient; the row's loss is returned.
double loss_row(float* z, int64_t n, int32_t label, double scale) {
  constexpr int64_t kBlock = 1024;
  const float shift = largest(z, n);
  const double logit = double{z[label]} - shift;
  double sum = 0;
  for (int64_t i = 0; i < n; i += kBlock) sum += exp_block(z + i, shift, std::min(kBlock, n - i));
  const double probability = z[label] / sum;
  scale_row(z, static_cast<float>(scale / sum), n);
  z[label] = static_cast<float>(scale * (probability - 1));
  return std::log(sum) - logit;
}

// The trained rows, some at a time: logits, then loss and dlogits in their place, then
// dx = dlogits W as sums over pieces of the vocabulary, and dW += dlogits^T x.
void cross_entropy(Stream& stream, ConstView x, const LinearView& head, const Labels& labels,
                   double scale, View loss, View dx, const LinearGradient& gradient) {
  const int64_t vocabulary = head.out(), hidden = head.in();
  HostStream& host = host_stream(stream);
  Scratch& scratch = stream.scratch();
  Scratch::Frame frame(scratch);
  auto* trained = scratch.take<int32_t>(x.rows);
  int64_t count = 0;
  for (int64_t t = 0; t < x.rows; ++t) {
    const int32_t label = labels.ids.as<int32_t>()[t];
    if (label == kNotTrained) {
      if (dx) std::fill_n(dx.row<float>(t), hidden, 0.0f);
      continue;
    }
    HEARTH_CHECK(label >= 0 && label < vocabulary, "cross_entropy: label");
    trained[count++] = static_cast<int32_t>(t);
  }
  HEARTH_CHECK(count <= labels.most_trained, "cross_entropy: more rows are trained than said");

  const int64_t chunk = std::min(x.rows, loss_rows(vocabulary));
  const int64_t pieces = loss_pieces(vocabulary);
  float* logits = scratch.take<float>(chunk * vocabulary);
  float* compact = scratch.take<float>(chunk * hidden);
  float* partial = dx ? scratch.take<float>(pieces * chunk * hidden) : nullptr;
  auto* row_loss = scratch.take<double>(chunk);
  const int64_t rank = head.low_rank.rank();
  float* const u_all = scratch.take<float>(chunk * rank);
  float* const v_all = scratch.take<float>(chunk * rank);
  const Blocks words(vocabulary), width(hidden);
  double total = 0;
  for (int64_t first = 0; first < count; first += chunk) {
    const int64_t n = std::min(chunk, count - first);
    const Blocks rows(n);
    const View z(logits, DType::f32, n, vocabulary), some(compact, DType::f32, n, hidden);
    for_blocks(host, n, row_block(hidden), [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) {
        std::copy_n(x.row<float>(trained[first + r]), hidden, some.row<float>(r));
      }
    });
    const View u(u_all, DType::f32, n, rank), v(v_all, DType::f32, n, rank);
    LowRank pair = head.low_rank;
    pair.dropout.ids = {trained + first, DType::i32, 1, n};
    host.pool().run(rank > 0 ? rows.count() : 0, [&](int64_t block, int worker) {
      const Range r = block_of(rows, block);
      low_rank_input(host.worker_scratch(worker), some.slice(r.begin, r.count),
                     pair.from_row(r.begin), head.compute, u.slice(r.begin, r.count));
    });
    host.pool().run(rows.count() * words.count(), [&](int64_t tile, int worker) {
      const Range r = block_of(rows, tile % rows.count());
      const Range out = block_of(words, tile / rows.count());
      Scratch& own = host.worker_scratch(worker);
      const View to = z.slice(r.begin, r.count);
      forward_tile(own, some.slice(r.begin, r.count), head, out, to);
      if (pair) add_low_rank(own, u.slice(r.begin, r.count), pair, head.compute, out, to);
    });
    host.pool().run(n, [&](int64_t r, int) {
      row_loss[r] = loss_row(z.row<float>(r), vocabulary,
                             labels.ids.as<int32_t>()[trained[first + r]], scale);
    });
    for (int64_t r = 0; r < n; ++r) total += row_loss[r];
    if (!dx) continue;

    host.pool().run(rank > 0 ? rows.count() : 0, [&](int64_t block, int worker) {
      const Range r = block_of(rows, block);
      low_rank_output(host.worker_scratch(worker), z.slice(r.begin, r.count), pair, head.compute,
                      v.slice(r.begin, r.count));
    });
    const int64_t data_tiles = pieces * rows.count() * width.count();
    const int64_t weight_tiles = words.count() * width.count();
    host.pool().run(data_tiles + weight_tiles, [&](int64_t tile, int worker) {
      Scratch& own = host.worker_scratch(worker);
      if (tile >= data_tiles) {  // those of the first column and row: of the pair's B and A, too
        const Range out = block_of(words, (tile - data_tiles) / width.count());
        const Range in = block_of(width, (tile - data_tiles) % width.count());
        if (gradient.weight) wgrad_tile(own, z, some, head.compute, out, in, gradient.weight);
        if (gradient.a && out.begin == 0) {
          low_rank_a_tile(own, v, some, pair, head.compute, in, gradient.a);
        }
        if (gradient.b && in.begin == 0) {
          low_rank_b_tile(own, z, u, head.compute, out, gradient.b);
        }
        return;
      }
      const Range cols = block_of(width, tile % width.count());
      const Range r = block_of(rows, tile / width.count() % rows.count());
      const int64_t piece = tile / width.count() / rows.count();
      const Range depth{piece * kLossDepth, std::min(kLossDepth, vocabulary - piece * kLossDepth)};
      const View target(partial + piece * chunk * hidden, DType::f32, n, hidden);
      LinearView part = head;
      part.weight = head.weight.slice(depth.begin, depth.count);
      const View to = columns(target.slice(r.begin, r.count), cols);
      dgrad_tile(own, columns(z.slice(r.begin, r.count), depth), part, cols, to, false);
      if (pair && piece == 0) {
        add_low_rank_gradient(own, v.slice(r.begin, r.count), pair.from_row(r.begin), head.compute,
                              cols, to);
      }
    });
    for_blocks(host, n, row_block(hidden), [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) {
        float* to = dx.row<float>(trained[first + r]);
        std::copy_n(partial + r * hidden, hidden, to);
        for (int64_t piece = 1; piece < pieces; ++piece) {
          const float* from = partial + (piece * chunk + r) * hidden;
          for (int64_t i = 0; i < hidden; ++i) to[i] += from[i];
        }
      }
    });
  }
  loss.as<double>()[0] = total;
  if (std::isfinite(total) || !dx) return;
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  dx.as<float>()[0] = nan;
  if (gradient.weight) gradient.weight.as<float>()[0] = nan;
}

}  // namespace

ScratchNeed loss_scratch(int64_t tokens, int64_t hidden, int64_t vocabulary, int64_t rank) {
  const auto chunk = static_cast<size_t>(std::min(tokens, loss_rows(vocabulary)));
  const auto pieces = static_cast<size_t>(loss_pieces(vocabulary));
  const auto h = static_cast<size_t>(hidden), v = static_cast<size_t>(vocabulary);
  const size_t floats = v + h + pieces * h + 2 * static_cast<size_t>(rank);
  return {static_cast<size_t>(tokens) * sizeof(int32_t) +
              chunk * (floats * sizeof(float) + sizeof(double)) + 7 * kArenaAlignment,
          std::max(weight_tile_scratch(), low_rank_tile_scratch(rank))};
}

void cpu::add_cross_entropy(OpTable& ops) { ops.cross_entropy.add(CpuOps::kName, cross_entropy); }

}  // namespace hearth
