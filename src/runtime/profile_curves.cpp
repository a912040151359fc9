#include "runtime/profile_curves.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error_format.h"
#include "plan/monotone.h"
#include "plan/task_costs.h"
#include "runtime/profile_scaling.h"
#include "runtime/task_inputs.h"

namespace hearth {

namespace {

constexpr double kSteepest = 1.5;  // times what grows in proportion

/// What a point counts: the shortest run, because what a neighbour on the machine takes from some
/// runs does not count.
double seconds_of(const ProfilePoint& point) {
  return std::max(quantile(point.samples, 0), 1e-9) * point.share;
}

/// Times of which a task of the second size takes at most so many of the first.
double most_growth(const ProfilePoint& from, const ProfilePoint& to) {
  const auto ratio = [](int64_t a, int64_t b) {
    return static_cast<double>(a) / static_cast<double>(b);
  };
  const double units = ratio(to.units, from.units);
  return kSteepest * (from.pairs > 0 ? std::max(units, ratio(to.pairs, from.pairs)) : units);
}

/// A run alone may have taken longer by accident: not longer than a larger size, nor much more than
/// in proportion to a smaller one.
void bound_lone_runs(const std::vector<const ProfilePoint*>& points, std::vector<double>& seconds) {
  const auto is_alone = [&](size_t i) { return points[i]->samples.size() == 1; };
  for (size_t i = points.size(); i-- > 1;) {
    if (is_alone(i - 1)) seconds[i - 1] = std::min(seconds[i - 1], seconds[i]);
  }
  for (size_t i = 1; i < points.size(); ++i) {
    const double most = most_growth(*points[i - 1], *points[i]) * seconds[i - 1];
    if (is_alone(i)) seconds[i] = std::min(seconds[i], most);
  }
}

}  // namespace

double quantile(std::vector<double> values, double at) {
  std::sort(values.begin(), values.end());
  const double position = at * static_cast<double>(values.size() - 1);
  const auto low = static_cast<size_t>(position);
  const size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (position - static_cast<double>(low)) * (values[high] - values[low]);
}

std::optional<double> ProfilePoint::spread() const {
  if (samples.size() < 3) return std::nullopt;
  return (quantile(samples, .75) - quantile(samples, .25)) / std::max(quantile(samples, .5), 1e-9);
}

int64_t ProfileCurve::measured_points() const {
  return std::count_if(points.begin(), points.end(),
                       [](const ProfilePoint& p) { return p.measured(); });
}

double ProfileCurve::expected_s(size_t i) const {
  const ProfilePoint& point = points[i];
  if (point.measured()) return point.wall_s;
  const std::optional<size_t> below = measured_below(i);
  if (!below) return 0;
  const ProfilePoint& known = points[*below];
  if (point.size.tokens == 0) {
    // A sweep, whose units are parameters. Its sizes are so far apart that what prepares a run, and
    // takes equally long for every size, must not count in proportion.
    const double more =
        static_cast<double>(point.units) / static_cast<double>(std::max<int64_t>(known.units, 1));
    return 2 * (known.wall_s + quantile(known.samples, .5) * std::max(0.0, more - 1));
  }
  const double ratio = static_cast<double>(point.size.tokens) /
                       static_cast<double>(std::max<int64_t>(known.size.tokens, 1));
  return 2 * known.wall_s * std::max(1.0, ratio);
}

std::optional<size_t> ProfileCurve::measured_below(size_t i) const {
  while (i-- > 0) {
    if (points[i].measured()) return i;
  }
  return std::nullopt;
}

ProfileCurves::ProfileCurves(const BenchPlace& place, const BenchSubject& subject,
                             const ProfileOptions& options)
    : place_(place),
      subject_(subject),
      options_(options),
      most_experts_(std::max<int64_t>(1, subject.model.held_experts)) {
  const uint64_t parameters = parameter_bytes(subject);
  values_ = options.max_bytes - std::min(options.max_bytes, parameters);
  add_curves();
  while (values_ < most_memory().bytes(place.workers)) drop_largest();
  for (ProfileCurve& curve : curves_) {
    if (!curve.points.empty()) curve.planned_end = curve.points.back().units;
  }
}

std::vector<TaskSize> ProfileCurves::sizes() const {
  std::vector<TaskSize> sizes;
  for (const ProfileCurve& curve : curves_) {
    for (const ProfilePoint& point : curve.points) sizes.push_back(point.size);
  }
  return sizes;
}

void ProfileCurves::fix_memory() { planned_ = most_memory(); }

void ProfileCurves::add_curves() {
  const BenchModel& model = subject_.model;
  const auto tokens = log_spaced(options_.most_tokens, options_.token_points);
  const auto both = [&](TaskKind kind, int32_t layer) {
    for (const Phase phase : {Phase::forward, Phase::backward}) {
      add_tokens(kind, phase, layer, tokens);
    }
  };
  both(TaskKind::embed, -1);
  if (model.moe_layer >= 0) {
    both(TaskKind::attention, model.moe_layer);
    both(TaskKind::dispatch, model.moe_layer);
    add_tokens(TaskKind::combine, Phase::forward, model.moe_layer, tokens);
    if (options_.shared_experts) {
      add_tokens(TaskKind::combine, Phase::backward, model.moe_layer, tokens);
    }
    for (const Phase phase : {Phase::forward, Phase::backward}) add_experts(phase);
    if (model.spec.has_shared_expert(model.moe_layer)) both(TaskKind::mlp, model.moe_layer);
  } else {
    both(TaskKind::attention, model.dense_layer);
    add_tokens(TaskKind::combine, Phase::forward, model.dense_layer, tokens);
  }
  if (model.dense_layer >= 0) both(TaskKind::mlp, model.dense_layer);
  add_tokens(TaskKind::head, Phase::forward, static_cast<int32_t>(model.spec.layers), tokens);
  add_sweep(TaskKind::norm, {place_.place});
  std::vector<int32_t> layers;
  for (int32_t layer = -1; layer <= model.spec.layers; ++layer) layers.push_back(layer);
  add_sweep(TaskKind::update, layers);
}

ProfileCurve& ProfileCurves::add_curve(TaskKind kind, Phase phase, int32_t layer) {
  ProfileCurve curve{kind, phase, layer, {}, {}, 0};
  Task task;
  task.kind = kind;
  task.layer = layer;
  ModelSpec spec = subject_.model.spec;  // with the vocabulary of the model
  spec.vocabulary = static_cast<int64_t>(
      std::llround(static_cast<double>(spec.vocabulary) / subject_.model.head_share));
  curve.shape = cost_shape(task, spec);
  // An entry of the same shape: a shared expert as wide as the dense MLP.
  curves_.push_back(std::move(curve));
  return curves_.back();
}

/// Once memory is reserved, each part of it must be enough.
bool ProfileCurves::fits(const TaskSize& size) const {
  const TaskMemory memory = task_memory(subject_, place_, size);
  if (!planned_) return memory.bytes(place_.workers) <= values_;
  return memory.values <= planned_->values && memory.scratch.shared <= planned_->scratch.shared &&
         memory.scratch.per_worker <= planned_->scratch.per_worker;
}

/// The values of one task and the scratch of another can be the largest.
TaskMemory ProfileCurves::most_memory() const {
  TaskMemory most;
  for (const ProfileCurve& curve : curves_) {
    for (const ProfilePoint& point : curve.points) {
      const TaskMemory memory = task_memory(subject_, place_, point.size);
      most.values = std::max(most.values, memory.values);
      most.scratch = max_of(most.scratch, memory.scratch);
    }
  }
  return most;
}

void ProfileCurves::add_tokens(TaskKind kind, Phase phase, int32_t layer,
                               const std::vector<int64_t>& tokens) {
  ProfileCurve& curve = add_curve(kind, phase, layer);
  for (const ProfileCurve& other : curves_) {
    if (&other != &curve && other.kind == kind && other.phase == phase &&
        other.shape == curve.shape) {
      curves_.pop_back();
      return;
    }
  }
  for (const int64_t n : tokens) {
    ProfilePoint point{{kind, phase, layer, n}, n, 0, 1, {}, 0};
    if (kind == TaskKind::attention) point.pairs = pairs_at(layer, n);
    // The head's time is that of its products with the vocabulary.
    if (kind == TaskKind::head) point.share = 1 / subject_.model.head_share;
    if (curve.points.empty() || fits(point.size)) curve.points.push_back(std::move(point));
  }
}

int64_t ProfileCurves::pairs_at(int32_t layer, int64_t tokens) const {
  const int64_t longest = std::min(subject_.longest, tokens);
  std::vector<int32_t> offsets;
  for (int64_t i = 0; i <= sequences_of(tokens, longest); ++i) {
    offsets.push_back(static_cast<int32_t>(std::min(i * longest, tokens)));
  }
  const int64_t window = subject_.model.spec.windows[static_cast<size_t>(layer)];
  return std::llround(pairs_of(offsets, offsets, window));
}

void ProfileCurves::add_experts(Phase phase) {
  ProfileCurve& curve = add_curve(TaskKind::experts, phase, subject_.model.moe_layer);
  for (const int64_t n : expert_sizes(options_.most_tokens)) add_expert(curve, n);
}

/// About equally far apart, with the run's own among them.
std::vector<int64_t> ProfileCurves::expert_sizes(int64_t most) const {
  std::vector<int64_t> sizes = log_spaced(most, options_.expert_points);
  const int64_t own = options_.expert_tokens;
  if (own <= 0 || own > most) return sizes;
  const auto at = std::lower_bound(sizes.begin(), sizes.end(), own);
  if (at == sizes.end() || *at != own) sizes.insert(at, own);
  return sizes;
}

/// As many experts as fit, so that small calls read their weights from memory as a step does.
void ProfileCurves::add_expert(ProfileCurve& curve, int64_t tokens) const {
  int64_t experts = most_experts_;
  const auto size = [&] {
    return TaskSize{TaskKind::experts, curve.phase, curve.layer, tokens * experts, experts};
  };
  while (experts > 1 && (experts * tokens > 4 * options_.most_tokens || !fits(size()))) {
    experts = (experts + 1) / 2;
  }
  if (!curve.points.empty() && !fits(size())) return;
  curve.points.push_back({size(), tokens, 0, 1 / static_cast<double>(experts), {}, 0});
}

void ProfileCurves::add_sweep(TaskKind kind, const std::vector<int32_t>& layers) {
  ProfileCurve& curve = add_curve(kind, Phase::forward, layers.front());
  for (const int32_t layer : layers) {
    const TaskSize size{kind, Phase::forward, layer, 0};
    const int64_t n = swept_parameters(subject_, place_, size);
    const bool known = std::any_of(curve.points.begin(), curve.points.end(),
                                   [&](const ProfilePoint& p) { return p.units == n; });
    if (n > 0 && !known) curve.points.push_back({size, n, 0, 1, {}, 0});
  }
  std::sort(curve.points.begin(), curve.points.end(),
            [](const ProfilePoint& a, const ProfilePoint& b) { return a.units < b.units; });
}

/// Leaves out the point that needs most, as long as its curve has another.
void ProfileCurves::drop_largest() {
  ProfileCurve* largest = nullptr;
  uint64_t most = 0;
  for (ProfileCurve& curve : curves_) {
    if (curve.points.size() < 2) continue;
    const TaskMemory memory = task_memory(subject_, place_, curve.points.back().size);
    if (memory.bytes(place_.workers) <= most) continue;
    most = memory.bytes(place_.workers);
    largest = &curve;
  }
  if (largest == nullptr) {
    throw usage_error("measuring needs {} bytes of memory for values and scratch, {} are free",
                      most_memory().bytes(place_.workers), values_);
  }
  largest->points.pop_back();
}

void ProfileCurves::shorten(ProfileCurve& curve, int64_t end) const {
  replace_experts(curve, expert_sizes(end));
}

void ProfileCurves::limit_experts(int64_t most) {
  most_experts_ = std::clamp<int64_t>(most, 1, most_experts_);
  for (ProfileCurve& curve : curves_) {
    if (curve.kind != TaskKind::experts) continue;
    std::vector<int64_t> sizes;
    for (const ProfilePoint& point : curve.points) sizes.push_back(point.units);
    replace_experts(curve, sizes);
  }
}

void ProfileCurves::replace_experts(ProfileCurve& curve, const std::vector<int64_t>& sizes) const {
  ProfileCurve other = curve;
  other.points.clear();
  for (const int64_t n : sizes) add_expert(other, n);
  for (ProfilePoint& point : other.points) {
    for (const ProfilePoint& known : curve.points) {
      if (known.units != point.units || known.size.experts != point.size.experts) continue;
      point.samples = known.samples;
      point.wall_s = known.wall_s;
    }
  }
  curve = std::move(other);
}

/// For each kind the sizes from which on a phase of it was not measured.
std::vector<std::string> ProfileCurves::left_out() const {
  std::vector<std::pair<TaskKind, int64_t>> ends;  // the least of the phases; 0: nothing
  for (const ProfileCurve& curve : curves_) {
    if (curve.points.empty()) continue;
    int64_t end = 0;
    for (const ProfilePoint& point : curve.points) {
      if (point.measured()) end = point.units;
    }
    if (is_short(curve)) end = 0;
    if (end == curve.planned_end) continue;
    const auto known = std::find_if(ends.begin(), ends.end(),
                                    [&](const auto& e) { return e.first == curve.kind; });
    if (known == ends.end()) {
      ends.emplace_back(curve.kind, end);
    } else {
      known->second = std::min(known->second, end);
    }
  }
  std::vector<std::string> texts;
  for (const auto& [kind, end] : ends) {
    std::string text(name_of(kind));
    const bool sweep = kind == TaskKind::norm || kind == TaskKind::update;
    if (end > 0) {
      text += " above " + std::to_string(end) + (sweep ? " parameters" : " tokens");
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

/// A curve of experts without enough points is left out of a table that need not be whole.
bool ProfileCurves::is_short(const ProfileCurve& curve) const {
  if (options_.whole || options_.quick || curve.kind != TaskKind::experts) return false;
  return curve.measured_points() <
         std::min<std::ptrdiff_t>(kLeastExpertPoints, std::ssize(curve.points));
}

/// The sizes and times of an entry: those that were measured, and of a quick table what follows from
/// them for the sizes that were not reached.
CurveTimes ProfileCurves::times_of(const ProfileCurve& curve) const {
  std::vector<const ProfilePoint*> measured;
  std::vector<double> seconds;
  for (const ProfilePoint& point : curve.points) {
    if (!point.measured()) continue;
    measured.push_back(&point);
    seconds.push_back(seconds_of(point));
  }
  bound_lone_runs(measured, seconds);
  CurveTimes times;
  for (size_t i = 0; i < measured.size(); ++i) times.add(*measured[i], seconds[i]);
  return times;
}

PlaceProfile ProfileCurves::result() const {
  PlaceProfile profile;
  std::vector<double> spreads;
  std::vector<CurveTimes> times;
  for (const ProfileCurve& curve : curves_) times.push_back(times_of(curve));
  if (options_.quick) add_unreached(curves_, times);
  for (size_t i = 0; i < curves_.size(); ++i) {
    const ProfileCurve& curve = curves_[i];
    for (const ProfilePoint& point : curve.points) {
      profile.samples += std::ssize(point.samples);
      if (const auto spread = point.spread()) spreads.push_back(*spread);
    }
    if (is_short(curve) || times[i].units.empty()) continue;  // or nothing of it is trained
    CostEntry entry;
    entry.kind = curve.kind;
    entry.phase = curve.phase;
    entry.dtype = subject_.settings.compute;
    entry.cores = options_.cores;
    entry.shape = curve.shape;
    entry.units = times[i].units;
    entry.pairs = times[i].pairs;
    entry.seconds = never_falling(times[i].seconds);
    profile.points += std::ssize(entry.units);
    profile.entries.push_back(std::move(entry));
  }
  if (!spreads.empty()) profile.spread = quantile(spreads, .75);
  profile.left_out = left_out();
  return profile;
}

}  // namespace hearth
