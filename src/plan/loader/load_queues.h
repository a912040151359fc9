// Several queues of items, each ordered by LoadKey. An item stands in one queue at most, so no load
// can be issued twice.
#pragma once

#include <span>
#include <vector>

#include "plan/loader/loader_types.h"

namespace hearth {

/// Binary heaps that know where each item stands: push, erase and move take logarithmic time. After
/// the queues have once been at their longest nothing is allocated.
class LoadQueues {
 public:
  static constexpr int32_t kNone = -1;

  LoadQueues(size_t items, size_t queues);

  void push(size_t queue, ItemId item, const LoadKey& key);  // the item stands in no queue
  void erase(ItemId item);                                   // no effect if it stands in none
  /// The queue in which an item stands, or kNone.
  int32_t queue_of(ItemId item) const { return places_[static_cast<size_t>(item)].queue; }

  bool empty(size_t queue) const { return heaps_[queue].empty(); }
  size_t size(size_t queue) const { return heaps_[queue].size(); }
  ItemId top(size_t queue) const { return heaps_[queue].front().item; }
  const LoadKey& top_key(size_t queue) const { return heaps_[queue].front().key; }

 private:
  struct Entry {
    LoadKey key;
    ItemId item = 0;
  };
  struct PlaceInQueue {
    int32_t queue = kNone;
    uint32_t at = 0;
  };

  void put(size_t queue, size_t at, const Entry& entry);
  void rise(size_t queue, size_t at);
  void sink(size_t queue, size_t at);

  std::vector<std::vector<Entry>> heaps_;
  std::vector<PlaceInQueue> places_;  // by item
};

}  // namespace hearth
