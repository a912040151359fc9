#include "report/metrics_history.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "report/log_lines.h"
#include "report/repeated_steps.h"
#include "report/step_line.h"

namespace hearth {
namespace {

constexpr int64_t kBuckets = 500;      // two pixels each in the widest chart
constexpr int64_t kHeatBuckets = 120;  // columns of the heat map
constexpr size_t kMostLayers = 1024, kMostResources = 512, kMostNotFinite = 500;

int64_t count_of(double value) {
  return value >= 0 && value < 0x1p62 ? static_cast<int64_t>(value) : 0;
}

void refuse_many(size_t count, size_t most, const char* what) {
  if (count > most) {
    throw input_error(std::string("more than ") + std::to_string(most) + " " + what);
  }
}

void add_all(const StepLine::Named& values, std::map<std::string, double>& sums) {
  for (const auto& [name, value] : values) {
    if (std::isfinite(value)) sums[name] += value;
  }
}

void add_layers(std::vector<Series>& layers, const StepAxis& axis, int64_t step,
                const std::vector<double>& values, double factor, const char* what) {
  refuse_many(values.size(), kMostLayers, what);
  while (layers.size() < values.size()) layers.emplace_back(axis);
  for (size_t i = 0; i < values.size(); ++i) layers[i].add(step, factor * values[i]);
}

void take(MetricsHistory& history, const StepAxis& heat, const StepLine& line) {
  const int64_t step = line.step;
  ++history.steps;
  if (step >= history.last_step && std::isfinite(line.epoch)) history.last_epoch = line.epoch;
  history.last_step = std::max(history.last_step, step);
  history.loss.add(step, line.loss);
  history.aux_loss.add(step, line.aux_loss);
  history.z_loss.add(step, line.z_loss);
  history.grad_norm.add(step, line.grad_norm);
  history.lr.add(step, line.lr);
  history.tokens_per_s.add(step, line.tokens_per_s);
  history.bound_pct.add(step, line.bound_pct);
  history.hit_pct.add(step, 100 * line.expert_hit_rate);
  history.late_load_s.add(step, line.late_load_s);
  if (std::isfinite(line.time_s)) history.time_s += line.time_s;
  if (std::isfinite(line.loss)) {
    if (!history.first_loss || step < history.first_loss_step) {
      history.first_loss = line.loss;
      history.first_loss_step = step;
    }
    if (step >= history.last_loss_step) {
      history.last_loss = line.loss;
      history.last_loss_step = step;
    }
  }
  if (!line.is_finite) {
    ++history.not_finite;
    if (history.not_finite_steps.size() < kMostNotFinite) history.not_finite_steps.push_back(step);
  }
  history.tokens += count_of(line.tokens);
  history.trained_tokens += count_of(line.trained_tokens);
  history.peak_rss_bytes =
      std::max(history.peak_rss_bytes, static_cast<uint64_t>(count_of(line.peak_rss_bytes)));
  history.peak_device_bytes =
      std::max(history.peak_device_bytes, static_cast<uint64_t>(count_of(line.peak_device_bytes)));
  for (const auto& [name, seconds] : line.busy) {
    history.busy.try_emplace(name, history.axis)
        .first->second.add(step, 100 * seconds / line.time_s);
  }
  for (const auto& [name, share] : line.prediction) {
    history.prediction.try_emplace(name, history.axis).first->second.add(step, 100 * share);
  }
  for (const auto& [name, share] : line.utilisation) {
    history.utilisation.try_emplace(name, history.axis).first->second.add(step, 100 * share);
  }
  add_all(line.busy, history.busy_s);
  add_all(line.stall_s, history.stall_s);
  add_all(line.cpu_s, history.cpu_s);
  if (!line.limit.empty()) ++history.limits[line.limit];
  refuse_many(history.busy.size(), kMostResources, "resources in busy");
  refuse_many(history.prediction.size(), kMostResources, "measures in prediction");
  refuse_many(history.utilisation.size(), kMostResources, "roles in utilisation");
  refuse_many(history.stall_s.size(), kMostResources, "resources in stall_s");
  refuse_many(history.cpu_s.size(), kMostResources, "kinds in cpu_s");
  refuse_many(history.limits.size(), kMostResources, "resources in limit");
  add_layers(history.expert_load, heat, step, line.expert_load, 1, "layers in expert_load");
  add_layers(history.residency, heat, step, line.residency, 100, "layers in residency");
}

}  // namespace

MetricsHistory read_metrics(const std::string& path, int64_t first, int64_t last) {
  MetricsHistory history;
  history.axis = StepAxis(first, last, kBuckets);
  if (file_info(path).kind == FileKind::none) return history;
  const InputFile file(path);
  RepeatedSteps steps;
  std::string_view text;
  int64_t least = kMostSteps + 1, most = -1;
  for (LogLines lines(file); lines.next(text);) {
    const int64_t step = step_of_line(text, path, lines.number());
    steps.add(step);
    least = std::min(least, step);
    most = std::max(most, step);
  }
  steps.settle();
  if (first <= last) least = std::min(least, first), most = std::max(most, last);
  if (most < least) return history;

  history.axis = StepAxis(least, most, kBuckets);
  for (Series* series :
       {&history.loss, &history.aux_loss, &history.z_loss, &history.grad_norm, &history.lr,
        &history.tokens_per_s, &history.bound_pct, &history.hit_pct, &history.late_load_s}) {
    *series = Series(history.axis);
  }
  const StepAxis heat(least, most, kHeatBuckets);
  StepLine line;
  for (LogLines lines(file); lines.next(text);) {
    read_step_line(text, path, lines.number(), line);
    if (steps.counts(line.step)) {
      try {
        take(history, heat, line);
      } catch (const Error& error) {
        throw input_error(path + ":" + std::to_string(lines.number()) + ": " + error.what());
      }
    } else {
      ++history.repeated;
      if (std::isfinite(line.time_s)) history.repeated_s += line.time_s;
    }
  }
  return history;
}

}  // namespace hearth
