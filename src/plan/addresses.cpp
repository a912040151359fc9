// Buffers in three parts of an arena, one after the other, by how long they live:
//
//   to the end  what is an input, or read after the schedule: side by side
//   long        saved for backward, gradients between layers: in the order of time, each in the
//               smallest hole that holds it; forward piles up and backward takes away, so that few
//               holes stay
//   short       within the tasks of a layer: largest first, each at the lowest free place, against
//               the few that live beside it
//
// The parts are full at nearly the same time, when the backward of the last layer begins; so their
// sum is little more than what lives at once.
#include "plan/addresses.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <set>

namespace hearth {

namespace {

constexpr TaskId kShort = 16;  // tasks

/// Memory that grows at its end. What is given back joins the holes beside it.
class Space {
 public:
  size_t take(size_t bytes) {
    const auto fit = by_size_.lower_bound({bytes, 0});
    if (fit != by_size_.end()) {
      const auto [hole, address] = *fit;
      remove(address, hole);
      if (hole > bytes) add(address + bytes, hole - bytes);
      return address;
    }
    size_t address = size_;
    if (!holes_.empty()) {
      const auto [last, hole] = *holes_.rbegin();
      if (last + hole == size_) {
        remove(last, hole);
        address = last;
      }
    }
    size_ = address + bytes;
    return address;
  }

  void give(size_t address, size_t bytes) {
    const auto after = holes_.lower_bound(address);
    if (after != holes_.end() && after->first == address + bytes) {
      const size_t hole = after->second;
      remove(address + bytes, hole);
      bytes += hole;
    }
    const auto next = holes_.lower_bound(address);
    if (next != holes_.begin()) {
      const auto [before, hole] = *std::prev(next);
      if (before + hole == address) {
        remove(before, hole);
        address = before;
        bytes += hole;
      }
    }
    add(address, bytes);
  }

  size_t size() const { return size_; }

 private:
  void add(size_t address, size_t bytes) {
    holes_[address] = bytes;
    by_size_.insert({bytes, address});
  }
  void remove(size_t address, size_t bytes) {
    holes_.erase(address);
    by_size_.erase({bytes, address});
  }

