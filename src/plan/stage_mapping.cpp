#include "plan/stage_mapping.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"

namespace hearth {
namespace {

constexpr size_t kMostSearched =
    16;  // devices; the search has at most 3^8 * 8 states for each start

bool share(const StageDevice& a, const StageDevice& b) {
  return !a.root.empty() && a.root == b.root;
}

/// What an order costs. Whole numbers, so that sums do not depend on their order.
struct Cost {
  int64_t shared = 0;       // pairs of neighbours below one root complex
  int64_t nanoseconds = 0;  // lost there, if each stage moves a GiB

  friend Cost operator+(Cost a, Cost b) {
    return {a.shared + b.shared, a.nanoseconds + b.nanoseconds};
  }
  friend Cost operator*(int64_t n, Cost a) { return {n * a.shared, n * a.nanoseconds}; }
  friend auto operator<=>(const Cost&, const Cost&) = default;
};

double seconds_of_gib(double bytes_per_s) {
  return bytes_per_s > 0 ? 1073741824.0 / bytes_per_s : 0;
}

Cost pair_cost(const StageDevice& a, const StageDevice& b) {
  if (!share(a, b)) return {};
  const double alone = std::max(seconds_of_gib(a.bytes_per_s), seconds_of_gib(b.bytes_per_s));
  const double both = 2 * seconds_of_gib(std::max(a.root_bytes_per_s, b.root_bytes_per_s));
  const double lost = std::clamp(both - alone, 0.0, 1e6);
  return {1, std::llround(lost * 1e9)};
}

/// How many neighbouring stages lie on positions `at` and `at` + 1 of the order, which wraps.
int64_t times_crossed(size_t at, size_t devices, int stages) {
  const int64_t last = int64_t{stages} - 2 - static_cast<int64_t>(at);
  return last < 0 ? 0 : last / static_cast<int64_t>(devices) + 1;
}

/// Devices that the mapping cannot tell apart, so that the search counts them.
struct DeviceClass {
  StageDevice device;
  std::vector<int> members;  // ascending
};

// A device that shares with none is like every other such device.
std::vector<DeviceClass> classes_of(std::span<const StageDevice> devices) {
  std::vector<DeviceClass> classes;
  for (size_t i = 0; i < devices.size(); ++i) {
    const auto shares = [&](const StageDevice& d) { return share(d, devices[i]); };
    const bool alone = std::count_if(devices.begin(), devices.end(), shares) < 2;
    const StageDevice key = alone ? StageDevice{} : devices[i];
    const auto of = [](const StageDevice& d) {
      return std::tie(d.root, d.bytes_per_s, d.root_bytes_per_s);
    };
    const auto same = [&](const DeviceClass& c) { return of(c.device) == of(key); };
    auto at = std::find_if(classes.begin(), classes.end(), same);
    if (at == classes.end()) at = classes.insert(classes.end(), {key, {}});
    at->members.push_back(static_cast<int>(i));
  }
  return classes;
}

/// The least cost of every completion, for orders that begin with one class.
class OrderSearch {
 public:
  OrderSearch(const std::vector<DeviceClass>& classes, size_t devices, int stages, size_t first)
      : classes_(classes),
        devices_(devices),
        stages_(stages),
        first_(first),
        used_(classes.size()) {
    size_t states = classes.size();
    for (const DeviceClass& c : classes) states *= c.members.size() + 1;
    known_.resize(states);
    use(first);
  }

  size_t last() const { return last_; }
  size_t placed() const { return placed_; }
  bool has(size_t c) const { return used_[c] < classes_[c].members.size(); }
  /// The next device of a class.
  int next(size_t c) const { return classes_[c].members[used_[c]]; }
  void use(size_t c) {
    ++used_[c];
    ++placed_;
    last_ = c;
  }

  /// Of the neighbours from the last device on, and of the order's end with its begin.
  Cost rest() {
    if (placed_ == devices_) return crossing(last_, first_, devices_ - 1);
    std::optional<Cost>& known = known_[state()];
    if (known) return *known;
    std::optional<Cost> least;
    for (size_t c = 0; c < classes_.size(); ++c) {
      if (!has(c)) continue;
      const Cost cost = with(c);
      if (!least || cost < *least) least = cost;
    }
    return *(known_[state()] = least);
  }
  /// The same if a device of class `c` is next.
  Cost with(size_t c) {
    const size_t before = last_;
    const Cost here = crossing(before, c, placed_ - 1);
    use(c);
    const Cost cost = here + rest();
    --used_[c];
    --placed_;
    last_ = before;
    return cost;
  }

