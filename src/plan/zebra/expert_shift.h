// Experts that move to attention ranks while expert ranks have more to do (Asym-EA, HeterMoE, arXiv
// 2504.03871, section 4.2). Pure; no clock.
//
// The paper's Algorithm 1 is the seed of a local search, with these corrections:
//
//   - In T_squeeze each time goes with its own number of experts (the paper swaps n1 and n2):
//       T_squeeze = n2 * (one expert at an expert rank) + n1 * (one expert at an attention rank)
//   - The least number of chunks is rounded up, and is that of one expert rank.
//   - Chunks are integers: a sum that rounding leaves just short of a chunk counts as one.
//   - Each expert rank keeps one expert of each layer.
//   - If experts must move though attention takes longer, they spread evenly over the layers.
#pragma once

#include <limits>
#include <string>

#include "plan/zebra/zebra_simulation.h"

namespace hearth {

/// The least that can move: n1 experts to each attention rank, n2 from each expert rank.
struct ShiftChunk {
  int32_t taken = 1, given = 1;
};
/// One of the numbers divides the other.
ShiftChunk shift_chunk(int32_t attention_ranks, int32_t expert_ranks);

/// What memory asks for.
struct ShiftBounds {
  /// Experts of all layers that expert ranks together have no room for (the paper's n_min).
  int64_t least_moved = 0;
  /// Experts of all layers that an attention rank has room for (n_max).
  int64_t most_taken = std::numeric_limits<int64_t>::max();
};

/// The most chunks that can move, of all layers together.
int64_t most_chunks(const ZebraTimes& times);
/// So many chunks, at most `most_chunks`, as evenly over the layers with experts as whole chunks allow.
ExpertShift even_shift(const ZebraTimes& times, int64_t chunks);

/// Algorithm 1, corrected. Usage error with the numbers if no shift is within the bounds.
ExpertShift gather_and_squeeze(const ZebraTimes& times, const ShiftBounds& bounds = {});

struct ChosenShift {
  ExpertShift shift;  // empty: none moves
  double time_s = 0;  // simulated
  double unshifted_s = 0;
};

/// A local search from the seed, over chunks that are added, taken away, or moved to the next layer; the
/// least simulated time of a group. No expert moves unless that saves a thousandth, or must be.
ChosenShift choose_expert_shift(const ZebraTimes& times, int32_t micro_batches,
                                const ShiftBounds& bounds = {});

/// Usage error that says what would do, unless the shift has a number for each of `layers` layers, each
/// of whole chunks, and leaves an expert to each expert rank. `what`: for people, what gave it.
void require_shift(const ExpertShift& shift, int32_t attention_ranks, int32_t expert_ranks,
                   int64_t experts, int64_t layers, const std::string& what);

}  // namespace hearth
