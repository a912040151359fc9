// How good predictions were: what a run reports as `prediction`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "predictor/predictor.h"

namespace hearth {

/// Adds up over micro-batches and layers. Each measure is a share, 0 to 1; nullopt if nothing was
/// added to it.
class PredictionScore {
 public:
  /// A prediction of a micro-batch, and what the router did: `counts` [E] tokens by expert, `choices`
  /// [T, K]. `choices` may be empty if no choices were foretold.
  void add(const Prediction& prediction, int64_t top_k, std::span<const int64_t> counts,
           std::span<const int32_t> choices = {});
  /// For the rank measure alone: tokens by expert, such as those of a whole group.
  void add_ranks(std::span<const double> foretold, std::span<const double> real);
  /// By expert of a layer: whether its load was asked for by the prediction, and whether it computed
  /// on the device; and its bytes.
  void add_loads(std::span<const uint8_t> foretold, std::span<const uint8_t> used,
                 std::span<const double> bytes);
  void add(const PredictionScore& other);

  /// The share of the choices of tokens that were foretold. A prediction of counts alone foretells
  /// for every token the K most popular experts. Tokens whose choices were foretold stand for all of
  /// their micro-batch.
  std::optional<double> token_hit() const { return share(hits_, choices_); }
  /// The share of the E/4 least popular experts that were foretold among the 3E/8 least popular
  /// (APTMoE, IV-E 2; predictor/persistence.h has the rounding).
  std::optional<double> least_quarter() const { return share(found_, least_); }
  /// The share of the bytes of experts that computed on a device whose load was foretold.
  std::optional<double> byte_hit() const { return share(foretold_bytes_, used_bytes_); }

 private:
  static std::optional<double> share(double part, double whole) {
    return whole > 0 ? std::optional(part / whole) : std::nullopt;
  }

  double hits_ = 0, choices_ = 0;
  double found_ = 0, least_ = 0;
  double foretold_bytes_ = 0, used_bytes_ = 0;
};

}  // namespace hearth
