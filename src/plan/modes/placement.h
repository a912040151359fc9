// Where the parts of a model are: which place holds the dense parts of each layer, and which places
// its routed experts are divided among.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/place.h"

namespace hearth {

/// Consecutive layers whose dense parts one place holds. Layer -1 is the embedding, and the layer
/// after the last is the head.
struct Stage {
  Place place = kHostPlace;
  int32_t first = -1;
  int32_t last = std::numeric_limits<int32_t>::max();
  friend bool operator==(const Stage&, const Stage&) = default;
};

/// Whether all weights live on the host and are loaded to the devices that compute with them: never,
/// when a task needs them (`gpipe-offload`), or while the tasks before it run (`mobius`).
enum class Travel : uint8_t { never, on_demand, ahead };

struct Placement {
  std::vector<Stage> stages;  // in forward order; together they hold every layer
  /// Of backward, in the order in which they run, if it is cut apart from forward (`roundpipe`): every
  /// layer and the embedding. The head has one task, in forward. Empty: backward has `stages`.
  std::vector<Stage> backward = {};
  /// The routed experts of each layer are divided among these places, in contiguous runs of equal
  /// numbers. Empty: they are with the dense parts of their layer.
  std::vector<Place> experts = {};
  /// Where each expert is, by layer and number, instead of that. Empty: as `experts` says.
  std::vector<std::vector<Place>> homes = {};
  bool travels =
      false;  // all blocks live on the host; stages and experts say where they are computed

  Placement() : stages(1) {}
  /// Dense parts at one place, experts at one place.
  Placement(Place dense, Place experts_at) : stages{{.place = dense}} {
    if (experts_at != dense) experts = {experts_at};
  }
  Placement(std::vector<Stage> cut, std::vector<Place> experts_at)
      : stages(std::move(cut)), experts(std::move(experts_at)) {}

  Place dense(int32_t layer) const;
  /// The place of an expert of a layer, of `count` experts.
  Place expert(int32_t layer, int32_t number, int64_t count) const;
  /// Every place that computes, once: the stages in forward order, then the experts'.
  std::vector<Place> places() const;
  /// Whether experts are at other places than the dense parts of their layers.
  bool experts_apart() const { return !experts.empty(); }
  friend bool operator==(const Placement&, const Placement&) = default;
};

}  // namespace hearth
