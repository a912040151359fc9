#include "train/rank_options.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/error_format.h"
#include "base/number_list.h"
#include "base/setting.h"
#include "plan/zebra/expert_shift.h"
#include "topology/topology.h"

namespace hearth {

namespace {

/// "1, 2 and 3".
std::string listed(const std::vector<int64_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const bool last = i + 1 == numbers.size();
    text += (i == 0 ? "" : last ? " and " : ", ") + std::to_string(numbers[i]);
  }
  return text;
}

/// "1, 2, 4 and 8".
std::string divisors_of(int64_t n) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= n; ++d) {
    if (n % d == 0) divisors.push_back(d);
  }
  return listed(divisors);
}

/// The numbers of attention ranks that go with the ranks and leave at most so many for the experts. They
/// divide the logical shards, or what may become these.
std::string attention_ranks_of(const TrainConfig& config, int64_t most_left) {
  const int64_t ranks = config.ranks();
  const int64_t shards = config.logical_shards.value_or(config.grad_accum);
  std::vector<int64_t> fit;
  for (int64_t m = std::max<int64_t>(1, ranks - most_left); m < ranks; ++m) {
    const int64_t n = ranks - m;
    if ((m % n == 0 || n % m == 0) && shards % m == 0) fit.push_back(m);
  }
  return listed(fit);
}

/// The numbers of expert ranks of a group, where groups divide the ranks of both roles.
std::string group_sizes_of(int64_t attention, int64_t experts) {
  std::vector<int64_t> fit;
  for (int64_t size = 1; size <= experts; ++size) {
    if (experts % size == 0 && attention % (experts / size) == 0) fit.push_back(size);
  }
  return listed(fit);
}

}  // namespace

void require_ranks(const TrainConfig& config, const RunDevices& devices) {
  const int64_t ranks = config.ranks(), shards = config.shards();
  const std::string threads = spelled(Setting::thread_ranks, std::to_string(config.thread_ranks));
  const bool processes = config.process_ranks > 1;
  if (processes && config.thread_ranks > 1) {
    throw usage_error(
        "{}: the launcher started {} processes; either these are the ranks, or threads of one",
        threads, config.process_ranks);
  }
  if (processes && config.rank_links.bytes_per_s > 0) {
    throw usage_error("{}: throttles thread ranks; {} processes have the links of their hosts",
                      spelled(Setting::rank_links), config.process_ranks);
  }
  const std::string given = processes ? std::to_string(ranks) + " processes" : threads;
  const bool is_zebra = config.parallel == "zebra";
  const bool is_for_ranks = config.parallel == "dp" || config.parallel == "ep" ||
                            config.parallel == "hybrid-ep" || is_zebra;
  if (ranks > 1 && !is_for_ranks) {
    throw usage_error("{}: several ranks need {}, ep, hybrid-ep or zebra", given,
                      spelled(Setting::parallel, "dp"));
  }
  const int64_t attention = config.attention_ranks;
  const std::string of_attention = spelled(Setting::attention_ranks, std::to_string(attention));
  if (is_zebra != (attention > 0)) {
    throw usage_error("{} and {} go together", spelled(Setting::parallel, "zebra"),
                      spelled(Setting::attention_ranks));
  }
  const int64_t experts = ranks - attention;
  if (is_zebra && ranks == 1) {
    throw usage_error("{}: needs several ranks: {}, or a launcher",
                      spelled(Setting::parallel, "zebra"), spelled(Setting::thread_ranks, "N"));
  }
  if (is_zebra && (experts < 1 || (attention % experts != 0 && experts % attention != 0))) {
    throw usage_error("{}: of {} ranks, {}; {} would do", of_attention, ranks,
                      experts < 1 ? "some must be left for the experts"
                                  : "their number must divide that of the others, or the reverse",
                      attention_ranks_of(config, ranks));
  }
  const std::string sharing = spelled(Setting::expert_ranks, std::to_string(config.expert_ranks));
  if (config.expert_ranks > 0 && config.parallel != "ep" && !is_zebra) {
    throw usage_error("{}: ranks share experts with {} or zebra", sharing,
                      spelled(Setting::parallel, "ep"));
  }
  if (is_zebra && config.expert_ranks > 0 &&
      (experts % config.expert_ranks != 0 || attention % (experts / config.expert_ranks) != 0)) {
    throw usage_error(
        "{}: {} expert ranks and {} attention ranks make no groups with so many expert ranks each; "
        "{} would do",
        sharing, experts, attention, group_sizes_of(attention, experts));
  }
  if (ranks % config.shared_experts() != 0) {
    throw usage_error("{}: does not divide the ranks, {}; {} would do", sharing, ranks,
                      divisors_of(ranks));
  }
  if (config.grad_accum % shards != 0) {
    const std::string what = config.logical_shards
                                 ? spelled(Setting::logical_shards, std::to_string(shards))
                             : is_zebra ? of_attention
                                        : given;
    throw usage_error("{}: does not divide the micro-batches of a step, {}; {} would do", what,
                      spelled(Setting::grad_accum, std::to_string(config.grad_accum)),
                      is_zebra && !config.logical_shards ? attention_ranks_of(config, ranks)
                                                         : divisors_of(config.grad_accum));
  }
  if (shards % config.computing_ranks() != 0) {
    throw usage_error("{}: does not divide the logical shards, {}; {} would do",
                      is_zebra ? of_attention : given,
                      spelled(Setting::logical_shards, std::to_string(shards)),
                      is_zebra ? attention_ranks_of(config, ranks) : divisors_of(shards));
  }
  const bool experts_apart = devices.of_model.hot && config.parallel != "dp";
  if (ranks > 1 && experts_apart) {
    throw usage_error(
        "{}: ranks that share experts have them at one place in this version; leave host out of "
        "{}, "
        "or the device",
        given, spelled(Setting::devices));
  }
  if (ranks > 1 && devices.hosts > 1) {
    throw usage_error(
        "{}: several ranks with several NUMA nodes each are not in this version; use {}", given,
        spelled(Setting::devices, "host:0"));
  }
  const bool travels = devices.of_model.travel != Travel::never;
  if (ranks > 1 && travels) {
    throw usage_error("{}: several ranks with weights that travel are not in this version", given);
  }
  if (shards > 1 && (devices.planner->name() == "pipeline" || travels)) {
    throw usage_error(
        "{}: several logical shards with pipelines, or with weights that travel, are not in this "
        "version",
        spelled(Setting::logical_shards, std::to_string(shards)));
  }
}

