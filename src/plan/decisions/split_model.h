// How long a layer takes if its experts are divided in a given way: the objective of rules.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/decisions/split_problem.h"

namespace hearth {

/// Of a copy that has the link to itself; 0 for no bytes.
double link_seconds(const LinkRate& link, double bytes);

/// Seconds from the decision to the end of the work of each resource, in one pass. A resource without
/// work of this layer ends at 0.
struct PassTimes {
  double device = 0, host = 0, in = 0, out = 0, memory = 0;
  double makespan() const;
};

/// An expert of the host of which the device computes a share of the width.
struct DividedShare {
  int32_t expert = -1;  // -1: none
  double share = 0;
};

/// A pass as it runs:
///   device  computes what is here, then what is coming, then what is loaded, the most tokens first;
///           each expert after it has arrived
///   in      loads in that order, after what comes before them; then rows of the host's results
///   out     rows to the host at once; gradients after what comes before them
///   host    computes its experts after their rows have come, and sends the results back
///   memory  the host's memory: calls of the host, and what the links move
/// A share of an expert's width is packed beside the host's experts, loaded last and computed last; its
/// gradient is the last to go home, where the host adds it.
/// Each resource does one thing at a time. The passes of a split follow each other.
class SplitModel {
 public:
  /// The problem must outlive the model. std::logic_error if its shapes do not fit.
  explicit SplitModel(const SplitProblem& problem);

  const SplitProblem& problem() const { return problem_; }
  /// Of all micro-batches of the group.
  double tokens(int32_t expert) const { return tokens_[static_cast<size_t>(expert)]; }
  /// Experts with tokens, the most tokens first; of equals the lower number.
  std::span<const int32_t> ranking() const { return ranking_; }

  /// `on_device`: by expert, 0 or 1. Experts without tokens do not count.
  PassTimes times(size_t pass, std::span<const uint8_t> on_device, DividedShare divided = {}) const;
  /// The sum of the makespans of all passes.
  double seconds(std::span<const uint8_t> on_device, DividedShare divided = {}) const;

  /// Seconds of an expert over all passes, if nothing else went on.
  double host_seconds(int32_t expert) const;
  double device_seconds(int32_t expert) const;  // loads included
  double host_seconds(size_t pass, int32_t expert) const;
  double load_seconds(size_t pass, int32_t expert) const;
  double gradient_seconds(size_t pass) const { return costs_[pass].gradient_s; }

  /// Whether the device has the expert, or gets it whatever is decided, in every pass.
  bool is_given(int32_t expert) const;
  /// Whether the device would have to load the expert in the first pass.
  bool is_away(int32_t expert) const;
  /// The split with its lists in order, its reasons on the device and its time. Experts on the host
  /// have the reason `policy` until a rule says more.
  ExpertSplit split_of(std::span<const uint8_t> on_device) const;

 private:
  struct Costs {
    std::vector<double> host_s, device_s, load_s, bytes;  // by expert
    std::vector<int32_t> order;                           // of computing on the device
    double gradient_s = 0;
  };

  const SplitProblem& problem_;
  std::vector<double> tokens_;
  double all_tokens_ = 0;
  std::vector<double> host_calls_;  // by expert
  std::vector<int32_t> ranking_;
  std::vector<Costs> costs_;  // by pass
};

}  // namespace hearth
