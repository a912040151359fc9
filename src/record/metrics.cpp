#include "record/metrics.h"

#include <cmath>

namespace hearth {
namespace {

template <class T>
Json object_of(const std::map<std::string, T>& values) {
  JsonObject object;
  for (const auto& [name, value] : values) object.emplace_back(name, Json(value));
  return Json(std::move(object));
}

/// Of one device a number, of several an object.
Json bytes_of(const std::map<std::string, uint64_t>& devices) {
  if (devices.size() > 1) return object_of(devices);
  return Json(devices.empty() ? uint64_t{0} : devices.begin()->second);
}

/// By role: the share of their steps in which ranks compute.
Json utilisation_json(const std::vector<RankMetrics>& ranks) {
  std::map<std::string, std::pair<double, double>> seconds;  // computing, in all
  for (const RankMetrics& of : ranks) {
    auto& [computes, all] = seconds[of.role];
    computes += of.time_s - of.wait_s;
    all += of.time_s;
  }
  JsonObject roles;
  for (const auto& [role, of] : seconds) {
    roles.emplace_back(role, of.second > 0 ? of.first / of.second : 0.0);
  }
  return roles;
}

}  // namespace

Json counts_by_expert(const std::vector<std::vector<double>>& counts) {
  JsonArray layers;
  for (const std::vector<double>& layer : counts) {
    if (layer.empty()) continue;
    JsonArray experts;
    for (const double count : layer) experts.emplace_back(int64_t{std::llround(count)});
    layers.emplace_back(std::move(experts));
  }
  return layers;
}

static Json share_json(const std::optional<double>& share) { return share ? Json(*share) : Json(); }

Json to_json(const StepMetrics& metrics) {
  JsonArray expert_load;
  for (const double load : metrics.expert_load) expert_load.emplace_back(load);
  JsonObject object{
      {"step", metrics.step},
      {"time", metrics.time},
      {"epoch", metrics.epoch},
      {"loss", metrics.loss},
      {"aux_loss", metrics.aux_loss},
      {"grad_norm", metrics.grad_norm},
      {"lr", metrics.lr},
      {"tokens", metrics.tokens},
      {"trained_tokens", metrics.trained_tokens},
      {"time_s", metrics.time_s},
      {"tokens_per_s", metrics.tokens_per_s},
      {"bound_pct", metrics.bound_pct},
      {"peak_rss_bytes", metrics.peak_rss_bytes},
      {"peak_device_bytes", bytes_of(metrics.peak_device_bytes)},
      {"bytes", object_of(metrics.bytes)},
      {"busy", object_of(metrics.busy)},
      {"limit", metrics.limit},
      {"stall_s", object_of(metrics.stall_s)},
      {"late_load_s", metrics.late_load_s},
      {"cpu_s", object_of(metrics.cpu_s)},
      {"expert_load", Json(std::move(expert_load))},
      {"expert_hit_rate", metrics.expert_hit_rate ? Json(*metrics.expert_hit_rate) : Json()},
  };
  if (metrics.prediction) {
    object.emplace_back("prediction",
                        JsonObject{{"token_hit", share_json(metrics.prediction->token_hit)},
                                   {"least_quarter", share_json(metrics.prediction->least_quarter)},
                                   {"byte_hit", share_json(metrics.prediction->byte_hit)}});
  }
  if (!metrics.tokens_by_expert.empty()) {
    object.emplace_back("tokens_by_expert", counts_by_expert(metrics.tokens_by_expert));
  }
  if (!metrics.residency.empty()) {
    JsonArray layers;
    for (const double share : metrics.residency) {
      layers.emplace_back(std::round(1000 * share) / 1000);  // for people: no more digits
    }
    object.emplace_back("residency", Json(std::move(layers)));
  }
  if (metrics.paced_late) {
    object.emplace_back("paced_late", *metrics.paced_late);
    object.emplace_back("paced_late_s", object_of(metrics.paced_late_s));
  }
  if (!metrics.ranks.empty()) {
    JsonArray ranks;
    for (const RankMetrics& of : metrics.ranks) {
      JsonObject rank{{"rank", int64_t{of.rank}},
                      {"host", of.host},
                      {"time_s", of.time_s},
                      {"wait_s", of.wait_s},
                      {"tokens", of.tokens}};
      if (!of.role.empty()) rank.emplace_back("role", of.role);
      ranks.emplace_back(std::move(rank));
    }
    object.emplace_back("ranks", Json(std::move(ranks)));
    if (!metrics.ranks.front().role.empty()) {
      object.emplace_back("utilisation", utilisation_json(metrics.ranks));
    }
  }
  if (!metrics.wire.empty()) {
    JsonArray ratios, errors;
    for (const WiredStep& of : metrics.wire) {
      ratios.emplace_back(of.ratio);
      errors.emplace_back(of.error);
    }
    object.emplace_back("wire",
                        JsonObject{{"ratio", std::move(ratios)}, {"error", std::move(errors)}});
  }
  if (metrics.eval_loss) object.emplace_back("eval_loss", *metrics.eval_loss);
  if (metrics.z_loss) object.emplace_back("z_loss", *metrics.z_loss);
  if (metrics.state_digest) object.emplace_back("state_digest", *metrics.state_digest);
  return Json(std::move(object));
}

}  // namespace hearth
