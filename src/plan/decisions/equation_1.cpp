#include "plan/decisions/equation_1.h"

#include <algorithm>
#include <limits>

#include "plan/decisions/split_model.h"

namespace hearth {

namespace {

/// Numerator and denominator while experts move to the device one by one.
class Equation1 {
 public:
  Equation1(const SplitModel& model, EquationForm form) : model_(model), form_(form) {
    const SplitProblem& p = model.problem();
    in_.resize(p.passes.size()), out_.resize(p.passes.size());
    for (size_t i = 0; i < in_.size(); ++i) {
      in_[i] = is_printed() ? link_seconds(p.in, p.dense_bytes) : p.passes[i].in_free_s;
      out_[i] = is_printed() ? 0 : p.passes[i].out_free_s;
    }
    moved_.resize(static_cast<size_t>(p.experts));
  }

  void move_to_device(int32_t expert) {
    const SplitProblem& p = model_.problem();
    moved_[static_cast<size_t>(expert)] = 1;
    for (size_t i = 0; i < in_.size(); ++i) {
      in_[i] += is_printed() ? link_seconds(p.in, p.expert_bytes) : model_.load_seconds(i, expert);
      if (is_printed() || p.passes[i].gradient_bytes <= 0) continue;
      out_[i] += model_.gradient_seconds(i);
      sends_ = true;
    }
  }
  double host() const {
    double sum = 0;  // from the least popular up
    for (size_t i = model_.ranking().size(); i-- > 0;) {
      const int32_t expert = model_.ranking()[i];
      if (moved_[static_cast<size_t>(expert)] == 0) sum += host_of(expert);
    }
    if (is_printed() || sum == 0) return sum;
    for (const SplitPass& pass : model_.problem().passes) sum += pass.host_free_s;
    return sum;
  }
  double link() const {
    double sum = 0;
    for (size_t i = 0; i < in_.size(); ++i) sum += sends_ ? std::max(in_[i], out_[i]) : in_[i];
    return sum;
  }

 private:
  bool is_printed() const { return form_ == EquationForm::printed; }
  double host_of(int32_t expert) const {
    if (!is_printed()) return model_.host_seconds(expert);
    double sum = 0;
    for (const SplitPass& pass : model_.problem().passes)
      sum += pass.host->at(model_.tokens(expert));
    return sum;
  }

  const SplitModel& model_;
  EquationForm form_;
  std::vector<double> in_, out_;  // by pass
  bool sends_ = false;
  std::vector<uint8_t> moved_;  // by expert
};

/// Passes follow each other, so the host may cost more in one than it gains in the other: in forward it
/// also updates weights. Whether the device has room for all experts and is as fast with all of them.
bool is_better_alone(const SplitModel& model, std::span<const uint8_t> on_device) {
  const SplitProblem& p = model.problem();
  if (std::ssize(model.ranking()) > p.device_experts) return false;
  const std::vector<uint8_t> all(static_cast<size_t>(p.experts), 1);
  return model.seconds(all) <= model.seconds(on_device);
}

}  // namespace

ExpertSplit split_by_equation_1(const SplitProblem& problem, EquationForm form) {
  const SplitModel model(problem);
  Equation1 equation(model, form);
  std::vector<uint8_t> on_device(static_cast<size_t>(problem.experts));
  int64_t room = problem.device_experts;
  const auto move = [&](int32_t expert) {
    on_device[static_cast<size_t>(expert)] = 1;
    equation.move_to_device(expert);
    --room;
  };
  if (form == EquationForm::corrected) {
    for (const int32_t expert : model.ranking()) {
      if (room > 0 && model.is_given(expert)) move(expert);
    }
  }
  bool is_full = false;
  for (const int32_t expert : model.ranking()) {
    if (on_device[static_cast<size_t>(expert)] != 0) continue;
    if (equation.host() <= equation.link()) break;
    is_full = room == 0;
    if (is_full) break;
    move(expert);
  }
  if (form == EquationForm::corrected && is_better_alone(model, on_device)) {
    on_device.assign(on_device.size(), 1);
  }
  ExpertSplit split = model.split_of(on_device);
  for (const int32_t expert : split.host) {
    SplitReason& reason = split.reasons[static_cast<size_t>(expert)];
    reason = SplitReason::host_balance;
    if (!is_full) continue;
    // The equation would have loaded this one, too.
    if (equation.host() <= equation.link()) continue;
    reason = SplitReason::no_room;
    equation.move_to_device(expert);
  }
  return split;
}

double ratio_of_equation_1(const SplitProblem& problem, EquationForm form,
                           const ExpertSplit& split) {
  const SplitModel model(problem);
  Equation1 equation(model, form);
  for (const int32_t expert : split.device) equation.move_to_device(expert);
  const double host = equation.host(), link = equation.link();
  if (link > 0) return host / link;
  return host > 0 ? std::numeric_limits<double>::infinity() : 0;
}

}  // namespace hearth
