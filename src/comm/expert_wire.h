// How the weights of trained experts travel from their owners to the other ranks of their domain
// (`hybrid-ep`): dense, or as residuals to the mean expert of the layer (comm/residual_frame.h).
#pragma once

#include <cstdint>
#include <vector>

namespace hearth {

struct ExpertWire {
  enum class Kind : uint8_t { dense, residual, automatic };
  Kind kind = Kind::dense;
  double ratio = 1;         // of `residual`: bytes of dense weights over bytes of a frame; above 1
  double threshold = 0.1;   // most error of an expert (Encoded::error) that is sent compressed
  bool consistent = false;  // owners compute with what their peers have

  bool compresses() const { return kind != Kind::dense; }
  /// Whether owners compute with a copy that is not their master.
  bool owners_decode() const { return compresses() && consistent; }
  /// The ratios that an owner tries for an expert, in this order. It takes the first whose error is not
  /// above the threshold. If there is none, the expert travels dense. The first is what plans count on.
  std::vector<double> ratios() const {
    if (kind == Kind::residual) return {ratio};
    if (kind == Kind::automatic) return {50, 20, 10, 5, 2.5};
    return {};
  }
  friend bool operator==(const ExpertWire&, const ExpertWire&) = default;
};

/// What became of the experts of a layer on their way, in a step.
struct WiredStep {
  double ratio = 1;  // bytes if all were sent dense over bytes as sent, of one frame of each expert
  double error = 0;  // the largest of an expert (Encoded::error)
};

}  // namespace hearth
