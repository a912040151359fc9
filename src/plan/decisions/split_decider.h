// Divides the experts of layers between their devices and the host while a step runs, with the tokens
// of the group and the times of cost tables. No clock and no arrival is in a decision, so equal runs
// decide alike.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "layers/split.h"
#include "plan/cost_table.h"
#include "plan/decisions/foresight.h"
#include "plan/decisions/recorded_splits.h"
#include "plan/decisions/resident_book.h"
#include "plan/decisions/router_foresight.h"
#include "plan/decisions/split_problem.h"
#include "plan/decisions/token_foresight.h"

namespace hearth {

/// A rule that answers a problem: split_by_makespan, split_by_equation_1, ...
using SplitAnswer = ExpertSplit (*)(const SplitProblem&);

/// A pass through a layer that a split holds for.
struct DecidedPass {
  std::shared_ptr<const CostTable> host_table, device_table;  // which own the entries
  const CostEntry* host = nullptr;
  const CostEntry* device = nullptr;
  bool adds_gradients = false;
  /// Seconds of the layer's other tasks at the device, of a full micro-batch: while they run, the link
  /// loads ahead.
  double dense_s = 0;
  double sent_bytes = 0;  // of a token's vector, as it crosses to the host
};

/// A device and the layers whose dense parts it computes.
struct DecidedDevice {
  Place place = kHostPlace;
  std::vector<int32_t> layers;  // with experts, ascending
  std::vector<int32_t> stages;  // of each of these layers; empty: all are of one stage
  int64_t groups = 1;           // of micro-batches of a step, and
  int64_t group = 1;            // the most micro-batches of one
  /// Forward; of training, with recompute twice, then backward. Empty: a place has no times for experts,
  /// and the device computes all of them.
  std::vector<DecidedPass> passes;
  LinkRates link;
  double weight_bytes = 0;        // of an expert and its adapter, as they cross the link
  double gradient_bytes = 0;      // of their accumulators; 0: none
  double row_bytes = 0;           // of a token's vector, as it comes back
  int64_t slots = 0;              // experts that the device's copies of weights are enough for
  double full_tokens = 0;         // choices of a full micro-batch
  double memory_bytes_per_s = 0;  // of the host's memory; 0: no limit
  bool is_trained = false;        // the weights change in each step
  double update_s = 0;            // of a layer at the host, in forward: updates of the step before
  int64_t width = 0;              // of an expert, if one of a layer may be divided along it
};

/// What was decided about a layer for a group of micro-batches.
struct SplitDecision {
  int32_t layer = 0;
  Place device = kHostPlace;
  std::vector<double> tokens;  // by expert, of the group
  ExpertSplit split;           // reasons by expert
};

/// What decisions about the experts of a device know of earlier ones.
struct DecidedPast {
  Place device = kHostPlace;
  std::vector<std::pair<int32_t, int32_t>> loaded;  // layer, expert: the one used last first
  /// The experts that layers gave the device last, in the order of computing.
  std::vector<std::pair<int32_t, std::vector<int32_t>>> given;
  /// Tokens by expert of the last whole step, by layer.
  std::vector<std::pair<int32_t, std::vector<double>>> tokens = {};
};

/// Equal calls in equal order give equal splits. Thread-safe.
class SplitDecider final : public SplitRule {
 public:
  /// `top_k`: experts per token.
  SplitDecider(std::vector<DecidedDevice> devices, int64_t experts, SplitAnswer answer,
               const Foresight& foresight = {}, int64_t top_k = 1);

