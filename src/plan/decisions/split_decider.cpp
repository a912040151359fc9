#include "plan/decisions/split_decider.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace hearth {

SplitDecider::SplitDecider(std::vector<DecidedDevice> devices, int64_t experts, SplitAnswer answer)
    : experts_(experts), answer_(answer) {
  for (DecidedDevice& device : devices) {
    devices_.push_back(std::make_unique<OfDevice>(std::move(device), experts));
  }
}

void SplitDecider::begin_step() {
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

/// Forward finds what earlier decisions left. A backward finds the experts of its forward if those of
/// the layers behind it have not taken their slots: they are taken to be as many as this layer gave
/// the device last.
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
  for (size_t pass = 0; pass < device.passes.size(); ++pass) {
    const DecidedPass& own = device.passes[pass];
    std::vector<ExpertState>& of_pass = states.emplace_back(static_cast<size_t>(experts_));
    for (size_t e = 0; e < of_pass.size(); ++e) {
      const bool here =
          pass == 0 ? of.book.has(device.layers[layer], static_cast<int64_t>(e)) : stays;
      of_pass[e] = {here ? Where::here : Where::home, here ? 0 : device.weight_bytes, 0};
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
  if (of->device.passes.empty()) {  // no times: as if loads were free
    std::ranges::fill(places, of->device.place);
    return;  // by no rule, so there is nothing to tell
  }
  std::vector<std::vector<ExpertState>> states;
  std::vector<SplitPass> passes;
  const SplitProblem problem = problem_of(*of, number, tokens, states, passes);
  ExpertSplit split = answer_(problem);
  std::ranges::fill(places, kHostPlace);
  for (const int32_t expert : split.device) {
    places[static_cast<size_t>(expert)] = of->device.place;
    of->book.use(layer, expert);
  }
  SplitDecision& made = of->made.emplace_back();
  made.layer = layer;
  made.device = of->device.place;
  made.tokens.resize(places.size());
  for (size_t i = 0; i < tokens.size(); ++i) made.tokens[i % places.size()] += tokens[i];
  made.split = split;
  of->last[number] = std::move(split);
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

}  // namespace hearth
