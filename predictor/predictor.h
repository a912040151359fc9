// A predictor foretells how many tokens choose each expert of a layer before the router of the layer
// has run. Decisions that load experts ahead read it. It never touches the model: a wrong prediction
// costs time and changes no bit of a result.
//
// Layers are counted among those with routed experts, from 0. Shapes: T tokens of a micro-batch,
// H hidden size, E experts, K experts per token.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/pool.h"
#include "base/state_registry.h"

namespace hearth {

struct RoutedShape {
  int32_t layers = 0;
  int64_t experts = 0;
  int64_t top_k = 1;
};

/// A micro-batch at a layer.
struct RoutedBatch {
  int64_t step = 1;
  int32_t layer = 0;
  int32_t micro_batch = 0;
  int32_t micro_batches = 1;  // of the step
  int64_t tokens = 0;
};

/// Which rows a predictor reads to foretell a layer, f32 [T, H].
enum class PredictorInput : uint8_t {
  router,  // what enters the router of a layer: the normalised hidden state
  layer    // what enters a layer: the residual stream before its attention
};
struct PredictorSource {
  PredictorInput input = PredictorInput::router;
  int32_t layer = 0;
  friend bool operator==(const PredictorSource&, const PredictorSource&) = default;
};

struct Prediction {
  std::vector<double> tokens;    // by expert; they add up to T * K
  std::vector<int32_t> rows;     // the tokens whose choices were foretold, rising; may be none
  std::vector<int32_t> choices;  // [rows, K] their experts, the likeliest first
};

/// What the router of a layer did with a micro-batch.
struct RoutedTokens {
  std::span<const int64_t> counts;    // [E] tokens by expert
  std::span<const float> rows = {};   // [T, H] of the layer's source; empty without a source
  std::span<const float> probs = {};  // [T, E] softmax of the router's logits; the same
};

/// In a step, `predict` and `learn` may be called for different layers and micro-batches at one time.
/// What is learned takes effect at `end_step`, so no prediction depends on the order of the calls,
/// nor on the number of workers. A call needs rows exactly if the layer has a source.
class Predictor {
 public:
  virtual ~Predictor() = default;

  /// The rows that foretell a layer; nullopt: none, since only past counts do.
  virtual std::optional<PredictorSource> source(int32_t layer) const = 0;
  /// `rows`: [T, H] of the source.
  virtual Prediction predict(const RoutedBatch& batch, std::span<const float> rows,
                             const Pool& pool) const = 0;
  virtual void learn(const RoutedBatch& batch, const RoutedTokens& routed) = 0;
  /// After the last call of a step.
  virtual void end_step(const Pool& pool) = 0;
  /// Between steps, its state is all in what it registers. It must outlive the registry.
  virtual void register_state(StateRegistry& registry) = 0;
};

}  // namespace hearth
