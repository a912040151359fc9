#include "plan/zebra/expert_shift.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error_format.h"

namespace hearth {

namespace {

/// A sum of times that falls short of a chunk by rounding alone has the chunk.
constexpr double kShiftRounding = 1e-9;
/// Simulated shifts, at most.
constexpr int32_t kShiftsTried = 400;

/// Chunks of all layers, and of one.
struct ChunkBounds {
  int64_t least = 0, most = 0, of_layer = 0;
};

bool has_experts(const ZebraTimes& times, size_t layer) {
  return times.layers[layer].expert_there.total() > 0;
}

ChunkBounds chunk_bounds(const ZebraTimes& times, const ShiftBounds& bounds) {
  const ShiftChunk chunk = shift_chunk(times.attention_ranks, times.expert_ranks);
  const int64_t of_chunk = int64_t{chunk.given} * times.expert_ranks;  // experts of all ranks
  int64_t layers = 0;
  for (size_t at = 0; at < times.layers.size(); ++at) layers += has_experts(times, at) ? 1 : 0;
  ChunkBounds in;
  in.least = (std::max<int64_t>(0, bounds.least_moved) + of_chunk - 1) / of_chunk;
  in.of_layer = std::max(0, times.experts / times.expert_ranks - 1) / chunk.given;
  in.most = std::min(std::max<int64_t>(0, bounds.most_taken) / chunk.taken, layers * in.of_layer);
  if (in.least <= in.most) return in;
  throw usage_error(
      "zebra: expert ranks lack memory for {} experts, and attention ranks can take {} ({} each); "
      "more ranks would do, or more memory",
      bounds.least_moved, in.most * of_chunk, in.most * chunk.taken);
}

/// By layer, chunks that move.
using Chunks = std::vector<int64_t>;

int64_t chunks_in(const Chunks& chunks) {
  return std::accumulate(chunks.begin(), chunks.end(), int64_t{0});
}

ExpertShift shift_of(const Chunks& chunks, int32_t given) {
  if (chunks_in(chunks) == 0) return {};
  ExpertShift shift;
  for (const int64_t count : chunks) shift.push_back(static_cast<int32_t>(count) * given);
  return shift;
}

/// As evenly as whole chunks allow, over the layers that have experts.
Chunks spread(const ZebraTimes& times, int64_t count, const ChunkBounds& in) {
  Chunks chunks(times.layers.size());
  std::vector<size_t> layers;
  for (size_t at = 0; at < chunks.size(); ++at) {
    if (has_experts(times, at)) layers.push_back(at);
  }
  const auto all = std::ssize(layers);
  for (int64_t i = 0; i < all; ++i) {
    chunks[layers[static_cast<size_t>(i)]] =
        std::min(in.of_layer, (i + 1) * count / all - i * count / all);
  }
  return chunks;
}

/// Adds or takes chunks, from the last layer on, until the bounds hold.
void fit(const ZebraTimes& times, const ChunkBounds& in, Chunks& chunks) {
  for (int64_t sum = chunks_in(chunks); sum < in.least || sum > in.most;) {
    for (size_t at = chunks.size(); at-- > 0 && (sum < in.least || sum > in.most);) {
      int64_t& own = chunks[at];
      const int64_t more = sum > in.most                                 ? (own > 0 ? -1 : 0)
                           : has_experts(times, at) && own < in.of_layer ? 1
                                                                         : 0;
      own += more;
      sum += more;
    }
  }
}

double squeezed(const ZebraTimes& times, size_t layer, const ShiftChunk& chunk) {
  const ZebraLayerTimes& of = times.layers[layer];
  return chunk.given * of.expert_there.total() + chunk.taken * of.expert_here.total();
}

double gathered(const ZebraTimes& times, size_t layer) {
  const double there = experts_there(times, static_cast<int32_t>(layer), 0).total();
  return there - times.stages[layer].total();
}

Chunks seed_of(const ZebraTimes& times, const ChunkBounds& in) {
  const ShiftChunk chunk = shift_chunk(times.attention_ranks, times.expert_ranks);
  Chunks chunks(times.layers.size());
  double gather = 0, squeeze = 0, layers = 0;
  for (size_t at = 0; at < chunks.size(); ++at) {
    if (!has_experts(times, at)) continue;
    gather += gathered(times, at);
    squeeze += squeezed(times, at, chunk);
    ++layers;
  }
  if (layers == 0 || squeeze <= 0) return chunks;
  squeeze /= layers;
  if (gather <= 0) return spread(times, in.least, in);
  // Alpha and beta of the paper, of which one at most is not 1.
  const double factor = std::max(std::min(static_cast<double>(in.most) * squeeze / gather, 1.0),
                                 static_cast<double>(in.least) * squeeze / gather);
  double bubble = 0;
  for (size_t at = 0; at < chunks.size(); ++at) {
    if (!has_experts(times, at)) continue;
    const double own = squeezed(times, at, chunk);
    bubble += factor * gathered(times, at);
    if (own <= 0 || bubble < own * (1 - kShiftRounding)) continue;
    chunks[at] =
        std::min(in.of_layer, static_cast<int64_t>(std::floor(bubble / own + kShiftRounding)));
    bubble -= static_cast<double>(chunks[at]) * own;
  }
  fit(times, in, chunks);
  return chunks;
}

class ShiftSearch {
 public:
  ShiftSearch(const ZebraTimes& times, int32_t micro_batches, const ShiftBounds& bounds)
      : times_(times),
        in_(chunk_bounds(times, bounds)),
        given_(shift_chunk(times.attention_ranks, times.expert_ranks).given),
        order_(theorem_1_order(times.count(), micro_batches)) {}