  /// From now on the splits are those of this record, whatever the rule would say. With
  /// ForetoldBy::oracle they are foretold, too.
  void repeat(std::shared_ptr<const RecordedSplits> recorded) { recorded_ = std::move(recorded); }
  /// From now on, what it knows of a layer counts more than the tokens of earlier groups. It must
  /// outlive the object.
  void foretell_with(RouterForesight* routers) { routers_ = routers; }
  /// Trained weights that are at devices are older than those of the host from now on. Foretells the
  /// splits of the step, with the tokens of the last step that was ended.
  void begin_step(int64_t step);
  /// The step is whole: its tokens foretell the next.
  void end_step();
  void entered(int32_t layer, std::span<const LayerSample> samples) override;
  void sampled(const RouterSample& sample) override {
    if (routers_ != nullptr) routers_->sampled(sample);
  }
  /// Input error if a split is to be repeated that is not in the record.
  void divide(int32_t layer, std::span<const double> tokens, std::span<Place> places) override;
  std::vector<int32_t> order(int32_t layer) const override { return last(layer).device; }
  DividedExpert divided(int32_t layer) const override { return last(layer).divided; }
  /// With times and a history: the split that each layer of the step would have with foretold tokens.
  std::vector<ForetoldExperts> foretold() const override;
  /// With the phase inter_layer: the next layer of the stage, and the one whose tokens the routers of
  /// this layer foretell.
  std::vector<ForetoldExperts> foretold_behind(int32_t layer) const override;
  /// With the phase inter_layer.
  std::vector<ForetoldExperts> foretold_here(int32_t layer) const override;
  /// How good what was foretold has been since the step began.
  PredictionScore score() const;
  /// Since the step began, layer by layer; of a layer in the order of its groups.
  std::vector<SplitDecision> decisions() const;
  /// What it decided for a layer last; empty lists before the first time.
  ExpertSplit last(int32_t layer) const;
  /// Between steps. With the past of another run of these layers the next splits are that run's. What
  /// it says of other devices and layers counts for nothing; of fewer slots, what was used last.
  std::vector<DecidedPast> past() const;
  void restore(std::span<const DecidedPast> past);

 private:
  struct ForetoldSplit {
    std::vector<double> tokens;  // by expert; empty: nothing is foretold
    ExpertSplit split;
    ForetoldBy by = ForetoldBy::history;
  };
  struct OfDevice {
    DecidedDevice device;
    ResidentBook book;
    mutable std::mutex mutex;
    std::vector<ExpertSplit> last;    // by layer of the device
    std::vector<SplitDecision> made;  // in this step
    TokenForesight tokens;
    std::vector<ForetoldSplit> foretold;  // by layer of the device: of its next group
    std::vector<int64_t> divided;         // by layer of the device: micro-batches of this step
    OfDevice(DecidedDevice given, int64_t experts, int64_t top_k)
        : device(std::move(given)),
          book(device.slots, experts),
          last(device.layers.size()),
          tokens(std::ssize(device.layers), experts, top_k, device.groups),
          foretold(device.layers.size()),
          divided(device.layers.size()) {}
  };
  /// The device of a layer, and the layer's number there.
  std::pair<OfDevice*, size_t> of_layer(int32_t layer) const;
  /// Experts that the link can load while the other tasks of a layer run.
  int64_t loaded_ahead(const DecidedDevice& device, const DecidedPass& pass,
                       std::span<const double> tokens) const;
  ExpertSplit with_places_of_step(const OfDevice& of, size_t layer, ExpertSplit split) const;
  int32_t groups_served(const OfDevice& of, size_t layer, int64_t each) const;
  /// The answer of the rule. `ahead`: experts in the order in which they are loaded ahead.
  ExpertSplit answer_for(const OfDevice& of, size_t layer, std::span<const double> tokens,
                         std::span<const int32_t> ahead) const;
  /// With the history, or with what was recorded.
  void foretell(OfDevice& of, size_t layer) const;
  void foretell_recorded(OfDevice& of, size_t layer) const;
  /// With the routers' foresight of `count` micro-batches from `begin` on, if they have one.
  void foretell_by_routers(OfDevice& of, size_t layer, int64_t begin, int64_t count) const;
  /// The answer to foretold tokens, as far as the experts have tokens.
  ExpertSplit foretold_split(const OfDevice& of, size_t layer,
                             std::span<const double> tokens) const;
  ForetoldExperts foretold_of(const OfDevice& of, size_t layer) const {
    return {of.device.layers[layer], of.foretold[layer].split.device};
  }

  std::vector<std::unique_ptr<OfDevice>> devices_;
  const int64_t experts_;
  const double top_k_;
  const SplitAnswer answer_;
  const LoadPhases phases_;
  const ForetoldBy predictor_;
  std::shared_ptr<const RecordedSplits> recorded_;
  RouterForesight* routers_ = nullptr;
  int64_t step_ = 0;
};

}  // namespace hearth
