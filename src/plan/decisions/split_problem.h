// What a decision about the experts of a layer knows, and what it answers: which experts the device
// computes, and which the host. Pure data. No clock, no arrival and no free memory is in it: what the
// caches hold comes from the book, which runs on the times of cost tables.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "device/link_rate.h"
#include "layers/split.h"
#include "plan/cost_table.h"
#include "plan/loader/loader_types.h"

namespace hearth {

/// Why an expert is where it is. The journal spells them with hyphens.
enum class SplitReason : uint8_t {
  none,          // it has no tokens
  resident,      // on the device, which has it
  prefetched,    // on the device, for which it was asked before its tokens were known
  loaded,        // on the device, which loads it now
  host_cheaper,  // on the host: the device alone would take longer, load included
  host_balance,  // on the host, so that all resources end early
  no_room,       // on the host: the device may not compute more experts
  split,         // divided along its width
  policy         // the policy does not look at tokens
};
/// Empty for `none`.
std::string_view name_of(SplitReason reason);
/// The reason of this name; none if there is no such name.
SplitReason reason_named(std::string_view name);

/// An expert as the book has it.
struct ExpertState {
  Where where = Where::home;
  /// Bytes that have yet to pass the link before the device can compute it: weights and, in a backward
  /// that trains it, an accumulator that is not zero. 0 if it is here.
  double bytes_left = 0;
  double here_in_s = 0;  // of what is `coming`: seconds from the decision until it is here
};

/// How a place computes an expert: each micro-batch by itself, or all of the group in one call, which
/// reads the weights once.
enum class ExpertCalls : uint8_t { per_micro_batch, per_group };

/// A direction of the layer that the split holds for. A split that holds for a forward and its
/// backward has two.
struct SplitPass {
  std::span<const ExpertState> experts;
  const CostEntry* host = nullptr;  // times of one expert by its tokens
  const CostEntry* device = nullptr;
  /// Seconds until the link to the device has moved what comes before loads of this decision: what is
  /// coming, and dense blocks of the layer that the device lacks.
  double in_free_s = 0;
  double out_free_s = 0;  // the same of the link to the host
  /// Seconds that the host's cores are busy with other work of the layer's time: updates of the step before.
  double host_free_s = 0;
  /// What each expert on the device sends home.
  double gradient_bytes = 0;
  /// Per token of an expert on the host, from the host to the device.
  double row_in_bytes = 0;
  /// From the device to the host: all tokens, each once, whatever the number of its experts there. So
  /// this is per token of any expert: a token's vector, divided by its experts.
  double choice_out_bytes = 0;
  /// What a call of an expert on the host moves in the host's memory: weights, gradients.
  double host_call_bytes = 0;
};

struct SplitProblem {
  int64_t experts = 0;
  std::span<const double> tokens;  // [known micro-batches, experts], real or predicted
  int32_t micro_batches = 1;       // of the group. Unknown ones count as the mean of the known
  ExpertCalls host_calls = ExpertCalls::per_group;
  ExpertCalls device_calls = ExpertCalls::per_micro_batch;
  std::span<const SplitPass> passes;  // one after the other; at least one
  LinkRate in, out;                   // as fast as they are while both directions are busy
  double memory_bytes_per_s = 0;      // of the host's memory; 0: no limit
  /// Experts with tokens that the device can compute at most. Slots, unless it computes in waves.
  int64_t device_experts = std::numeric_limits<int64_t>::max();
  // Of Equation 1 as printed, which counts all loads, whatever is here.
  double dense_bytes = 0;   // attention and router of the layer
  double expert_bytes = 0;  // weights of an expert

  /// Columns of an expert. 0: none may be divided along its width.
  int64_t width = 0;
  /// Groups that the micro-batches come in. The columns of a divided expert travel for each.
  int32_t groups = 1;

  int64_t known() const { return std::ssize(tokens) / experts; }
};

/// Every expert with tokens is in one of the lists.
struct ExpertSplit {
  std::vector<int32_t> device;  // in the order of computing: what is here first, then as it arrives
  std::vector<int32_t> host;    // the most tokens first
  std::vector<SplitReason> reasons;  // by expert
  double predicted_s = 0;            // of all passes (plan/decisions/split_model.h)
  DividedExpert divided = {};        // one of the host's, if any
};

}  // namespace hearth
