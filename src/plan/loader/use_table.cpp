#include "plan/loader/use_table.h"

#include <algorithm>
#include <stdexcept>

namespace hearth {

UseTable::UseTable(size_t items, int32_t uses)
    : uses_(static_cast<size_t>(uses)), waiting_(items) {}

void UseTable::demand(UseId id, std::span<const Need> needs, Start start, uint64_t order) {
  Use& use = uses_.at(static_cast<size_t>(id));
  if (use.state != State::free) throw std::logic_error("loader: a use is demanded twice");
  use.state = State::waiting;
  use.start = start;
  use.missing = static_cast<int32_t>(needs.size());
  use.needs.assign(needs.begin(), needs.end());
  for (const Need& need : needs) {
    if (free_nodes_.empty()) {
      free_nodes_.push_back(static_cast<int32_t>(nodes_.size()));
      nodes_.emplace_back();
    }
    const int32_t n = free_nodes_.back();
    free_nodes_.pop_back();
    List& list = waiting_.at(static_cast<size_t>(need.item));
    nodes_[static_cast<size_t>(n)] = {id, false, order++, list.last, -1};
    (list.last >= 0 ? nodes_[static_cast<size_t>(list.last)].after : list.first) = n;
    list.last = n;
    use.nodes.push_back(n);
  }
}

void UseTable::set_ready(ItemId item, bool arrived, bool issued, std::vector<UseId>& complete) {
  int32_t n = waiting_[static_cast<size_t>(item)].first;
  while (n >= 0) {
    Node& node = nodes_[static_cast<size_t>(n)];
    Use& use = uses_[static_cast<size_t>(node.use)];
    const bool is_ready = use.start == Start::arrived ? arrived : issued;
    if (is_ready != node.is_ready) {
      node.is_ready = is_ready;
      use.missing += is_ready ? -1 : 1;
      if (use.missing == 0) complete.push_back(node.use);
    }
    n = node.after;
  }
}

bool UseTable::is_complete(UseId use) const { return is_waiting(use) && at(use).missing == 0; }

void UseTable::stop_waiting(Use& use) {
  for (size_t i = 0; i < use.nodes.size(); ++i) {
    const int32_t n = use.nodes[i];
    const Node& node = nodes_[static_cast<size_t>(n)];
    List& list = waiting_[static_cast<size_t>(use.needs[i].item)];
    (node.before >= 0 ? nodes_[static_cast<size_t>(node.before)].after : list.first) = node.after;
    (node.after >= 0 ? nodes_[static_cast<size_t>(node.after)].before : list.last) = node.before;
    free_nodes_.push_back(n);
  }
  use.nodes.clear();
}

void UseTable::grant(UseId id) {
  Use& use = uses_[static_cast<size_t>(id)];
  stop_waiting(use);
  use.state = State::holding;
  ++holding_;
}

void UseTable::free(UseId id) {
  Use& use = uses_[static_cast<size_t>(id)];
  if (use.state == State::waiting) stop_waiting(use);
  if (use.state == State::holding) --holding_;
  use.state = State::free;
}

uint64_t UseTable::demand_order(ItemId item) const {
  return nodes_[static_cast<size_t>(waiting_[static_cast<size_t>(item)].first)].order;
}

UseId UseTable::first_use(ItemId item) const {
  return nodes_[static_cast<size_t>(waiting_[static_cast<size_t>(item)].first)].use;
}

}  // namespace hearth
