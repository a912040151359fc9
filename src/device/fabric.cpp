#include "device/fabric.h"

#include <algorithm>

namespace hearth {

double LinkPath::book(double now, size_t bytes) const {
  double end = now;
  for (size_t i = 0; i < count; ++i) end = std::max(end, links[i]->book(now, bytes));
  return end;
}

double LinkPath::bandwidth() const {
  double slowest = 0;
  for (size_t i = 0; i < count; ++i) {
    const double of = links[i]->bandwidth();
    if (of > 0 && (slowest == 0 || of < slowest)) slowest = of;
  }
  return slowest;
}

int Fabric::add(const DeviceLinks& links) {
  const std::lock_guard lock(mutex_);
  ends_.emplace_back(links);
  return static_cast<int>(ends_.size()) - 1;
}

Fabric::Ends& Fabric::ends_of(int device) {
  const std::lock_guard lock(mutex_);
  return ends_.at(static_cast<size_t>(device));
}

LinkPath Fabric::path(int from, int to) {
  LinkPath path;
  if (from == to) return path;
  if (from >= 0) {
    Ends& source = ends_of(from);
    path.add(source.out);
    if (source.links.root != nullptr) path.add(source.links.root->out);
    path.latency += source.links.rates.out.latency_s;
  }
  if (to >= 0) {
    Ends& target = ends_of(to);
    path.add(target.in);
    if (target.links.root != nullptr) path.add(target.links.root->in);
    path.latency += target.links.rates.in.latency_s;
  }
  return path;
}

}  // namespace hearth
