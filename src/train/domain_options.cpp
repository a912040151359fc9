#include "train/domain_options.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/error_format.h"
#include "base/number_list.h"
#include "base/setting.h"

namespace hearth {

namespace {

int64_t product(const std::vector<int32_t>& numbers) {
  int64_t product = 1;
  for (const int32_t number : numbers) product = std::min<int64_t>(product * number, 1 << 20);
  return product;
}

/// How many neighbours are on one host, if all hosts have equally many; else 1 level of all ranks.
std::vector<int32_t> levels_of_hosts(const TrainConfig& config) {
  const auto ranks = static_cast<int32_t>(config.ranks());
  const std::vector<std::string>& hosts = config.rank_hosts;
  if (hosts.empty()) return {1, ranks};
  int32_t on_first = 1;
  while (on_first < ranks && hosts[static_cast<size_t>(on_first)] == hosts.front()) ++on_first;
  bool alike = ranks % on_first == 0;
  for (int32_t rank = 0; alike && rank < ranks; ++rank) {
    const bool begins = rank % on_first == 0;
    const bool as_before =
        rank > 0 && hosts[static_cast<size_t>(rank)] == hosts[static_cast<size_t>(rank - 1)];
    alike = begins != as_before;
  }
  return alike ? std::vector{ranks / on_first, on_first} : std::vector{1, ranks};
}

/// The levels that the numbers of --domains are for. Of hosts, a level of one unit may be left out.
std::vector<int32_t> levels_of(const TrainConfig& config) {
  if (!config.levels.empty()) return config.levels;
  std::vector<int32_t> levels = levels_of_hosts(config);
  if (config.domains && config.domains->size() == levels.size()) return levels;
  std::erase(levels, 1);
  if (levels.empty()) levels.push_back(1);
  return levels;
}

void require_numbers(const TrainConfig& config) {
  const std::string of_ranks = std::to_string(config.ranks()) + " ranks";
  if (!config.levels.empty() && product(config.levels) != config.ranks()) {
    throw usage_error("{}: their product is {}, but there are {}",
                      spelled(Setting::levels, numbers_text(config.levels)), product(config.levels),
                      of_ranks);
  }
  if (!config.domains) return;
  const std::vector<int32_t> levels = levels_of(config);
  const std::string given = spelled(Setting::domains, numbers_text(*config.domains));
  if (config.domains->size() != levels.size()) {
    throw usage_error("{}: expected a number for each level of {}, which are {}", given, of_ranks,
                      spelled(Setting::levels, numbers_text(levels)));
  }
  for (size_t l = 0; l < levels.size(); ++l) {
    if (levels[l] % (*config.domains)[l] == 0) continue;
    std::string divisors;
    for (int32_t d = 1; d <= levels[l]; ++d) {
      if (levels[l] % d == 0)
        divisors += (divisors.empty() ? "" : d == levels[l] ? " or " : ", ") + std::to_string(d);
    }
    throw usage_error("{}: {} does not divide its level of {}; {} would do", given,
                      (*config.domains)[l], levels[l], divisors);
  }
}

/// Weights that travel compressed are those of trained experts, between ranks.
void require_wire(const TrainConfig& config) {
  if (!config.wire.compresses()) return;
  if (config.method == Method::lora) {
    throw usage_error(
        "{}: there is nothing to compress with {}: experts are frozen, so they do not travel, and "
        "adapters are small; leave it out",
        spelled(Setting::wire), spelled(Setting::method, "lora"));
  }
  if (config.ranks() == 1) {
    throw usage_error("{}: there is one rank, so no weights travel; leave it out, or use {}",
                      spelled(Setting::wire), spelled(Setting::thread_ranks));
  }
}

}  // namespace

void require_domains(const TrainConfig& config, const ModelSpec& spec) {
  if (config.parallel != "hybrid-ep") {
    for (const Setting setting : {Setting::levels, Setting::domains}) {
      const bool given =
          setting == Setting::levels ? !config.levels.empty() : config.domains.has_value();
      if (given) {
        throw usage_error("{}: expert domains are those of {}", spelled(setting),
                          spelled(Setting::parallel, "hybrid-ep"));
      }
    }
    if (config.kept_layers) {
      throw usage_error("{}: experts are fetched only with {}", spelled(Setting::kept_layers),
                        spelled(Setting::parallel, "hybrid-ep"));
    }
    if (config.wire.compresses()) {
      throw usage_error("{}: weights of experts travel only with {}", spelled(Setting::wire),
                        spelled(Setting::parallel, "hybrid-ep"));
    }
    return;
  }
  require_numbers(config);
  require_wire(config);
  if (config.kept_layers && *config.kept_layers < spec.layers && config.wire.compresses()) {
    throw usage_error("{}: ranks keep weights that travel compressed in all layers; use {} or {}",
                      spelled(Setting::kept_layers, std::to_string(*config.kept_layers)),
                      spelled(Setting::kept_layers, "auto"), spelled(Setting::wire, "dense"));
  }
  if (spec.experts == 0 && config.ranks() > 1) {
    throw usage_error("{}: the model has no experts to share; use {}",
                      spelled(Setting::parallel, "hybrid-ep"), spelled(Setting::parallel, "dp"));
  }
  if (const int32_t sharing = domains_of(config, spec).sharing(); sharing > spec.experts) {
    throw usage_error(
        "{}: a layer has {} experts, fewer than the {} ranks that share them; larger domains would "
        "do, or {}",
        spelled(Setting::domains, numbers_text(*config.domains)), spec.experts, sharing,
        spelled(Setting::domains, "auto"));
  }
}

int32_t fetched_from(const TrainConfig& config, const ModelSpec& spec) {
  if (!config.kept_layers || *config.kept_layers >= spec.layers) return -1;
  return static_cast<int32_t>(*config.kept_layers);
}

ExpertDomains domains_of(const TrainConfig& config, const ModelSpec& spec) {
  const std::vector<int32_t> ranks = levels_of(config);
  if (config.domains) {
    std::vector<DomainLevel> levels;
    for (size_t l = 0; l < ranks.size(); ++l) levels.push_back({ranks[l], (*config.domains)[l]});
    return ExpertDomains(std::move(levels));
  }
  const std::vector<ExpertDomains> all = ExpertDomains::of_levels(ranks);
  return *std::ranges::find_if(all, [&](const ExpertDomains& each) {
    return each.sharing() <= std::max<int64_t>(1, spec.experts);
  });
}

}  // namespace hearth
