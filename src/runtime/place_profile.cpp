#include "runtime/place_profile.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "base/error_format.h"
#include "base/stopwatch.h"
#include "plan/monotone.h"
#include "plan/task_costs.h"
#include "runtime/task_inputs.h"

namespace hearth {
namespace {

constexpr int64_t kMiddleTokens = 64;       // times of fewer say little of many
constexpr int64_t kLeastExpertTokens = 64;  // log_spaced has kLeastExpertPoints below
constexpr int64_t kLeastExpertPoints = 20;
constexpr double kLongSample = 0.05;  // seconds; shorter tasks run several times in a pass

struct Point {
  TaskSize size;
  int64_t units = 0, pairs = 0;
  double share = 1;             // of the time of a run that the point counts
  std::vector<double> samples;  // of a run
  double wall_s = 0;            // of a run, with what prepares it
};

/// The points of an entry.
struct Curve {
  TaskKind kind = TaskKind::embed;
  Phase phase = Phase::forward;
  int32_t layer = -1;
  CostShape shape;
  std::vector<Point> points;  // by units
  int64_t planned_end = 0;    // units of the last point that the memory allows
};

double quantile(std::vector<double> values, double at) {
  std::sort(values.begin(), values.end());
  const double position = at * static_cast<double>(values.size() - 1);
  const auto low = static_cast<size_t>(position);
  const size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (position - static_cast<double>(low)) * (values[high] - values[low]);
}

class Profiler {
 public:
  Profiler(const BenchPlace& place, BenchSubject& subject, const ProfileOptions& options)
      : place_(place), subject_(subject), options_(options) {
    const uint64_t parameters = parameter_bytes(subject);
    values_ = options.max_bytes - std::min(options.max_bytes, parameters);
  }

  PlaceProfile run() {
    add_curves();
    while (values_ < needed_bytes()) drop_largest();
    for (Curve& curve : curves_) {
      if (!curve.points.empty()) curve.planned_end = curve.points.back().units;
    }
    std::vector<TaskSize> sizes;
    for (const Curve& curve : curves_) {
      for (const Point& point : curve.points) sizes.push_back(point.size);
    }
    planned_ = most_memory(sizes);
    TaskBench bench(place_, subject_, sizes);
    setup_s_ = watch_.seconds();
    // The most important first: a point of each curve, then experts, then the other sizes.
    first_points(bench);
    fit_experts(bench);
    complete_experts(bench);
    pass(bench, true);
    while (!ended_ && pass(bench, false)) {
    }
    return result();
  }

 private:
  void add_curves() {
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
      both(TaskKind::combine, model.moe_layer);
      for (const Phase phase : {Phase::forward, Phase::backward}) add_experts(phase);
      if (model.spec.has_shared_expert(model.moe_layer)) both(TaskKind::mlp, model.moe_layer);
    } else {
      both(TaskKind::attention, model.dense_layer);
      both(TaskKind::combine, model.dense_layer);
    }
    if (model.dense_layer >= 0) both(TaskKind::mlp, model.dense_layer);
    add_tokens(TaskKind::head, Phase::forward, static_cast<int32_t>(model.spec.layers), tokens);
    add_sweep(TaskKind::norm, {place_.place});
    std::vector<int32_t> layers;
    for (int32_t layer = -1; layer <= model.spec.layers; ++layer) layers.push_back(layer);
    add_sweep(TaskKind::update, layers);
  }

