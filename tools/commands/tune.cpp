#include "commands/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error_format.h"
#include "base/file_ops.h"
#include "base/stop.h"
#include "base/stopwatch.h"
#include "commands/commands.h"
#include "commands/output.h"
#include "commands/step_trial.h"
#include "options/option_lookup.h"
#include "train/signals.h"
#include "train/tune_candidates.h"

namespace hearth {
namespace {

constexpr int kSteps = 3;
constexpr size_t kTried = 3;  // beside the default

struct TrialTime {
  double median_s = 0;
  double spread_s = 0;  // the slowest step less the fastest
};

std::optional<TrialTime> measured(TrialTimes times) {
  if (times.seconds.size() < kSteps) return std::nullopt;
  std::sort(times.seconds.begin(), times.seconds.end());
  return TrialTime{times.seconds[kSteps / 2], times.seconds.back() - times.seconds.front()};
}

/// A schedule that was tried.
struct Tried {
  const TuneCandidate& candidate;
  std::optional<TrialTime> times;
  std::string failure;
};

/// The fastest schedule that beats the default by more than the spread of both; the default if
/// there is none.
size_t best_of(const std::vector<Tried>& tried) {
  size_t best = 0;
  if (!tried[0].times) return best;
  const TrialTime& standard = *tried[0].times;
  for (size_t i = 1; i < tried.size(); ++i) {
    if (!tried[i].times) continue;
    const TrialTime& other = *tried[i].times;
    const double gain = standard.median_s - other.median_s;
    if (gain <= std::max(standard.spread_s, other.spread_s)) continue;
    if (best == 0 || other.median_s < tried[best].times->median_s) best = i;
  }
  return best;
}

std::string text_of(const std::vector<Tried>& tried, size_t best) {
  std::string text =
      fmt::format("{:<56} {:>11} {:>11} {:>11}\n", "schedule", "predicted", "measured", "spread");
  for (size_t i = 0; i < tried.size(); ++i) {
    const Tried& t = tried[i];
    const std::string name = (i == 0 ? "default: " : "") + t.candidate.what;
    text += fmt::format("{:<56} {:>9.4g} s ", name, t.candidate.predicted_s);
    text += t.times ? fmt::format("{:>9.4g} s {:>9.4g} s{}\n", t.times->median_s, t.times->spread_s,
                                  i == best && best > 0 ? "  <- accepted" : "")
                    : (t.failure.empty() ? "not measured in time\n" : t.failure + "\n");
  }
  if (best == 0) {
    return text + (tried[0].times
                       ? "no schedule is faster than the default by more than the spread\n"
                       : "the default was not measured, so nothing is accepted\n");
  }
  return text + fmt::format("accepted: {}; the same bits as the default\n{}",
                            tried[best].candidate.what,
                            tried[best].candidate.beside.empty()
                                ? ""
                                : "give beside the plan: " + tried[best].candidate.beside + "\n");
}

Json json_of(const std::vector<Tried>& tried, size_t best) {
  JsonArray list;
  for (size_t i = 0; i < tried.size(); ++i) {
    const Tried& t = tried[i];
    list.push_back(JsonObject{{"schedule", t.candidate.what},
                              {"options", t.candidate.beside},
                              {"predicted_s", t.candidate.predicted_s},
                              {"measured_s", t.times ? Json(t.times->median_s) : Json()},
                              {"spread_s", t.times ? Json(t.times->spread_s) : Json()},
                              {"failure", t.failure},
                              {"accepted", best > 0 && i == best}});
  }
  Json plan = tried[best].candidate.plan;
  plan["tuned"] = std::move(list);
  return plan;
}

/// What `train` records for a candidate: the command's options with those that the candidate changes.
std::vector<TrainConfig::Recorded> recorded(const Options& options, const TuneCandidate& of) {
  Options changed = options;
  changed.devices = of.config.devices;
  changed.threads = of.config.threads;
  changed.recompute = of.config.recompute;
  changed.packing = of.config.packing;
  changed.epochs = of.config.epochs;
  return recorded_options(changed);
}

}  // namespace

ExitCode run_tune(const Options& options) {
  if (options.data.empty()) throw usage_error("--tune: give --data: real steps are run");
  if (options.steps && *options.steps < kSteps) {
    throw usage_error("--tune: --steps {} are too few: {} steps of each schedule are timed",
                      *options.steps, kSteps);
  }
  const StopSignals signals;
  const Stopwatch watch;
  Console console(console_settings(options));
  const std::vector<TuneCandidate> candidates = tune_candidates(options, kTried, console);
  const TrialFolder folder;
  std::vector<Tried> tried;
  for (const TuneCandidate& candidate : candidates) {
    const auto left = static_cast<double>(candidates.size() - tried.size());
    const double seconds = (options.tune_s - watch.seconds()) / left;
    const std::string number = std::to_string(tried.size());
    console.note("trying " + candidate.what);
    TrialTimes times =
        run_trial(folder, number, {recorded(options, candidate), candidate.plan}, kSteps, seconds);
    if (stop_signal() != 0) return ExitCode::stopped;
    tried.push_back({candidate, measured(times), times.failure});
  }
  const size_t best = best_of(tried);
  if (options.json) {
    print_json(json_of(tried, best));
  } else {
    print(text_of(tried, best));
  }
  return ExitCode::done;
}

}  // namespace hearth
