#include "train/best_states.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace hearth {
namespace {

bool is_better(const ScoredState& a, const ScoredState& b) {
  return a.loss != b.loss ? a.loss < b.loss : a.step < b.step;
}

/// At most `most` of the states, the best first.
std::vector<ScoredState> best_of(std::vector<ScoredState> states, int64_t most) {
  std::sort(states.begin(), states.end(), is_better);
  if (std::ssize(states) > most) states.resize(static_cast<size_t>(most));
  return states;
}

Json json_of(const ScoredState& state) {
  return JsonObject{{"step", state.step}, {"eval_loss", state.loss}};
}

std::optional<ScoredState> state_in(const Json& json) {
  const Json* step = json.is_object() ? json.find("step") : nullptr;
  const Json* loss = json.is_object() ? json.find("eval_loss") : nullptr;
  if (step == nullptr || !step->is_signed() || step->as_int() < 1) return std::nullopt;
  if (loss == nullptr || !loss->is_number() || !std::isfinite(loss->as_double())) {
    return std::nullopt;
  }
  return ScoredState{step->as_int(), loss->as_double()};
}

}  // namespace

void BestStates::add(int64_t step, double loss) {
  last_evaluated_ = step;
  const ScoredState state{step, loss};
  const bool is_new_best = std::isfinite(loss) && (!lowest_ || loss < lowest_->loss);
  without_best_ = is_new_best ? 0 : without_best_ + 1;
  if (is_new_best) lowest_ = state;
  if (!std::isfinite(loss) || most_ == 0) return;
  const std::vector<ScoredState> others = ranked();
  if (std::ssize(others) < most_ || is_better(state, others.back())) waiting_.push_back(state);
}

bool BestStates::wants(int64_t step) const {
  return std::any_of(waiting_.begin(), waiting_.end(),
                     [&](const ScoredState& s) { return s.step == step; });
}

std::vector<ScoredState> BestStates::ranked() const {
  std::vector<ScoredState> all = states_;
  all.insert(all.end(), waiting_.begin(), waiting_.end());
  return best_of(std::move(all), most_);
}

void BestStates::saved(int64_t step) {
  for (const ScoredState& state : waiting_) {
    if (state.step == step) states_.push_back(state);
  }
  states_ = best_of(std::move(states_), most_);
  not_saved(step);
}

void BestStates::not_saved(int64_t step) {
  std::erase_if(waiting_, [&](const ScoredState& s) { return s.step == step; });
}

void BestStates::keep_only(const std::vector<int64_t>& steps) {
  std::erase_if(states_, [&](const ScoredState& s) {
    return std::find(steps.begin(), steps.end(), s.step) == steps.end();
  });
}

std::vector<int64_t> BestStates::steps() const {
  std::vector<int64_t> steps;
  for (const ScoredState& state : ranked()) steps.push_back(state.step);
  return steps;
}

std::optional<ScoredState> BestStates::best() const {
  return states_.empty() ? std::nullopt : std::optional(states_.front());
}

Json BestStates::to_json() const {
  JsonArray states;
  for (const ScoredState& state : ranked()) states.push_back(json_of(state));
  return JsonObject{{"states", std::move(states)},
                    {"lowest", lowest_ ? json_of(*lowest_) : Json()},
                    {"last_evaluated", last_evaluated_},
                    {"without_best", without_best_}};
}

void BestStates::restore(const Json* saved, const std::string& source) {
  if (saved == nullptr) return;
  const auto require = [&](bool holds) {
    if (!holds) throw storage_error(source + ": best: not a record of the best states");
  };
  const auto count = [&](const char* name) {
    const Json* value = saved->find(name);
    require(value != nullptr && value->is_signed() && value->as_int() >= 0);
    return value->as_int();
  };
  require(saved->is_object());
  const Json *states = saved->find("states"), *lowest = saved->find("lowest");
  require(states != nullptr && states->is_array() && lowest != nullptr);
  states_.clear();
  for (const Json& json : states->as_array()) {
    const auto state = state_in(json);
    require(state.has_value());
    states_.push_back(*state);
  }
  states_ = best_of(std::move(states_), most_);
  lowest_ = state_in(*lowest);
  require(lowest_ || lowest->is_null());
  last_evaluated_ = count("last_evaluated");
  without_best_ = count("without_best");
}

}  // namespace hearth
