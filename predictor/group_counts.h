// What is known of the tokens per expert of a layer while its micro-batches pass one after the other:
// predicted counts first, real counts once the router has run (APTMoE, III-C 3).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hearth {

class GroupCounts {
 public:
  GroupCounts(int64_t experts, int32_t micro_batches);

  /// Predicted tokens [E] of a micro-batch. No effect once its real counts are known.
  void set_predicted(int32_t micro_batch, std::span<const double> tokens);
  /// Real counts, in place of predicted ones.
  void set_real(int32_t micro_batch, std::span<const int64_t> tokens);
  /// Forgets all, for the next step.
  void clear();

  int32_t micro_batches() const { return static_cast<int32_t>(state_.size()); }
  /// Micro-batches whose counts are known or predicted.
  int32_t known() const;
  bool all_real() const;
  /// [known, E], by micro-batch.
  std::vector<double> tokens() const;
  /// [E] over all micro-batches: those that are not known count as the mean of those that are.
  std::vector<double> projected() const;

 private:
  enum class State : uint8_t { unknown, predicted, real };
  size_t experts_;
  std::vector<State> state_;    // by micro-batch
  std::vector<double> tokens_;  // [micro-batches, E]
};

}  // namespace hearth
