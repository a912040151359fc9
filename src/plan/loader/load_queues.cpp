#include "plan/loader/load_queues.h"

#include <stdexcept>

namespace hearth {

LoadQueues::LoadQueues(size_t items, size_t queues) : heaps_(queues), places_(items) {}

void LoadQueues::put(size_t queue, size_t at, const Entry& entry) {
  heaps_[queue][at] = entry;
  places_[static_cast<size_t>(entry.item)] = {static_cast<int32_t>(queue),
                                              static_cast<uint32_t>(at)};
}

void LoadQueues::rise(size_t queue, size_t at) {
  const std::vector<Entry>& heap = heaps_[queue];
  const Entry entry = heap[at];
  while (at > 0) {
    const size_t parent = (at - 1) / 2;
    if (!(entry.key < heap[parent].key)) break;
    put(queue, at, heap[parent]);
    at = parent;
  }
  put(queue, at, entry);
}

void LoadQueues::sink(size_t queue, size_t at) {
  const std::vector<Entry>& heap = heaps_[queue];
  const Entry entry = heap[at];
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= heap.size()) break;
    if (child + 1 < heap.size() && heap[child + 1].key < heap[child].key) ++child;
    if (!(heap[child].key < entry.key)) break;
    put(queue, at, heap[child]);
    at = child;
  }
  put(queue, at, entry);
}

void LoadQueues::push(size_t queue, ItemId item, const LoadKey& key) {
  if (queue_of(item) != kNone) throw std::logic_error("loader: an item in two queues");
  heaps_[queue].push_back({key, item});
  rise(queue, heaps_[queue].size() - 1);
}

void LoadQueues::erase(ItemId item) {
  PlaceInQueue& place = places_[static_cast<size_t>(item)];
  if (place.queue == kNone) return;
  const auto queue = static_cast<size_t>(place.queue);
  const size_t at = place.at;
  place.queue = kNone;
  std::vector<Entry>& heap = heaps_[queue];
  const Entry last = heap.back();
  heap.pop_back();
  if (at == heap.size()) return;
  put(queue, at, last);
  rise(queue, at);
  sink(queue, places_[static_cast<size_t>(last.item)].at);
}

}  // namespace hearth
