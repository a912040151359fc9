// How the experts of a layer are divided among the places that compute them.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/place.h"
#include "model/parameter_table.h"

namespace hearth {

/// Reads the value `split` of a layer, i32 [E + places + 1]: the experts, each once, in the order of
/// computing, place after place; then the position at which each place begins, and E. Rows of routed
/// tokens lie in the order of these positions, so that those of a place are neighbours. Does not own
/// the value.
class SplitView {
 public:
  SplitView(std::span<const int32_t> value, int64_t experts)
      : order_(value.first(static_cast<size_t>(experts))),
        begin_(value.subspan(static_cast<size_t>(experts))) {}

  /// The value as a task declares it; of several micro-batches, which have one split, the first.
  SplitView(ConstView value, int64_t experts)
      : SplitView({value.as<int32_t>(), static_cast<size_t>(value.rows)}, experts) {}

  static int64_t size(int64_t experts, int64_t places) { return experts + places + 1; }
  /// The number of the expert at a position.
  int32_t expert(int64_t position) const { return order_[static_cast<size_t>(position)]; }
  /// The positions [first, second) of a place's experts.
  std::pair<int32_t, int32_t> positions(Place place) const {
    const auto at = static_cast<size_t>(place);
    return {begin_[at], begin_[at + 1]};
  }

 private:
  std::span<const int32_t> order_, begin_;
};

/// The expert of a layer that both the host and the layer's device compute, each a range of its width.
/// Its rows are in the host's part of the split, the last of it.
struct DividedExpert {
  int32_t expert = -1;  // -1: none is divided
  int64_t width = 0;    // columns [0, width) are the device's, the others the host's

  bool any() const { return expert >= 0; }
  friend bool operator==(const DividedExpert&, const DividedExpert&) = default;
};

/// Reads the value `divided` of a layer and a micro-batch, i32 [4]. All zeros: no expert is divided.
struct DividedView {
  int64_t position = 0;  // of the expert in the split
  int64_t width = 0;     // DividedExpert::width
  int64_t first = 0;     // of the expert's rows, in the order of the split
  int64_t rows = 0;

  static constexpr int64_t kSize = 4;
  explicit DividedView(ConstView value) {
    const int32_t* const of = value.as<int32_t>();
    position = of[0], width = of[1], first = of[2], rows = of[3];
  }
  bool any() const { return width > 0; }
};

/// The experts of a layer that its device will probably compute, in the order of computing.
struct ForetoldExperts {
  int32_t layer = 0;
  std::vector<int32_t> experts;
};

/// What models of the routers read. Samples have rows of it (layers/router_sample.h).
enum class SampledRows : uint8_t {
  none,    // there are no samples
  router,  // what the router of a layer reads
  layer    // what enters a layer, before its attention
};

/// What enters a layer: evenly spaced tokens of a micro-batch.
struct LayerSample {
  int64_t tokens = 0;               // of the micro-batch
  std::span<const float> residual;  // [n, H]
};

/// What the router of a layer read and said of evenly spaced tokens of a micro-batch.
struct RouterSample {
  int32_t layer = 0;
  int64_t tokens = 0;              // of the micro-batch
  std::span<const double> counts;  // [E] choices of all its tokens
  std::span<const float> normed;   // [n, H]; only with SampledRows::router
  std::span<const float> probs;    // [n, E]
};

/// Who divides the experts of layers while a step runs.
class SplitRule {
 public:
  virtual ~SplitRule() = default;
  /// Before attention of the layer: samples of the micro-batches that `divide` will have. Only with
  /// SampledRows::layer. Called like `divide`.
  virtual void entered(int32_t /*layer*/, std::span<const LayerSample> /*samples*/) {}
  /// Before `divide` of the layer, for each micro-batch of its group, by the same thread. Only if
  /// the schedule has samples (PlanInput::samples).
  virtual void sampled(const RouterSample& /*sample*/) {}
  /// `tokens`: [micro-batches of the group, experts], the choices of each expert. Writes the place that
  /// computes each expert: the layer's device, or the host. Called by the threads of the host's
  /// streams, at the same time for layers of different devices.
  virtual void divide(int32_t layer, std::span<const double> tokens, std::span<Place> places) = 0;
  /// Of the split that `divide` has just made of this layer: the experts of its device in the order in
  /// which it computes them. Empty: by number. Called behind `divide` by the same thread.
  virtual std::vector<int32_t> order(int32_t /*layer*/) const { return {}; }
  /// Of the same split: the expert of the host's that its device computes a part of. Only if the
  /// schedule divides experts (PlanInput::divides).
  virtual DividedExpert divided(int32_t /*layer*/) const { return {}; }
  /// Of the layers of the step that begins. What it leaves out stays as it was.
  virtual std::vector<ForetoldExperts> foretold() const { return {}; }
  /// What `divide` of this layer has made known of later layers. Called behind it by the same thread.
  virtual std::vector<ForetoldExperts> foretold_behind(int32_t /*layer*/) const { return {}; }
  /// What `entered` of this layer has made known of it. Called behind it by the same thread.
  virtual std::vector<ForetoldExperts> foretold_here(int32_t /*layer*/) const { return {}; }
};

/// Writes the split in which every place computes the experts that are given to it, and the position of
/// each expert, i32 [E]. The experts of `first`, each once, come first at their places, in this order;
/// the others in the order of their numbers.
void split_by_places(std::span<const Place> places, std::span<int32_t> split,
                     std::span<int32_t> position, std::span<const int32_t> first = {});
/// The same, where every place computes the experts that live there.
void split_by_home(const ParameterTable& table, int32_t layer, std::span<int32_t> split,
                   std::span<int32_t> position);

}  // namespace hearth