  ChosenShift run() {
    const Chunks none(times_.layers.size());
    const double unshifted = time_of(none);
    take(seed_of(times_, in_));
    const int64_t step = std::max<int64_t>(1, (in_.most - in_.least) / 32);
    for (int64_t count = in_.least; count <= in_.most; count += step) {
      Chunks even = spread(times_, count, in_);
      if (chunks_in(even) >= in_.least) take(std::move(even));
    }
    while (improve()) {
    }
    if (in_.least == 0 && best_s_ > unshifted * (1 - kZebraGain)) return {{}, unshifted, unshifted};
    return {shift_of(best_, given_), best_s_, unshifted};
  }

 private:
  double time_of(const Chunks& chunks) {
    --left_;
    return simulate_zebra(times_, order_, shift_of(chunks, given_)).time_s;
  }

  bool take(Chunks chunks) {
    if (left_ <= 0 && !best_.empty()) return false;
    const double time = time_of(chunks);
    if (!best_.empty() && time >= best_s_) return false;
    best_ = std::move(chunks);
    best_s_ = time;
    return true;
  }

  /// Whether a neighbour is faster. `from` and `to`: layers; past the end none.
  bool move(size_t from, size_t to) {
    Chunks chunks = best_;
    if (from < chunks.size() && --chunks[from] < 0) return false;
    if (to < chunks.size() && (++chunks[to] > in_.of_layer || !has_experts(times_, to))) {
      return false;
    }
    const int64_t sum = chunks_in(chunks);
    return sum >= in_.least && sum <= in_.most && take(std::move(chunks));
  }

  bool improve() {
    bool better = false;
    const size_t layers = best_.size();
    for (size_t at = 0; at < layers; ++at) {
      better = move(at, layers) || better;
      better = move(layers, at) || better;
      for (const size_t next : {at + 1, at - 1}) {
        if (next < layers) better = move(at, next) || better;
      }
    }
    return better && left_ > 0;
  }

  const ZebraTimes& times_;
  const ChunkBounds in_;
  const int32_t given_;
  const ZebraOrder order_;
  int32_t left_ = kShiftsTried;
  Chunks best_;
  double best_s_ = 0;
};

}  // namespace

ShiftChunk shift_chunk(int32_t attention_ranks, int32_t expert_ranks) {
  ShiftChunk chunk;
  chunk.taken = std::max(1, expert_ranks / attention_ranks);
  chunk.given = chunk.taken * attention_ranks / expert_ranks;
  return chunk;
}

int64_t most_chunks(const ZebraTimes& times) { return chunk_bounds(times, {}).most; }

ExpertShift even_shift(const ZebraTimes& times, int64_t chunks) {
  return shift_of(spread(times, chunks, chunk_bounds(times, {})),
                  shift_chunk(times.attention_ranks, times.expert_ranks).given);
}

ExpertShift gather_and_squeeze(const ZebraTimes& times, const ShiftBounds& bounds) {
  return shift_of(seed_of(times, chunk_bounds(times, bounds)),
                  shift_chunk(times.attention_ranks, times.expert_ranks).given);
}

ChosenShift choose_expert_shift(const ZebraTimes& times, int32_t micro_batches,
                                const ShiftBounds& bounds) {
  return ShiftSearch(times, micro_batches, bounds).run();
}

void require_shift(const ExpertShift& shift, int32_t attention_ranks, int32_t expert_ranks,
                   int64_t experts, int64_t layers, const std::string& what) {
  if (std::ssize(shift) != layers) {
    throw usage_error("{}: has {} numbers, and the model has {} layers with experts; one for each",
                      what, shift.size(), layers);
  }
  const ShiftChunk chunk = shift_chunk(attention_ranks, expert_ranks);
  const int64_t most = std::max<int64_t>(0, experts / expert_ranks - 1) / chunk.given * chunk.given;
  for (const int32_t moved : shift) {
    if (moved >= 0 && moved <= most && moved % chunk.given == 0) continue;
    throw usage_error(
        "{}: {} experts cannot move: {} experts on {} expert ranks, each keeps one, and {} "
        "attention ranks take equally many; {} would do",
        what, moved, experts, expert_ranks, attention_ranks,
        most == 0 ? std::string("0 alone")
        : chunk.given == 1
            ? "0 to " + std::to_string(most)
            : "multiples of " + std::to_string(chunk.given) + " up to " + std::to_string(most));
  }
}

}  // namespace hearth
