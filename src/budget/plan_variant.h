// A run changed in some options, for the search for one that fits.
#pragma once

#include <algorithm>
#include <string>

#include "base/glob.h"
#include "budget/plan_changes.h"

namespace hearth {

/// `options` says how, as the command line takes it.
struct PlanVariant {
  std::string options;
  RunSettings settings;
  ParameterTable table;
  PlanRequest request;
  int64_t seq_len = 0, micro_batch = 1, grad_accum = 1;

  void add(const std::string& option) { options += (options.empty() ? "" : " ") + option; }

  /// As many tokens a step in micro-batches of `sequences`.
  void cut_micro_batch(int64_t sequences) {
    if (sequences == micro_batch) return;
    grad_accum *= micro_batch / sequences;
    micro_batch = sequences;
    add("--micro-batch " + std::to_string(micro_batch) + " --grad-accum " +
        std::to_string(grad_accum));
    bound_tokens();
  }
  void cut_sequences(int64_t length) {
    seq_len = length;
    add("--seq-len " + std::to_string(length));
    bound_tokens();
  }
  bool freeze(const std::string& glob) {
    int64_t left = 0;
    bool changed = false;
    for (Tensor& t : table.tensors()) {
      changed |= t.trainable && glob_matches(glob, t.name);
      if (glob_matches(glob, t.name)) t.trainable = false;
      left += t.trainable;
    }
    add("--freeze '" + glob + "'");
    return changed && left > 0;
  }
  bool train_only(const std::string& glob) {
    bool any = false;
    for (Tensor& t : table.tensors()) {
      t.trainable = t.trainable && glob_matches(glob, t.name);
      any |= t.trainable;
    }
    add("--trainable '" + glob + "'");
    return any;
  }

 private:
  void bound_tokens() {
    request.micro_batches = grad_accum;
    request.longest = std::min(request.longest, seq_len);
    request.tokens = std::min(request.tokens, micro_batch * seq_len);
    request.eval_tokens = std::min(request.eval_tokens, micro_batch * seq_len);
  }
};

}  // namespace hearth