  Curve& add_curve(TaskKind kind, Phase phase, int32_t layer) {
    Curve curve{kind, phase, layer, {}, {}, 0};
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
  bool fits(const TaskSize& size) const {
    const TaskMemory memory = task_memory(subject_, place_, size);
    if (!planned_) return memory.bytes(place_.workers) <= values_;
    return memory.values <= planned_->values && memory.scratch.shared <= planned_->scratch.shared &&
           memory.scratch.per_worker <= planned_->scratch.per_worker;
  }

  TaskMemory most_memory(const std::vector<TaskSize>& sizes) const {
    TaskMemory most;
    for (const TaskSize& size : sizes) {
      const TaskMemory memory = task_memory(subject_, place_, size);
      most.values = std::max(most.values, memory.values);
      most.scratch = max_of(most.scratch, memory.scratch);
    }
    return most;
  }

  void add_tokens(TaskKind kind, Phase phase, int32_t layer, const std::vector<int64_t>& tokens) {
    Curve& curve = add_curve(kind, phase, layer);
    for (const Curve& other : curves_) {
      if (&other != &curve && other.kind == kind && other.phase == phase &&
          other.shape == curve.shape) {
        curves_.pop_back();
        return;
      }
    }
    for (const int64_t n : tokens) {
      Point point{{kind, phase, layer, n}, n, 0, 1, {}, 0};
      if (kind == TaskKind::attention) point.pairs = pairs_at(layer, n);
      // The head's time is that of its products with the vocabulary.
      if (kind == TaskKind::head) point.share = 1 / subject_.model.head_share;
      if (curve.points.empty() || fits(point.size)) curve.points.push_back(std::move(point));
    }
  }

  int64_t pairs_at(int32_t layer, int64_t tokens) const {
    const int64_t longest = std::min(subject_.longest, tokens);
    std::vector<int32_t> offsets;
    for (int64_t i = 0; i <= sequences_of(tokens, longest); ++i) {
      offsets.push_back(static_cast<int32_t>(std::min(i * longest, tokens)));
    }
    const int64_t window = subject_.model.spec.windows[static_cast<size_t>(layer)];
    return std::llround(pairs_of(offsets, offsets, window));
  }

  void add_experts(Phase phase) {
    Curve& curve = add_curve(TaskKind::experts, phase, subject_.model.moe_layer);
    for (const int64_t n : log_spaced(options_.most_tokens, options_.expert_points))
      add_expert(curve, n);
  }

  /// As many experts as fit, so that small calls read their weights from memory as a step does.
  void add_expert(Curve& curve, int64_t tokens) const {
    int64_t experts = subject_.model.held_experts;
    const auto size = [&] {
      return TaskSize{TaskKind::experts, curve.phase, curve.layer, tokens * experts, experts};
    };
    while (experts > 1 && (experts * tokens > 4 * options_.most_tokens || !fits(size()))) {
      experts = (experts + 1) / 2;
    }
    if (!curve.points.empty() && !fits(size())) return;
    curve.points.push_back({size(), tokens, 0, 1 / static_cast<double>(experts), {}, 0});
  }

  void add_sweep(TaskKind kind, const std::vector<int32_t>& layers) {
    Curve& curve = add_curve(kind, Phase::forward, layers.front());
    for (const int32_t layer : layers) {
      const TaskSize size{kind, Phase::forward, layer, 0};
      const int64_t n = swept_parameters(subject_, place_, size);
      const bool known = std::any_of(curve.points.begin(), curve.points.end(),
                                     [&](const Point& p) { return p.units == n; });
      if (n > 0 && !known) curve.points.push_back({size, n, 0, 1, {}, 0});
    }
    std::sort(curve.points.begin(), curve.points.end(),
              [](const Point& a, const Point& b) { return a.units < b.units; });
  }

  /// The values of one task and the scratch of another can be the largest.
  uint64_t needed_bytes() const {
    TaskMemory most;
    for (const Curve& curve : curves_) {
      for (const Point& point : curve.points) {
        const TaskMemory memory = task_memory(subject_, place_, point.size);
        most.values = std::max(most.values, memory.values);
        most.scratch = max_of(most.scratch, memory.scratch);
      }
    }
    return most.bytes(place_.workers);
  }

  /// Leaves out the point that needs most, as long as its curve has another.
  void drop_largest() {
    Curve* largest = nullptr;
    uint64_t most = 0;
    for (Curve& curve : curves_) {
      if (curve.points.size() < 2) continue;
      const TaskMemory memory = task_memory(subject_, place_, curve.points.back().size);
      if (memory.bytes(place_.workers) <= most) continue;
      most = memory.bytes(place_.workers);
      largest = &curve;
    }
    if (largest == nullptr) {
      throw usage_error("measuring needs {} bytes of memory for values and scratch, {} are free",
                        needed_bytes(), values_);
    }
    largest->points.pop_back();
  }

  double left() const { return options_.seconds - watch_.seconds(); }

  void measure(TaskBench& bench, Point& point, bool first) {
    const double known = point.samples.empty() ? 0 : quantile(point.samples, .5);
    const int times = first ? 1 : known < kLongSample / 10 ? 4 : known < kLongSample ? 2 : 1;
    const bool warm = left() > 2 * point.wall_s && left() > 0;  // else the first run has to do
    const Stopwatch watch;
    const std::vector<double> runs =
        bench.run(point.size, times, warm, [&] { return left() > point.wall_s; });
    point.wall_s = watch.seconds() / static_cast<double>(runs.size() + (warm ? 1 : 0));
    point.samples.insert(point.samples.end(), runs.begin(), runs.end());
    ended_ =
        options_.progress && !options_.progress(std::min(1.0, watch_.seconds() / options_.seconds));
  }

  void first_points(TaskBench& bench) {
    for (Curve& curve : curves_) {
      if (ended_ || curve.points.empty()) continue;
      if (options_.whole || left() > 0) measure(bench, first_point(curve), true);
    }
  }

  /// Of a quick table the largest of at most 64 tokens, else the smallest.
  Point& first_point(Curve& curve) const {
    Point* first = &curve.points.front();
    if (!options_.quick || curve.kind == TaskKind::experts) return *first;
    for (Point& point : curve.points) {
      if (point.size.tokens <= kMiddleTokens && point.size.tokens > 0) first = &point;
    }
    return *first;
  }

  /// The curve of experts ends where its points would take more than their part of the time.
  void fit_experts(TaskBench& bench) {
    for (Curve& curve : curves_) {
      if (curve.kind != TaskKind::experts) continue;
      auto probe = std::find_if(curve.points.begin(), curve.points.end(),
                                [](const Point& p) { return p.units >= kLeastExpertTokens; });
      if (probe == curve.points.end() || ended_ || (!options_.whole && left() <= 0)) continue;
      measure(bench, *probe, true);
      // Points are about a factor apart, so all of them take a few times the last.
      const double a_token = probe->wall_s * probe->share / static_cast<double>(probe->units);
      const double most = std::max(left(), 0.0) / 60 / a_token;
      if (most < static_cast<double>(curve.points.back().units)) {
        shorten(curve, std::max(kLeastExpertTokens, static_cast<int64_t>(most)));
      }
    }
  }

  /// Points up to `end`, as many as before. Samples stay.
  void shorten(Curve& curve, int64_t end) const {
    Curve shorter = curve;
    shorter.points.clear();
    for (const int64_t n : log_spaced(end, options_.expert_points)) add_expert(shorter, n);
    for (Point& point : shorter.points) {
      for (const Point& known : curve.points) {
        if (known.units != point.units) continue;
        point.samples = known.samples;
        point.wall_s = known.wall_s;
      }
    }
    curve = std::move(shorter);
  }

  /// A table has all points of experts. If the time is too short for them, small ones have to do.
  void complete_experts(TaskBench& bench) {
    for (Curve& curve : curves_) {
      if (curve.kind != TaskKind::experts) continue;
      const auto measure_all = [&](bool must) {
        for (size_t i = 0; i < curve.points.size() && !ended_; ++i) {
          if (!curve.points[i].samples.empty()) continue;
          if (must || expected(curve, i) < left()) measure(bench, curve.points[i], true);
        }
      };
      measure_all(false);
      const auto count = std::count_if(curve.points.begin(), curve.points.end(),
                                       [](const Point& p) { return !p.samples.empty(); });
      if (count >= std::min(kLeastExpertPoints, options_.expert_points)) continue;
      shorten(curve, std::min(kLeastExpertTokens, curve.points.back().units));
      measure_all(options_.whole);
    }
  }

  /// Measures all points once more, the smallest of all curves first; of a quick table the largest,
  /// each in at most a quarter of what is left. Returns whether any was.
  bool pass(TaskBench& bench, bool first) {
    bool any = false;
    size_t most = 0;
    for (const Curve& curve : curves_) most = std::max(most, curve.points.size());
    for (size_t n = 0; n < most && !ended_; ++n) {
      const size_t i = options_.quick ? most - 1 - n : n;
      for (Curve& curve : curves_) {
        if (i >= curve.points.size() || ended_) continue;
        Point& point = curve.points[i];
        if (first != point.samples.empty()) continue;
        if (!first && point.samples.size() >= options_.most_samples) continue;
        if (expected(curve, i) > (options_.quick ? left() / 4 : left())) continue;
        measure(bench, point, first);
        any = true;
      }
    }
    return any;
  }

  /// About how long the next measurement of a point takes. A first one has a run that warms.
  static double expected(const Curve& curve, size_t i) {
    const Point& point = curve.points[i];
    if (!point.samples.empty()) return point.wall_s;
    for (size_t before = i; before-- > 0;) {
      const Point& known = curve.points[before];
      if (known.samples.empty()) continue;
      const double ratio = static_cast<double>(std::max<int64_t>(point.size.tokens, 1)) /
                           static_cast<double>(std::max<int64_t>(known.size.tokens, 1));
      // A sweep has no tokens; its units are parameters.
      const double units =
          static_cast<double>(point.units) / static_cast<double>(std::max<int64_t>(known.units, 1));
      return 2 * known.wall_s * std::max(1.0, point.size.tokens > 0 ? ratio : units);
    }
    return 0;
  }

  /// For each kind the sizes from which on a phase of it was not measured.
  std::vector<std::string> left_out() const {
    std::vector<std::pair<TaskKind, int64_t>> ends;  // the least of the phases; 0: nothing
    for (const Curve& curve : curves_) {
      if (curve.points.empty()) continue;
      int64_t end = 0;
      for (const Point& point : curve.points) {
        if (!point.samples.empty()) end = point.units;
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
  bool is_short(const Curve& curve) const {
    if (options_.whole || curve.kind != TaskKind::experts) return false;
    const auto count = std::count_if(curve.points.begin(), curve.points.end(),
                                     [](const Point& p) { return !p.samples.empty(); });
    return count < std::min<std::ptrdiff_t>(kLeastExpertPoints, std::ssize(curve.points));
  }

  PlaceProfile result() const {
    PlaceProfile profile;
    std::vector<double> spreads;
    for (const Curve& curve : curves_) {
      if (is_short(curve)) continue;
      CostEntry entry;
      entry.kind = curve.kind;
      entry.phase = curve.phase;
      entry.dtype = subject_.settings.compute;
      entry.cores = options_.cores;
      entry.shape = curve.shape;
      std::vector<double> times;
      for (const Point& point : curve.points) {
        if (point.samples.empty()) continue;
        const double median = std::max(quantile(point.samples, .5), 1e-9);
        const double counts = options_.quick ? std::max(quantile(point.samples, 0), 1e-9) : median;
        times.push_back(counts * point.share);
        entry.units.push_back(point.units);
        if (point.pairs > 0) entry.pairs.push_back(point.pairs);
        profile.samples += static_cast<int64_t>(point.samples.size());
        if (point.samples.size() < 3) continue;
        spreads.push_back((quantile(point.samples, .75) - quantile(point.samples, .25)) / median);
      }
      if (times.empty()) continue;  // nothing of it is trained
      entry.seconds = never_falling(times);
      profile.points += static_cast<int64_t>(times.size());
      profile.entries.push_back(std::move(entry));
    }
    if (!spreads.empty()) profile.spread = quantile(spreads, .75);
    profile.left_out = left_out();
    profile.setup_s = setup_s_;
    return profile;
  }

  const BenchPlace& place_;
  BenchSubject& subject_;
  const ProfileOptions& options_;
  uint64_t values_ = 0;                // bytes for values and scratch
  std::optional<TaskMemory> planned_;  // what was reserved, by part
  std::vector<Curve> curves_;
  Stopwatch watch_;
  double setup_s_ = 0;
  bool ended_ = false;
};

}  // namespace

PlaceProfile profile_place(const BenchPlace& place, BenchSubject& subject,
                           const ProfileOptions& options) {
  return Profiler(place, subject, options).run();
}

}  // namespace hearth
