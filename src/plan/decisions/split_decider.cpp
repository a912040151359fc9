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

SplitDecider::SplitDecider(std::vector<DecidedDevice> devices, int64_t experts, SplitAnswer answer,
                           const Foresight& foresight, int64_t top_k)
    : experts_(experts),
      top_k_(static_cast<double>(top_k)),
      answer_(answer),
      phases_(foresight.phases),
      predictor_(foresight.predictor) {
  for (DecidedDevice& device : devices) {
    devices_.push_back(std::make_unique<OfDevice>(std::move(device), experts, top_k));
  }
}

void SplitDecider::begin_step(int64_t step) {
  step_ = step;
  if (routers_ != nullptr) routers_->begin_step(step);
  for (const auto& of : devices_) {
    const std::lock_guard lock(of->mutex);
    of->made.clear();
    of->tokens.forget_step();
    std::ranges::fill(of->divided, 0);
    if (of->device.is_trained) of->book.clear();
    for (size_t layer = 0; layer < of->foretold.size(); ++layer) foretell(*of, layer);
  }
}

void SplitDecider::end_step() {
  for (const auto& of : devices_) {
    const std::lock_guard lock(of->mutex);
    of->tokens.end_step();
  }
  if (routers_ != nullptr) routers_->end_step();
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

/// The groups of the step that have yet to pass the layer, if what is loaded for this one is still there
/// for them: loads count once for all of them (APTMoE, III-C 3: what is known is scaled up). `each`:
/// experts that a layer is taken to give its device.
int32_t SplitDecider::groups_served(const OfDevice& of, size_t layer, int64_t each) const {
  const DecidedDevice& device = of.device;
  const int64_t of_stage = device.stages.empty()
                               ? std::ssize(device.layers)
                               : std::ranges::count(device.stages, device.stages[layer]);
  if (each * of_stage > device.slots) return 1;
  const auto made = std::ranges::count(of.made, device.layers[layer], &SplitDecision::layer);
  return static_cast<int32_t>(std::max<int64_t>(1, device.groups - made));
}

/// Forward finds what earlier decisions left, and what was loaded while the layer's other tasks ran:
/// the first of `ahead`. A backward finds the experts of its forward if those of the layers behind it
/// have not taken their slots: they are taken to be as many as this layer gave the device last. Else
/// it finds those loaded ahead, the most popular first, since its split is known by then.
ExpertSplit SplitDecider::answer_for(const OfDevice& of, size_t layer,
                                     std::span<const double> tokens,
                                     std::span<const int32_t> ahead) const {
  const DecidedDevice& device = of.device;
  const ExpertSplit& before = of.last[layer];
  const int64_t each =
      before.reasons.empty() ? (experts_ + 1) / 2 : std::max<int64_t>(1, std::ssize(before.device));
  const auto behind = static_cast<int64_t>(device.layers.size() - layer);
  const bool stays = each * behind <= device.slots;
  const std::vector<int32_t> by_tokens = most_tokens_first(tokens, experts_);
  const int32_t left = groups_served(of, layer, each);
  // While all groups pass the layer once, the host updates one layer.
  const double busy_s =
      device.update_s * static_cast<double>(left) / static_cast<double>(device.groups);
  std::vector<std::vector<ExpertState>> states;
  std::vector<SplitPass> passes;
  for (size_t pass = 0; pass < device.passes.size(); ++pass) {
    const DecidedPass& own = device.passes[pass];
    std::vector<ExpertState>& of_pass = states.emplace_back(static_cast<size_t>(experts_));
    for (size_t e = 0; e < of_pass.size(); ++e) {
      const bool here =
          pass == 0 ? of.book.has(device.layers[layer], static_cast<int64_t>(e)) : stays;
      of_pass[e] = {here ? Where::here : Where::home, here ? 0 : device.weight_bytes, 0};
    }
    const bool loads_ahead = phases_.inter_stage || (pass == 0 && phases_.inter_layer);
    int64_t count = loads_ahead ? loaded_ahead(device, own, tokens) : 0;
    for (const int32_t e : pass == 0 ? ahead : std::span<const int32_t>(by_tokens)) {
      if (count == 0) break;
      ExpertState& state = of_pass[static_cast<size_t>(e)];
      if (state.where == Where::here) continue;
      state = {Where::coming, 0, 0};  // and there when the layer needs it
      --count;
    }
    passes.push_back({.experts = {},
                      .host = own.host,
                      .device = own.device,
                      .host_free_s = pass == 0 ? busy_s : 0,
                      .gradient_bytes = own.adds_gradients ? device.gradient_bytes : 0,
                      .row_in_bytes = device.row_bytes,
                      .choice_out_bytes = own.sent_bytes / top_k_,
                      .host_call_bytes = device.weight_bytes});
  }
  for (size_t pass = 0; pass < passes.size(); ++pass) passes[pass].experts = states[pass];
  SplitProblem problem;
  problem.experts = experts_;
  problem.tokens = tokens;
  const auto known = static_cast<int32_t>(std::ssize(tokens) / experts_);
  problem.micro_batches = known * left;
  // Groups are computed one after the other.
  problem.host_calls = left == 1 ? ExpertCalls::per_group : ExpertCalls::per_micro_batch;
  problem.device_calls = problem.host_calls;
  problem.passes = passes;
  problem.in = device.link.in;
  problem.out = device.link.out;
  problem.memory_bytes_per_s = device.memory_bytes_per_s;
  problem.expert_bytes = device.weight_bytes;
  problem.width = device.width;
  problem.groups = left;
  return with_places_of_step(of, layer, answer_(problem));
}

/// An expert that trains stays in a step where the first group has put it: its accumulator would have to
/// cross the link twice, and both places would wait for it.
ExpertSplit SplitDecider::with_places_of_step(const OfDevice& of, size_t layer,
                                              ExpertSplit split) const {
  if (!of.device.is_trained) return split;
  std::vector<int8_t> on_device(static_cast<size_t>(experts_), -1);
  std::vector<SplitReason> reasons(on_device.size());
  for (const SplitDecision& made : of.made) {
    if (made.layer != of.device.layers[layer]) continue;
    for (const int32_t e : made.split.device) on_device[static_cast<size_t>(e)] = 1;
    for (const int32_t e : made.split.host) {
      on_device[static_cast<size_t>(e)] = 0;
      reasons[static_cast<size_t>(e)] = made.split.reasons[static_cast<size_t>(e)];
    }
  }
  ExpertSplit kept;
  kept.predicted_s = split.predicted_s;
  kept.reasons = split.reasons;
  std::vector<int32_t> later;  // on the device: what is not there yet
  const auto add = [&](int32_t expert, bool device) {
    const auto e = static_cast<size_t>(expert);
    const bool is_known = on_device[e] >= 0;
    if (is_known) device = on_device[e] == 1;
    if (is_known) kept.reasons[e] = device ? SplitReason::resident : reasons[e];
    (!device ? kept.host : is_known ? kept.device : later).push_back(expert);
  };
  for (const int32_t expert : split.device) add(expert, true);
  for (const int32_t expert : split.host) add(expert, false);
  kept.device.insert(kept.device.end(), later.begin(), later.end());
  kept.divided = split.divided;
  if (std::ranges::find(kept.host, split.divided.expert) == kept.host.end()) kept.divided = {};
  for (const int32_t expert : kept.host) {
    SplitReason& reason = kept.reasons[static_cast<size_t>(expert)];
    if (expert == kept.divided.expert) {
      reason = SplitReason::split;
    } else if (reason == SplitReason::split) {
      reason = SplitReason::host_balance;  // divided for an earlier group
    }
  }
  return kept;
}

/// Each micro-batch of the group is taken to have an equal share of the foretold tokens.
void SplitDecider::foretell(OfDevice& of, size_t layer) const {
  ForetoldSplit& foretold = of.foretold[layer];
  foretold = {};
  if (predictor_ == ForetoldBy::oracle && recorded_) return foretell_recorded(of, layer);
  foretold.tokens = of.tokens.next(layer);
  if (foretold.tokens.empty() || of.device.passes.empty()) return;
  std::vector<double> tokens;
  for (int64_t m = 0; m < of.device.group; ++m) {
    for (const double of_group : foretold.tokens) {
      tokens.push_back(of_group / static_cast<double>(of.device.group));
    }
  }
  foretold.split = answer_for(of, layer, tokens, most_tokens_first(tokens, experts_));
}

void SplitDecider::foretell_recorded(OfDevice& of, size_t layer) const {
  const int32_t number = of.device.layers[layer];
  const auto group = std::ranges::count(of.made, number, &SplitDecision::layer);
  ForetoldSplit& foretold = of.foretold[layer];
  foretold.tokens = recorded_->tokens(step_, number, group);
  if (foretold.tokens.empty()) return;  // behind the last group of the step
  foretold.by = ForetoldBy::oracle;
  foretold.split = recorded_->split(step_, number, group, foretold.tokens);
}

void SplitDecider::foretell_by_routers(OfDevice& of, size_t layer, int64_t begin,
                                       int64_t count) const {
  if (routers_ == nullptr || of.device.passes.empty()) return;
  const std::vector<double> tokens = routers_->next(of.device.layers[layer], begin, count);
  if (tokens.empty()) return;
  ForetoldSplit& foretold = of.foretold[layer];
  foretold.by = predictor_;
  foretold.tokens.assign(static_cast<size_t>(experts_), 0);
  for (size_t i = 0; i < tokens.size(); ++i)
    foretold.tokens[i % foretold.tokens.size()] += tokens[i];
  foretold.split = answer_for(of, layer, tokens, most_tokens_first(tokens, experts_));
}

ExpertSplit SplitDecider::foretold_split(const OfDevice& of, size_t layer,
                                         std::span<const double> tokens) const {
  ExpertSplit answer = of.foretold[layer].split;
  if (of.foretold[layer].tokens.empty()) {  // nothing is known yet: all are equally popular
    double sum = 0;
    for (const double n : tokens) sum += n;
    const std::vector<double> equal(tokens.size(), sum / static_cast<double>(tokens.size()));
    answer = answer_for(of, layer, equal, {});
  }
  std::vector<double> sums(static_cast<size_t>(experts_));
  for (size_t i = 0; i < tokens.size(); ++i) sums[i % sums.size()] += tokens[i];
  ExpertSplit split;
  split.predicted_s = answer.predicted_s;
  split.reasons.assign(sums.size(), SplitReason::none);
  std::vector<uint8_t> on_device(sums.size());
  for (const int32_t expert : answer.device) {
    const auto e = static_cast<size_t>(expert);
    on_device[e] = 1;
    if (sums[e] == 0) continue;
    split.device.push_back(expert);
    split.reasons[e] = answer.reasons[e];
  }
  for (const int32_t expert : most_tokens_first(tokens, experts_)) {
    const auto e = static_cast<size_t>(expert);
    if (sums[e] == 0 || on_device[e] != 0) continue;
    split.host.push_back(expert);
    const SplitReason why = answer.reasons[e];
    const bool is_whole = why == SplitReason::none || why == SplitReason::split;
    split.reasons[e] = is_whole ? SplitReason::host_balance : why;
  }
  return split;
}

void SplitDecider::divide(int32_t layer, std::span<const double> tokens, std::span<Place> places) {
  const auto [of, number] = of_layer(layer);
  const std::lock_guard lock(of->mutex);
  SplitDecision made;
  made.layer = layer;
  made.device = of->device.place;
  made.tokens.resize(places.size());
  for (size_t i = 0; i < tokens.size(); ++i) made.tokens[i % places.size()] += tokens[i];
  const int64_t begin = of->divided[number];
  const int64_t count = std::ssize(tokens) / std::ssize(places);
  of->divided[number] += count;
  // Else a layer of this device has foretold it, and asked for it.
  if (of->foretold[number].by == ForetoldBy::history) {
    foretell_by_routers(*of, number, begin, count);
  }
  const ForetoldSplit& foretold = of->foretold[number];
  const bool is_foretold = !foretold.tokens.empty();
  if (recorded_) {
    const auto group = std::ranges::count(of->made, layer, &SplitDecision::layer);
    made.split = recorded_->split(step_, layer, group, made.tokens);
  } else if (of->device.passes.empty()) {  // no times: as if loads were free
    std::ranges::fill(places, of->device.place);
    return;  // by no rule, so there is nothing to tell
  } else if (phases_.inter_expert) {
    made.split = answer_for(*of, number, tokens,
                            is_foretold ? foretold.split.device : of->last[number].device);
  } else {
    made.split = foretold_split(*of, number, tokens);
  }
  std::ranges::fill(places, kHostPlace);
  for (const int32_t expert : made.split.device) {
    places[static_cast<size_t>(expert)] = of->device.place;
    of->book.use(layer, expert);
  }
  of->last[number] = made.split;
  of->tokens.counted(number, made.tokens, foretold.tokens, foretold.split.device, made.split.device,
                     foretold.by);
  of->made.push_back(std::move(made));
  foretell(*of, number);  // of its next group
  if (routers_ == nullptr) return;
  const std::vector<int32_t>&layers = of->device.layers, &stages = of->device.stages;
  const auto later =
      static_cast<size_t>(std::ranges::find(layers, routers_->target(layer)) - layers.begin());
  // Other micro-batches come to a later stage before this one does.
  const bool is_next = later < layers.size() && (stages.empty() || stages[later] == stages[number]);
  if (is_next) foretell_by_routers(*of, later, begin, count);
}

std::vector<ForetoldExperts> SplitDecider::foretold() const {
  std::vector<ForetoldExperts> all;
  for (const auto& of : devices_) {
    const std::lock_guard lock(of->mutex);
    for (size_t layer = 0; layer < of->foretold.size(); ++layer) {
      if (!of->foretold[layer].split.reasons.empty()) all.push_back(foretold_of(*of, layer));
    }
  }
  return all;
}

std::vector<ForetoldExperts> SplitDecider::foretold_behind(int32_t layer) const {
  if (!phases_.inter_layer) return {};
  const auto [of, number] = of_layer(layer);
  const std::lock_guard lock(of->mutex);
  const std::vector<int32_t>&stages = of->device.stages, &layers = of->device.layers;
  const int32_t target = routers_ == nullptr ? -1 : routers_->target(layer);
  std::vector<ForetoldExperts> list;
  for (size_t later = number + 1; later < of->foretold.size(); ++later) {
    if (later > number + 1 && layers[later] != target) continue;
    if (!stages.empty() && stages[later] != stages[number]) break;  // its time has not come
    if (!of->foretold[later].split.reasons.empty()) list.push_back(foretold_of(*of, later));
  }
  return list;
}

void SplitDecider::entered(int32_t layer, std::span<const LayerSample> samples) {
  if (routers_ == nullptr) return;
  routers_->entered(layer, samples);
  const auto [of, number] = of_layer(layer);
  const std::lock_guard lock(of->mutex);
  foretell_by_routers(*of, number, of->divided[number], std::ssize(samples));
}

std::vector<ForetoldExperts> SplitDecider::foretold_here(int32_t layer) const {
  if (!phases_.inter_layer) return {};
  const auto [of, number] = of_layer(layer);
  const std::lock_guard lock(of->mutex);
  if (of->foretold[number].split.reasons.empty()) return {};
  return {foretold_of(*of, number)};
}

PredictionScore SplitDecider::score() const {
  PredictionScore sum;
  for (const auto& of : devices_) {
    const std::lock_guard lock(of->mutex);
    sum.add(of->tokens.score());
  }
  if (routers_ != nullptr) sum.add(routers_->score());
  return sum;
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
      const std::span<const double> tokens = of->tokens.history(i);
      past.tokens.emplace_back(of->device.layers[i], std::vector(tokens.begin(), tokens.end()));
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
    device.tokens.forget_step();
    for (size_t layer = 0; layer < layers.size(); ++layer) {
      device.tokens.set_history(layer, std::vector<double>(static_cast<size_t>(experts_)));
    }
    for (size_t i = from.loaded.size(); i-- > 0;) {
      const auto [layer, expert] = from.loaded[i];
      if (std::ranges::find(layers, layer) != layers.end()) device.book.use(layer, expert);
    }
    for (const auto& [layer, tokens] : from.tokens) {
      const auto at = std::ranges::find(layers, layer);
      if (at == layers.end()) continue;
      device.tokens.set_history(static_cast<size_t>(at - layers.begin()), tokens);
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