void require_expert_ranks(const TrainConfig& config, const ModelSpec& spec) {
  if (config.parallel == "hybrid-ep") return;  // require_domains
  const int64_t shared = config.shared_experts() - config.attention_ranks / config.zebra_groups();
  if (config.attention_ranks > 0 && shared > std::max<int64_t>(0, spec.experts)) {
    const std::string fit =
        config.zebra_groups() == 1 ? attention_ranks_of(config, spec.experts) : "";
    throw usage_error(
        "{}: a layer has {} experts, fewer than the {} ranks that are left for them; {}",
        spelled(Setting::attention_ranks, std::to_string(config.attention_ranks)), spec.experts,
        shared, fit.empty() ? "use fewer ranks" : fit + " would do");
  }
  if (shared <= std::max<int64_t>(1, spec.experts)) return;
  if (spec.experts == 0) {
    throw usage_error("{}: the model has no experts to share; use {}",
                      spelled(Setting::parallel, "ep"), spelled(Setting::parallel, "dp"));
  }
  int64_t most = spec.experts;
  while (config.ranks() % most != 0) --most;
  throw usage_error(
      "{}: a layer has {} experts, fewer than the {} ranks that share them; {} would do",
      spelled(Setting::expert_ranks), spec.experts, shared,
      spelled(Setting::expert_ranks, std::to_string(most)));
}

TrainConfig with_devices_of_rank(TrainConfig config, int32_t rank) {
  if (config.rank_devices.empty()) return config;
  if (const int32_t last = config.rank_devices.back().last; last >= config.ranks()) {
    throw usage_error("{}: names rank {}, but the last of {} is {}", spelled(Setting::rank_devices),
                      last,
                      config.ranks() == 1 ? "1 rank" : std::to_string(config.ranks()) + " ranks",
                      config.ranks() - 1);
  }
  const std::vector<RankDevices> named = config.rank_devices;
  if (!devices_of(named, rank, "").empty()) config.named_rank = rank;
  config.rank_devices.clear();
  for (int32_t each = 0; each < config.ranks(); ++each) {
    config.rank_devices.push_back({each, each, devices_of(named, each, config.devices)});
  }
  config.devices = devices_of(config.rank_devices, rank, config.devices);
  return config;
}

void require_expert_shift(const TrainConfig& config, const ModelSpec& spec) {
  if (!config.expert_shift || config.expert_shift->empty()) return;
  const std::vector<int32_t>& shift = *config.expert_shift;
  const std::string given = spelled(Setting::expert_shift, numbers_text(shift));
  if (config.attention_ranks == 0) {
    throw usage_error("{}: experts move to attention ranks of {}", given,
                      spelled(Setting::parallel, "zebra"));
  }
  const int64_t groups = config.zebra_groups();
  require_shift(shift, static_cast<int32_t>(config.attention_ranks / groups),
                static_cast<int32_t>((config.ranks() - config.attention_ranks) / groups),
                spec.experts, spec.moe_layers(), given);
}

std::vector<int32_t> expert_shift_of(const TrainConfig& config, const ModelSpec& spec) {
  std::vector<int32_t> shift;
  if (!config.expert_shift || config.expert_shift->empty()) return shift;
  size_t next = 0;
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    shift.push_back(spec.has_experts(layer) ? (*config.expert_shift)[next++] : 0);
  }
  return shift;
}

TrainConfig with_shared_cores(TrainConfig config) {
  if (config.thread_ranks > 1) config.cpu_share = {config.thread_ranks, 0, true};
  const int64_t here = config.cpu_share.ranks;
  if (here == 1 || config.threads > 0) return config;
  const auto cores = static_cast<int>(detect_topology().cores.size());
  config.threads = std::max(1, cores / static_cast<int>(here));
  return config;
}

}  // namespace hearth
