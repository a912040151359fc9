// The uses of items: which items each needs, which it waits for, and which it holds.
#pragma once

#include <span>
#include <vector>

#include "plan/loader/loader_types.h"

namespace hearth {

/// A use waits until all its items are ready, then holds them all at once. It never holds some while
/// it waits for others, so two uses cannot wait for each other. Knows neither slots nor loads.
class UseTable {
 public:
  UseTable(size_t items, int32_t uses);

  /// A free use begins to wait. `order`: of its first need; each need takes one more.
  void demand(UseId use, std::span<const Need> needs, Start start, uint64_t order);
  /// An item has become ready, or is so no more; for each kind of start. Appends uses that now have
  /// all their items to `complete`.
  void set_ready(ItemId item, bool arrived, bool issued, std::vector<UseId>& complete);
  bool is_complete(UseId use) const;
  /// A waiting use holds its items from now on: they do not wait any longer.
  void grant(UseId use);
  /// Frees a use, waiting or holding.
  void free(UseId use);

  bool is_waiting(UseId use) const { return at(use).state == State::waiting; }
  bool holds(UseId use) const { return at(use).state == State::holding; }
  int32_t holding() const { return holding_; }
  UseId uses() const { return static_cast<UseId>(uses_.size()); }
  std::span<const Need> needs(UseId use) const { return at(use).needs; }
  /// Whether a use waits for the item, and the order of the need that came first.
  bool is_demanded(ItemId item) const { return waiting_[static_cast<size_t>(item)].first >= 0; }
  uint64_t demand_order(ItemId item) const;
  /// The use that has waited longest for the item, which must be demanded.
  UseId first_use(ItemId item) const;

 private:
  enum class State : uint8_t { free, waiting, holding };
  struct Use {
    State state = State::free;
    Start start = Start::arrived;
    int32_t missing = 0;
    std::vector<Need> needs;
    std::vector<int32_t> nodes;  // while it waits
  };
  /// A need that waits, in the list of its item.
  struct Node {
    UseId use = -1;
    bool is_ready = false;
    uint64_t order = 0;
    int32_t before = -1, after = -1;
  };
  struct List {
    int32_t first = -1, last = -1;
  };

  const Use& at(UseId use) const { return uses_[static_cast<size_t>(use)]; }
  void stop_waiting(Use& use);

  std::vector<Use> uses_;
  std::vector<Node> nodes_;
  std::vector<int32_t> free_nodes_;
  std::vector<List> waiting_;  // by item: its needs that wait, the oldest first
  int32_t holding_ = 0;
};

}  // namespace hearth
