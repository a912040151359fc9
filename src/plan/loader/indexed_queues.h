// Several queues, each ordered by key. A member stands in one queue at most, so nothing can be taken
// twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace hearth {

/// Binary heaps of the members 0 to n - 1 that know where each member stands: pushing and erasing
/// take logarithmic time. After the queues have once been at their longest nothing is allocated.
template <class Key>
class IndexedQueues {
 public:
  static constexpr int32_t kNone = -1;

  IndexedQueues(size_t members, size_t queues) : heaps_(queues), places_(members) {}

  /// The member stands in no queue.
  void push(size_t queue, int32_t member, const Key& key) {
    if (queue_of(member) != kNone) throw std::logic_error("loader: a member of two queues");
    heaps_[queue].push_back({key, member});
    rise(queue, heaps_[queue].size() - 1);
  }

  /// No effect on a member of no queue.
  void erase(int32_t member) {
    Where& where = places_[static_cast<size_t>(member)];
    if (where.queue == kNone) return;
    const auto queue = static_cast<size_t>(where.queue);
    const size_t at = where.at;
    where.queue = kNone;
    std::vector<Entry>& heap = heaps_[queue];
    const Entry last = heap.back();
    heap.pop_back();
    if (at == heap.size()) return;
    put(queue, at, last);
    rise(queue, at);
    sink(queue, places_[static_cast<size_t>(last.member)].at);
  }

  /// The queue in which a member stands, or kNone, and its key there.
  int32_t queue_of(int32_t member) const { return places_[static_cast<size_t>(member)].queue; }
  const Key& key_of(int32_t member) const {
    const Where& where = places_[static_cast<size_t>(member)];
    return heaps_[static_cast<size_t>(where.queue)][where.at].key;
  }

  bool empty(size_t queue) const { return heaps_[queue].empty(); }
  int32_t top(size_t queue) const { return heaps_[queue].front().member; }
  const Key& top_key(size_t queue) const { return heaps_[queue].front().key; }

 private:
  struct Entry {
    Key key;
    int32_t member = 0;
  };
  struct Where {
    int32_t queue = kNone;
    uint32_t at = 0;
  };

  void put(size_t queue, size_t at, const Entry& entry) {
    heaps_[queue][at] = entry;
    places_[static_cast<size_t>(entry.member)] = {static_cast<int32_t>(queue),
                                                  static_cast<uint32_t>(at)};
  }

  void rise(size_t queue, size_t at) {
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

  void sink(size_t queue, size_t at) {
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

  std::vector<std::vector<Entry>> heaps_;
  std::vector<Where> places_;  // by member
};

}  // namespace hearth
