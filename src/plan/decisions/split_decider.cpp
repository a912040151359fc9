#include "plan/decisions/split_decider.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace hearth {

namespace {

std::vector<int32_t> most_tokens_first(std::span<const double> tokens, int64_t experts) {
  std::vector<double> sums(static_cast<size_t>(experts));
  for (size_t i = 0; i < tokens.size(); ++i) sums[i % sums.size()] += tokens[i];
  std::vector<int32_t> order(sums.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int32_t a, int32_t b) {
    return sums[static_cast<size_t>(a)] > sums[static_cast<size_t>(b)];
  });
  return order;
}

}  // namespace

SplitDecider::SplitDecider(std::vector<DecidedDevice> devices, int64_t experts, SplitAnswer answer)
    : experts_(experts), answer_(answer) {
  for (DecidedDevice& device : devices) {
    devices_.push_back(std::make_unique<OfDevice>(std::move(device), experts));
  }
}

void SplitDecider::begin_step(int64_t step) {
  step_ = step;
  for (const auto& of : devices_) {
    const std::lock_guard lock(of->mutex);
    of->made.clear();
    if (of->device.is_trained) of->book.clear();
  }
}

std::pair<SplitDecider::OfDevice*, size_t> SplitDecider::of_layer(int32_t layer) const {
  for (const auto& of : devices_) {
    const std::vector<int32_t>& layers = of->device.layers;
    const auto found = std::ranges::find(layers, layer);
    if (found != layers.end()) return {of.get(), static_cast<size_t>(found - layers.begin())};
  }
  HEARTH_CHECK(false, "splits: a layer of no device");
  return {};
}

int64_t SplitDecider::loaded_ahead(const DecidedDevice& device, const DecidedPass& pass,
                                   std::span<const double> tokens) const {
  const double load_s =
      device.link.in.bytes_per_s > 0
          ? device.weight_bytes / device.link.in.bytes_per_s + device.link.in.latency_s
          : 0;
  if (load_s <= 0) return experts_;
  const auto count = static_cast<double>(std::ssize(tokens) / experts_);
  const double all = std::accumulate(tokens.begin(), tokens.end(), 0.0);
  const double full = device.full_tokens * count;
  const double share = full > 0 ? std::min(1.0, all / full) : 1;
  return std::min(experts_, static_cast<int64_t>(count * share * pass.dense_s / load_s));
}

/// Forward finds what earlier decisions left, and what was loaded while the layer's other tasks ran:
/// of the experts that the layer gave the device last, in that order. A backward finds the experts of
/// its forward if those of the layers behind it have not taken their slots: they are taken to be as
/// many as this layer gave the device last. Else it finds those loaded ahead, the most popular first,
/// since its split is known by then.
SplitProblem SplitDecider::problem_of(const OfDevice& of, size_t layer,
                                      std::span<const double> tokens,
                                      std::vector<std::vector<ExpertState>>& states,
                                      std::vector<SplitPass>& passes) const {
  const DecidedDevice& device = of.device;
  const ExpertSplit& before = of.last[layer];
  const int64_t each =
      before.reasons.empty() ? (experts_ + 1) / 2 : std::max<int64_t>(1, std::ssize(before.device));
  const auto behind = static_cast<int64_t>(device.layers.size() - layer);
  const bool stays = each * behind <= device.slots;
  const std::vector<int32_t> by_tokens = most_tokens_first(tokens, experts_);
  const std::span<const int32_t> ranking = by_tokens;
  for (size_t pass = 0; pass < device.passes.size(); ++pass) {
    const DecidedPass& own = device.passes[pass];
    std::vector<ExpertState>& of_pass = states.emplace_back(static_cast<size_t>(experts_));
    for (size_t e = 0; e < of_pass.size(); ++e) {
      const bool here =
          pass == 0 ? of.book.has(device.layers[layer], static_cast<int64_t>(e)) : stays;
      of_pass[e] = {here ? Where::here : Where::home, here ? 0 : device.weight_bytes, 0};
    }
    int64_t ahead = loaded_ahead(device, own, tokens);
    for (const int32_t e : pass == 0 ? std::span<const int32_t>(before.device) : ranking) {
      if (ahead == 0) break;
      ExpertState& state = of_pass[static_cast<size_t>(e)];
      if (state.where == Where::here) continue;
      state = {Where::here, 0, 0};
      --ahead;
    }
    passes.push_back({.experts = {},
                      .host = own.host,
                      .device = own.device,
                      .gradient_bytes = own.adds_gradients ? device.gradient_bytes : 0,
                      .row_in_bytes = device.row_bytes,
                      .row_out_bytes = device.row_bytes,
                      .host_call_bytes = device.weight_bytes});
  }
  for (size_t pass = 0; pass < passes.size(); ++pass) passes[pass].experts = states[pass];
  SplitProblem problem;
  problem.experts = experts_;
  problem.tokens = tokens;
  problem.micro_batches = static_cast<int32_t>(std::ssize(tokens) / experts_);
  problem.device_calls = ExpertCalls::per_group;
  problem.passes = passes;
  problem.in = device.link.in;
  problem.out = device.link.out;
  problem.expert_bytes = device.weight_bytes;
  return problem;
}

