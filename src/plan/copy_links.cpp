#include "plan/copy_links.h"

#include <map>

#include "device/link.h"

namespace hearth {

namespace {

enum : int32_t { kIn, kOut };  // the order of a link's two resources

const LinkRates* link_of(const Schedule& schedule, Place place, std::span<const LinkRates> links) {
  const auto at = static_cast<size_t>(place);
  return schedule.is_host(place) || at >= links.size() ? nullptr : &links[at];
}

}  // namespace

Route copy_route(const Schedule& schedule, const Task& copy) {
  const auto place = [&](const BufferUse& use) {
    return schedule.buffers[static_cast<size_t>(use.buffer)].place;
  };
  return {place(copy.uses[0]), place(copy.uses[1])};
}

double copy_latency(const Schedule& schedule, const Route& route,
                    std::span<const LinkRates> links) {
  const LinkRates *out = link_of(schedule, route.from, links),
                  *in = link_of(schedule, route.to, links);
  return (out == nullptr ? 0 : out->out.latency_s) + (in == nullptr ? 0 : in->in.latency_s);
}

CopyLinks::CopyLinks(const Schedule& schedule, std::span<const LinkRates> links)
    : schedule_(schedule), links_(links), root_of_(links.size(), -1) {
  for (const LinkRates& link : links) {
    rates_.push_back(link.in.bytes_per_s);
    rates_.push_back(link.out.bytes_per_s);
  }
  std::map<const RootComplex*, int32_t> roots;
  for (size_t place = 0; place < links.size(); ++place) {
    const RootComplex* const root = links[place].root;
    if (root == nullptr) continue;
    const auto [at, is_new] = roots.emplace(root, std::ssize(rates_));
    root_of_[place] = at->second;
    if (!is_new) continue;
    rates_.push_back(root->in.bandwidth());
    rates_.push_back(root->out.bandwidth());
  }
}

const LinkRates* CopyLinks::link(Place place) const { return link_of(schedule_, place, links_); }

size_t CopyLinks::pass(TaskLoad& load, size_t used, Place place, int32_t direction) const {
  if (link(place) == nullptr) return used;
  load.through[used++] = 2 * place + direction;
  const int32_t root = root_of_[static_cast<size_t>(place)];
  if (root >= 0) load.through[used++] = root + direction;
  return used;
}

TaskLoad CopyLinks::of_route(const Route& route) const {
  TaskLoad load;
  pass(load, pass(load, 0, route.from, kOut), route.to, kIn);
  return load;
}

TaskLoad CopyLinks::to_device(Place device) const {
  TaskLoad load;
  pass(load, 0, device, kIn);
  if (const LinkRates* const own = link(device)) load.seconds = own->in.latency_s;
  return load;
}

TaskLoad CopyLinks::from_device(Place device) const {
  TaskLoad load;
  pass(load, 0, device, kOut);
  if (const LinkRates* const own = link(device)) load.seconds = own->out.latency_s;
  return load;
}

}  // namespace hearth
