#include "train/tune_candidates.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/error_format.h"
#include "base/setting.h"
#include "base/stop.h"
#include "device/device_list.h"
#include "train/report_plan.h"

namespace hearth {
namespace {

constexpr size_t kMostPlans = 64;

/// Items of a list of devices: of the host, and others.
struct DeviceParts {
  std::string devices, host;  // joined by commas; empty: none
};

DeviceParts parts_of(const std::string& list) {
  DeviceParts parts;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string item = list.substr(begin, end - begin);
    begin = end + 1;
    std::string& side = item.starts_with("host") ? parts.host : parts.devices;
    side += (side.empty() ? "" : ",") + item;
  }
  return parts;
}

/// The list itself first; then, of a run with devices, the other home of the experts.
std::vector<std::string> device_lists(const std::string& given) {
  const DeviceParts parts = parts_of(given);
  std::vector<std::string> lists{given};
  if (given == "auto" || parts.devices.empty()) return lists;
  lists.push_back(parts.host.empty() ? parts.devices + ",host" : parts.devices);
  return lists;
}

/// The default's workers, then half of them. A list of devices says which cores compute.
std::vector<int> worker_counts(const TrainConfig& config, int now) {
  if (config.threads > 0 || config.devices != "auto" || now < 2) return {config.threads};
  return {config.threads, now / 2};
}

std::vector<Recompute> recomputes(const TrainConfig& config) {
  if (config.recompute != Recompute::automatic) return {config.recompute};
  return {Recompute::none, Recompute::blocks};
}

/// The planner's choice, then powers of two.
std::vector<std::optional<int64_t>> groups(const TrainConfig& config) {
  std::vector<std::optional<int64_t>> sizes{std::nullopt};
  for (int64_t size = 1; size < config.grad_accum && size <= 64; size *= 2)
    sizes.emplace_back(size);
  return sizes;
}

const Json& at(const Json& plan, const char* key) {
  static const Json none;
  const Json* value = plan.find(key);
  return value ? *value : none;
}

/// What makes two plans one schedule.
std::string schedule_key(const Json& plan) {
  std::string key;
  for (const char* part :
       {"devices", "workers", "group", "recompute", "layer_inputs", "stages", "tasks"}) {
    key += at(plan, part).dump() + ";";
  }
  return key;
}

/// "groups of 2, 4 workers, on virtual:0 virtual:1, layers 0 to 3 | 4 to 7".
std::string described(const Json& plan) {
  std::string text = "groups of " + at(plan, "group").dump();
  if (at(plan, "recompute").dump() == "\"blocks\"") text += ", blocks recomputed";
  if (at(plan, "layer_inputs").dump() == "\"host\"") text += ", their inputs wait on the host";
  text += ", " + at(plan, "workers").dump() + " workers";
  std::string devices;
  for (const Json& name : at(plan, "devices").as_array()) {
    devices += (devices.empty() ? "" : " ") + name.as_string();
  }
  text += ", on " + devices;
  const JsonArray& stages = at(plan, "stages").as_array();
  for (size_t s = 0; s < stages.size() && stages.size() > 1; ++s) {
    const JsonArray& layers = at(stages[s], "layers").as_array();
    text += (s == 0 ? ", layers " : " | ") + layers[0].dump() + " to " + layers[1].dump();
  }
  return text;
}

class Search {
 public:
  Search(const TrainConfig& config, Reporter& reporter) : config_(config), reporter_(reporter) {}

  std::vector<TuneCandidate> run(size_t most) {
    TuneCandidate standard = planned(config_);
    if (standard.predicted_s <= 0) {
      throw usage_error("the plan does not fit, or its time is unknown; nothing can be tuned");
    }
    bits_ = at(standard.plan, "bits").dump();
    known_.insert(schedule_key(standard.plan));
    const int workers = static_cast<int>(at(standard.plan, "workers").as_int());
    for (const std::string& devices : device_lists(config_.devices)) {
      for (const int threads : worker_counts(config_, workers)) {
        for (const Recompute recompute : recomputes(config_)) {
          for (const auto& group : groups(config_)) {
            TrainConfig other = config_;
            other.devices = devices;
            other.threads = threads;
            other.recompute = recompute;
            other.group = group;
            consider(other);
          }
        }
      }
    }
    consider_cuts(standard.plan);
    std::stable_sort(found_.begin(), found_.end(),
                     [](const TuneCandidate& a, const TuneCandidate& b) {
                       return a.predicted_s < b.predicted_s;
                     });
    if (found_.size() > most) found_.resize(most);
    found_.insert(found_.begin(), std::move(standard));
    return std::move(found_);
  }

 private:
  TuneCandidate planned(const TrainConfig& config) {
    leave_if_stopped("schedules were compared");
    TuneCandidate candidate;
    candidate.config = config;
    PlanReport report = report_plan(config, reporter_);
    candidate.config.packing = report.packing;
    candidate.config.epochs = report.epochs;
    candidate.plan = std::move(report.json);
    const Json& seconds = at(candidate.plan, "time_s");
    const bool fits = at(candidate.plan, "fits").dump() == "true";
    if (fits && seconds.is_number()) candidate.predicted_s = seconds.as_double();
    candidate.what = described(candidate.plan);
    if (config.devices != config_.devices) {
      candidate.beside = spelled(Setting::devices, config.devices);
    }
    return candidate;
  }

  /// The default's cut with one of its ends a layer earlier or later.
  void consider_cuts(const Json& plan) {
    std::vector<int32_t> ends;
    for (const Json& stage : at(plan, "stages").as_array()) {
      ends.push_back(static_cast<int32_t>(at(stage, "layers").as_array()[1].as_int()));
    }
    if (ends.size() < 2) return;
    ends.pop_back();
    for (size_t i = 0; i < ends.size(); ++i) {
      for (const int32_t step : {-1, 1}) {
        TrainConfig other = config_;
        other.stage_ends = ends;
        other.stage_ends[i] += step;
        consider(other);
      }
    }
  }

  /// Keeps the schedule if it is new, fits and gives the same bits.
  void consider(const TrainConfig& config) {
    if (++plans_ > kMostPlans) return;
    try {
      TuneCandidate candidate = planned(config);
      if (candidate.predicted_s <= 0 || at(candidate.plan, "bits").dump() != bits_) return;
      // Another home of the experts keeps the bits only where all places compute alike.
      if (!candidate.beside.empty() && bits_ != "\"same\"") return;
      if (!known_.insert(schedule_key(candidate.plan)).second) return;
      found_.push_back(std::move(candidate));
    } catch (const Error& error) {
      if (error.code() != ExitCode::usage) throw;  // options that a run refuses
    }
  }

  const TrainConfig& config_;
  Reporter& reporter_;
  std::string bits_;
  std::set<std::string> known_;
  std::vector<TuneCandidate> found_;
  size_t plans_ = 0;
};

}  // namespace

std::vector<TuneCandidate> tune_candidates(const TrainConfig& config, size_t most,
                                           Reporter& reporter) {
  return Search(config, reporter).run(most);
}

}  // namespace hearth