void SplitDecider::divide(int32_t layer, std::span<const double> tokens, std::span<Place> places) {
  const auto [of, number] = of_layer(layer);
  const std::lock_guard lock(of->mutex);
  SplitDecision made;
  made.layer = layer;
  made.device = of->device.place;
  made.tokens.resize(places.size());
  for (size_t i = 0; i < tokens.size(); ++i) made.tokens[i % places.size()] += tokens[i];
  if (recorded_) {
    const auto group = std::ranges::count(of->made, layer, &SplitDecision::layer);
    made.split = recorded_->split(step_, layer, group, made.tokens);
  } else if (of->device.passes.empty()) {  // no times: as if loads were free
    std::ranges::fill(places, of->device.place);
    return;  // by no rule, so there is nothing to tell
  } else {
    std::vector<std::vector<ExpertState>> states;
    std::vector<SplitPass> passes;
    made.split = answer_(problem_of(*of, number, tokens, states, passes));
  }
  std::ranges::fill(places, kHostPlace);
  for (const int32_t expert : made.split.device) {
    places[static_cast<size_t>(expert)] = of->device.place;
    of->book.use(layer, expert);
  }
  of->last[number] = made.split;
  of->made.push_back(std::move(made));
}

std::vector<SplitDecision> SplitDecider::decisions() const {
  std::vector<SplitDecision> all;
  for (const auto& of : devices_) {
    const std::lock_guard lock(of->mutex);
    all.insert(all.end(), of->made.begin(), of->made.end());
  }
  std::ranges::stable_sort(all, {}, &SplitDecision::layer);
  return all;
}

ExpertSplit SplitDecider::last(int32_t layer) const {
  const auto [of, number] = of_layer(layer);
  const std::lock_guard lock(of->mutex);
  return of->last[number];
}

std::vector<DecidedPast> SplitDecider::past() const {
  std::vector<DecidedPast> all;
  for (const auto& of : devices_) {
    const std::lock_guard lock(of->mutex);
    DecidedPast& past = all.emplace_back();
    past.device = of->device.place;
    past.loaded = of->book.used();
    for (size_t i = 0; i < of->last.size(); ++i) {
      if (of->last[i].reasons.empty()) continue;  // nothing yet
      past.given.emplace_back(of->device.layers[i], of->last[i].device);
    }
  }
  return all;
}

void SplitDecider::restore(std::span<const DecidedPast> past) {
  for (const DecidedPast& from : past) {
    const auto of = std::ranges::find_if(
        devices_, [&](const auto& each) { return each->device.place == from.device; });
    if (of == devices_.end()) continue;
    OfDevice& device = **of;
    const std::vector<int32_t>& layers = device.device.layers;
    const std::lock_guard lock(device.mutex);
    device.book.clear();
    device.last.assign(layers.size(), {});
    for (size_t i = from.loaded.size(); i-- > 0;) {
      const auto [layer, expert] = from.loaded[i];
      if (std::ranges::find(layers, layer) != layers.end()) device.book.use(layer, expert);
    }
    for (const auto& [layer, experts] : from.given) {
      const auto at = std::ranges::find(layers, layer);
      if (at == layers.end()) continue;
      ExpertSplit& last = device.last[static_cast<size_t>(at - layers.begin())];
      last.device = experts;
      last.reasons.assign(static_cast<size_t>(experts_), SplitReason::none);
    }
  }
}

}  // namespace hearth