  size_t size_ = 0;
  std::map<size_t, size_t> holes_;               // address to bytes
  std::set<std::pair<size_t, size_t>> by_size_;  // bytes, address
};

using Order = std::vector<Buffer*>;

size_t side_by_side(const Order& order, size_t base) {
  for (Buffer* b : order) {
    b->address = base;
    base += b->bytes;
  }
  return base;
}

size_t in_order_of_time(Order order, size_t base) {
  std::stable_sort(order.begin(), order.end(), [](const Buffer* a, const Buffer* b) {
    return a->first != b->first ? a->first < b->first : a->bytes > b->bytes;
  });
  const auto dies_later = [](const Buffer* a, const Buffer* b) {
    return a->last != b->last ? a->last > b->last : a->address > b->address;
  };
  std::priority_queue<Buffer*, Order, decltype(dies_later)> alive(dies_later);
  Space space;
  for (Buffer* b : order) {
    for (; !alive.empty() && alive.top()->last < b->first; alive.pop()) {
      space.give(alive.top()->address - base, alive.top()->bytes);
    }
    b->address = base + space.take(b->bytes);
    alive.push(b);
  }
  return base + space.size();
}

size_t largest_first(Order order, size_t base) {
  std::stable_sort(order.begin(), order.end(),
                   [](const Buffer* a, const Buffer* b) { return a->bytes > b->bytes; });
  TaskId tasks = 0;
  for (const Buffer* b : order) tasks = std::max(tasks, b->last + 1);
  std::vector<Order> placed(static_cast<size_t>(tasks));  // by the tasks in which they live
  size_t end = base;
  for (Buffer* b : order) {
    Order beside;
    for (TaskId t = b->first; t <= b->last; ++t) {
      const Order& at = placed[static_cast<size_t>(t)];
      beside.insert(beside.end(), at.begin(), at.end());
    }
    std::sort(beside.begin(), beside.end(),
              [](const Buffer* x, const Buffer* y) { return x->address < y->address; });
    b->address = base;
    for (const Buffer* other : beside) {
      if (other->address >= b->address + b->bytes) break;
      b->address = std::max(b->address, other->address + other->bytes);
    }
    end = std::max(end, b->address + b->bytes);
    for (TaskId t = b->first; t <= b->last; ++t) placed[static_cast<size_t>(t)].push_back(b);
  }
  return end;
}

/// Returns the end of the buffers' addresses, which begin at `base`. Experts that are fetched are large,
/// and live for a short or a long time, two at once: among the others they would take several holes.
size_t assign_arena(const Order& buffers, TaskId end, size_t base) {
  Order fetched, to_the_end, others, brief;
  for (Buffer* b : buffers) {
    if (b->port.value == Value::fetched_experts) {
      fetched.push_back(b);
    } else if (b->last - b->first < kShort) {
      brief.push_back(b);
    } else {
      (b->last == end ? to_the_end : others).push_back(b);
    }
  }
  base = largest_first(std::move(fetched), base);
  return largest_first(std::move(brief),
                       in_order_of_time(std::move(others), side_by_side(to_the_end, base)));
}

bool overlap(std::vector<const Buffer*> births) {
  std::vector<const Buffer*> deaths = births;
  std::sort(births.begin(), births.end(),
            [](const Buffer* a, const Buffer* b) { return a->first < b->first; });
  std::sort(deaths.begin(), deaths.end(),
            [](const Buffer* a, const Buffer* b) { return a->last < b->last; });
  std::map<size_t, const Buffer*> alive;  // by address
  auto death = deaths.begin();
  for (const Buffer* b : births) {
    for (; (*death)->last < b->first; ++death) alive.erase((*death)->address);
    const auto after = alive.lower_bound(b->address);
    if (after != alive.end() && after->first < b->address + b->bytes) return true;
    if (after != alive.begin()) {
      const Buffer* before = std::prev(after)->second;
      if (before->address + before->bytes > b->address) return true;
    }
    alive[b->address] = b;
  }
  return false;
}

/// The buffers that lie side by side, which live equally long, as one, by the number of their strip.
std::map<int32_t, Buffer> strips_of(const std::vector<Buffer>& buffers) {
  std::map<int32_t, Buffer> strips;
  for (const Buffer& b : buffers) {
    if (b.strip < 0) continue;
    const auto [it, is_first] = strips.emplace(b.strip, b);
    if (!is_first) it->second.bytes += b.pitch;
  }
  return strips;
}

}  // namespace

std::vector<size_t> assign_addresses(std::vector<Buffer>& buffers, size_t places) {
  TaskId end = 0;
  std::map<std::pair<Place, int32_t>, Order> lanes;
  std::map<int32_t, Buffer> strips = strips_of(buffers);
  for (Buffer& b : buffers) {
    end = std::max(end, b.last);
    if (b.strip < 0) lanes[{b.place, b.lane}].push_back(&b);
  }
  for (auto& [number, all] : strips) lanes[{all.place, all.lane}].push_back(&all);
  std::vector<size_t> sizes(places);
  for (const auto& [key, order] : lanes) {
    size_t& size = sizes[static_cast<size_t>(key.first)];
    size = assign_arena(order, end, size);
  }
  for (Buffer& b : buffers) {
    if (b.strip < 0) continue;
    size_t& next = strips.at(b.strip).address;
    b.address = next;
    next += b.pitch;
  }
  return sizes;
}

bool live_buffers_overlap(const std::vector<Buffer>& buffers) {
  std::map<Place, std::vector<const Buffer*>> of_place;
  for (const Buffer& b : buffers) {
    if (b.bytes > 0) of_place[b.place].push_back(&b);
  }
  for (auto& [place, some] : of_place) {
    if (overlap(std::move(some))) return true;
  }
  return false;
}

}  // namespace hearth