 private:
  Cost crossing(size_t a, size_t b, size_t at) const {
    return times_crossed(at, devices_, stages_) * pair_cost(classes_[a].device, classes_[b].device);
  }
  size_t state() const {
    size_t number = last_;
    for (size_t c = 0; c < classes_.size(); ++c) {
      number = number * (classes_[c].members.size() + 1) + used_[c];
    }
    return number;
  }

  const std::vector<DeviceClass>& classes_;
  size_t devices_;
  int stages_;
  size_t first_;
  std::vector<size_t> used_;  // devices of each class
  size_t placed_ = 0, last_ = 0;
  std::vector<std::optional<Cost>> known_;
};

std::vector<int> searched_order(std::span<const StageDevice> devices, int stages) {
  const std::vector<DeviceClass> classes = classes_of(devices);
  std::optional<OrderSearch> best;
  std::optional<Cost> least;
  int begin = 0;
  for (size_t c = 0; c < classes.size(); ++c) {
    OrderSearch search(classes, devices.size(), stages, c);
    const Cost cost = search.rest();
    const int device = classes[c].members.front();
    if (least && std::tie(*least, begin) <= std::tie(cost, device)) continue;
    least = cost;
    begin = device;
    best.emplace(std::move(search));
  }
  std::vector<int> order{begin};
  while (order.size() < devices.size()) {
    const Cost rest = best->rest();
    std::optional<size_t> next;  // the earliest device that keeps the cost
    for (size_t c = 0; c < classes.size(); ++c) {
      if (!best->has(c) || (next && best->next(*next) < best->next(c))) continue;
      if (best->with(c) == rest) next = c;
    }
    order.push_back(best->next(*next));
    best->use(*next);
  }
  return order;
}

std::vector<int> alternating_order(std::span<const StageDevice> devices) {
  std::vector<DeviceClass> classes = classes_of(devices);
  std::vector<size_t> used(classes.size());
  std::vector<int> order;
  std::optional<size_t> last;
  while (order.size() < devices.size()) {
    std::optional<size_t> next;
    const auto rank = [&](size_t c) {  // smaller is better
      const bool shares = last && share(classes[*last].device, classes[c].device);
      return std::tuple(shares, used[c] - classes[c].members.size(), classes[c].members[used[c]]);
    };
    for (size_t c = 0; c < classes.size(); ++c) {
      if (used[c] < classes[c].members.size() && (!next || rank(c) < rank(*next))) next = c;
    }
    order.push_back(classes[*next].members[used[*next]++]);
    last = next;
  }
  return order;
}

std::string pairs(int64_t n) { return std::to_string(n) + (n == 1 ? " pair" : " pairs"); }

}  // namespace

std::string reason_of_order(std::span<const StageDevice> devices, std::span<const int> order,
                            int stages) {
  const bool exact = devices.size() <= kMostSearched;
  const int shared = shared_neighbours(devices, order, stages);
  if (stages == 1) return "there is one stage";
  if (devices.size() == 1) return "one device holds every stage";
  std::vector<int> listed(devices.size());
  std::iota(listed.begin(), listed.end(), 0);
  const int before = shared_neighbours(devices, listed, stages);
  std::set<std::string> roots;
  for (const StageDevice& d : devices) {
    if (!d.root.empty()) roots.insert(d.root);
  }
  std::string reason;
  if (roots.empty()) {
    reason = "no device names its root complex";
  } else if (shared == 0) {
    reason = "no neighbouring stages share a root complex";
  } else {
    reason = "of neighbouring stages " + pairs(shared) + " out of " + std::to_string(stages - 1) +
             (shared == 1 ? " shares" : " share") + " a root complex" +
             (exact ? "; no order of the devices has fewer" : "");
  }
  return reason + (std::ranges::equal(order, listed)
                       ? "; devices are in the order of the list"
                       : "; in the order of the list " + pairs(before) + " would");
}

int shared_neighbours(std::span<const StageDevice> devices, std::span<const int> order,
                      int stages) {
  int64_t shared = 0;
  for (size_t at = 0; at < order.size(); ++at) {
    const StageDevice& here = devices[static_cast<size_t>(order[at])];
    const StageDevice& next = devices[static_cast<size_t>(order[(at + 1) % order.size()])];
    if (order.size() > 1 && share(here, next)) {
      shared += times_crossed(at, order.size(), stages);
    }
  }
  return static_cast<int>(shared);
}

StageMapping map_stages(std::span<const StageDevice> devices, int stages) {
  HEARTH_CHECK(!devices.empty() && stages > 0, "a mapping without devices or stages");
  const bool exact = devices.size() <= kMostSearched;
  StageMapping mapping;
  mapping.order = exact ? searched_order(devices, stages) : alternating_order(devices);
  mapping.shared = shared_neighbours(devices, mapping.order, stages);
  mapping.reason = reason_of_order(devices, mapping.order, stages);
  return mapping;
}

}  // namespace hearth
