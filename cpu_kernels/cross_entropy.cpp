#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu_kernels/cpu_op_set.h"
#include "cpu_kernels/loss_chunks.h"
#include "cpu_kernels/low_rank.h"
#include "cpu_kernels/rounded_rows.h"
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

// The trained rows, a chunk at a time: logits, then loss and dlogits in their place, then
// dx = dlogits W as sums over pieces of the vocabulary, and dW += dlogits^T x.
class ChunkedLoss {
 public:
  // Takes all its memory from the stream's scratch, which the caller frames.
  ChunkedLoss(Stream& stream, const ConstView& x, const LinearView& head, const Labels& labels,
              double scale, const View& dx, const LinearGradient& gradient)
      : host_(host_stream(stream)),
        x_(x),
        head_(head),
        label_(labels.ids.as<int32_t>()),
        scale_(scale),
        dx_(dx),
        gradient_(gradient),
        rounded_(head.compute == Compute::bf16 && !(head.low_rank && head.low_rank.dropout)),
        chunk_(std::min(x.rows, loss_rows(head.out()))),
        pieces_(loss_pieces(head.out())),
        words_(head.out()),
        width_(head.in()) {
    Scratch& scratch = stream.scratch();
    trained_ = scratch.take<int32_t>(x.rows);
    find_trained();
    HEARTH_CHECK(count_ <= labels.most_trained, "cross_entropy: more rows are trained than said");
    const int64_t rank = head.low_rank.rank();
    logits_ = scratch.take<float>(chunk_ * head.out());
    compact_ = scratch.take<float>(chunk_ * head.in());
    partial_ = dx ? scratch.take<float>(pieces_ * chunk_ * head.in()) : nullptr;
    row_loss_ = scratch.take<double>(chunk_);
    low_rank_in_ = scratch.take<float>(chunk_ * rank);
    low_rank_out_ = scratch.take<float>(chunk_ * rank);
  }

  // The loss of all trained rows.
  double run() {
    double total = 0;
    for (int64_t first = 0; first < count_; first += chunk_) {
      const Chunk chunk(*this, first);
      gather(chunk);
      make_logits(chunk);
      add_losses(chunk, total);
      if (!dx_) continue;
      make_gradients(chunk);
      add_pieces(chunk);
    }
    return total;
  }

 private:
  // The views of a chunk's rows, and the low-rank pair with the dropout of these rows. dz lies in z.
  struct Chunk {
    int64_t first, n;
    View z, dz, inputs, u, v;
    LowRank pair;
    Blocks rows;
    Chunk(const ChunkedLoss& of, int64_t begin)
        : first(begin),
          n(std::min(of.chunk_, of.count_ - begin)),
          z(of.logits_, DType::f32, n, of.head_.out()),
          dz(of.rounded_ ? View(of.logits_, DType::bf16, n, of.head_.out(), 2 * of.head_.out())
                         : z),
          inputs(of.compact_, of.rounded_ ? DType::bf16 : DType::f32, n, of.head_.in()),
          u(of.low_rank_in_, DType::f32, n, of.head_.low_rank.rank()),
          v(of.low_rank_out_, DType::f32, n, of.head_.low_rank.rank()),
          pair(of.head_.low_rank),
          rows(n) {
      pair.dropout.ids = {of.trained_ + begin, DType::i32, 1, n};
    }
  };

  // The rows with a label; the others have no gradient.
  void find_trained() {
    for (int64_t t = 0; t < x_.rows; ++t) {
      if (label_[t] == kNotTrained) {
        if (dx_) std::fill_n(dx_.row<float>(t), head_.in(), 0.0f);
        continue;
      }
      HEARTH_CHECK(label_[t] >= 0 && label_[t] < head_.out(), "cross_entropy: label");
      trained_[count_++] = static_cast<int32_t>(t);
    }
  }

  void gather(const Chunk& chunk) {
    for_blocks(host_, chunk.n, row_block(head_.in()), [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) {
        const float* const from = x_.row<float>(trained_[chunk.first + r]);
        if (rounded_) {
          round_row(from, chunk.inputs.row<bf16>(r), head_.in());
        } else {
          std::copy_n(from, head_.in(), chunk.inputs.row<float>(r));
        }
      }
    });
  }

  void make_logits(const Chunk& chunk) {
    host_.pool().run(chunk.u.cols > 0 ? chunk.rows.count() : 0, [&](int64_t block, int worker) {
      const Range r = block_of(chunk.rows, block);
      low_rank_input(host_.worker_scratch(worker), chunk.inputs.slice(r.begin, r.count),
                     chunk.pair.from_row(r.begin), head_.compute, chunk.u.slice(r.begin, r.count));
    });
    const int64_t blocks = chunk.rows.count();
    host_.pool().run(blocks * words_.count(), [&](int64_t tile, int worker) {
      const Range r = block_of(chunk.rows, tile % blocks), out = block_of(words_, tile / blocks);
      Scratch& own = host_.worker_scratch(worker);
      const View to = columns(chunk.z.slice(r.begin, r.count), out);
      forward_tile(own, chunk.inputs.slice(r.begin, r.count), head_, out, to,
                   low_rank_tail(chunk.u.slice(r.begin, r.count), chunk.pair, out));
    });
  }

  // Adds the loss of each row of the chunk, in order; logits become their gradients.
  void add_losses(const Chunk& chunk, double& total) {
    host_.pool().run(chunk.n, [&](int64_t r, int) {
      row_loss_[r] =
          loss_row(chunk.z.row<float>(r), head_.out(), label_[trained_[chunk.first + r]], scale_);
      if (rounded_) round_row(chunk.z.row<float>(r), chunk.dz.row<bf16>(r), head_.out());
    });
    for (int64_t r = 0; r < chunk.n; ++r) total += row_loss_[r];
  }

  // One run over both kinds of tiles: those of dx, in pieces, and those of the head's weight.
  void make_gradients(const Chunk& chunk) {
    host_.pool().run(chunk.u.cols > 0 ? chunk.rows.count() : 0, [&](int64_t block, int worker) {
      const Range r = block_of(chunk.rows, block);
      low_rank_output(host_.worker_scratch(worker), chunk.dz.slice(r.begin, r.count), chunk.pair,
                      head_.compute, chunk.v.slice(r.begin, r.count));
    });
    const int64_t data_tiles = pieces_ * chunk.rows.count() * width_.count();
    const int64_t weight_tiles = words_.count() * width_.count();
    host_.pool().run(data_tiles + weight_tiles, [&](int64_t tile, int worker) {
      Scratch& own = host_.worker_scratch(worker);
      if (tile < data_tiles) {
        data_tile(own, chunk, tile);
      } else {
        weight_tile(own, chunk, tile - data_tiles);
      }
    });
  }

  // The tiles of the first column and row also make the gradients of the pair's B and A.
  void weight_tile(Scratch& own, const Chunk& chunk, int64_t tile) {
    const Range out = block_of(words_, tile / width_.count());
    const Range in = block_of(width_, tile % width_.count());
    if (gradient_.weight) {
      wgrad_tile(own, chunk.dz, chunk.inputs, head_.compute, out, in, gradient_.weight);
    }
    if (gradient_.a && out.begin == 0) {
      low_rank_a_tile(own, chunk.v, chunk.inputs, chunk.pair, head_.compute, in, gradient_.a);
    }
    if (gradient_.b && in.begin == 0) {
      low_rank_b_tile(own, chunk.dz, chunk.u, head_.compute, out, gradient_.b);
    }
  }

  void data_tile(Scratch& own, const Chunk& chunk, int64_t tile) {
    const int64_t hidden = head_.in(), vocabulary = head_.out();
    const Range cols = block_of(width_, tile % width_.count());
    const Range r = block_of(chunk.rows, tile / width_.count() % chunk.rows.count());
    const int64_t piece = tile / width_.count() / chunk.rows.count();
    const Range depth{piece * kLossDepth, std::min(kLossDepth, vocabulary - piece * kLossDepth)};
    const View target(partial_ + piece * chunk_ * hidden, DType::f32, chunk.n, hidden);
    LinearView part = head_;
    part.weight = head_.weight.slice(depth.begin, depth.count);
    const View to = columns(target.slice(r.begin, r.count), cols);
    const ConstView v = chunk.v.slice(r.begin, r.count);
    const bool adds_pair = chunk.pair && piece == 0;
    dgrad_tile(own, columns(chunk.dz.slice(r.begin, r.count), depth), part, cols, to, false,
               adds_pair ? low_rank_gradient_tail(v, chunk.pair, cols) : Tail());
    if (!adds_pair) return;
    add_dropped_gradient(own, v, chunk.pair.from_row(r.begin), head_.compute, cols, to);
  }

  void add_pieces(const Chunk& chunk) {
    const int64_t hidden = head_.in();
    for_blocks(host_, chunk.n, row_block(hidden), [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) {
        float* to = dx_.row<float>(trained_[chunk.first + r]);
        std::copy_n(partial_ + r * hidden, hidden, to);
        for (int64_t piece = 1; piece < pieces_; ++piece) {
          const float* from = partial_ + (piece * chunk_ + r) * hidden;
          for (int64_t i = 0; i < hidden; ++i) to[i] += from[i];
        }
      }
    });
  }

  HostStream& host_;
  ConstView x_;
  LinearView head_;
  const int32_t* label_;
  double scale_;
  View dx_;
  LinearGradient gradient_;
  bool rounded_;            // rows and gradients of logits are rounded once
  int64_t chunk_, pieces_;  // rows of a chunk at most; pieces of the vocabulary
  Blocks words_, width_;
  int32_t* trained_;
  int64_t count_ = 0;  // of the trained rows
  float *logits_, *compact_, *partial_, *low_rank_in_, *low_rank_out_;
  double* row_loss_;
};

void cross_entropy(Stream& stream, ConstView x, const LinearView& head, const Labels& labels,
                   double scale, View loss, View dx, const LinearGradient& gradient) {
  Scratch::Frame frame(stream.scratch());
  const double total = ChunkedLoss(stream, x, head, labels, scale, dx, gradient).run();
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
