#include "budget/domain_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/number_list.h"
#include "budget/fetched_layers.h"
#include "plan/rank_costs.h"
#include "runtime/shared_parameters.h"

namespace hearth {

namespace {

std::vector<int32_t> sizes_of(const std::vector<DomainLevel>& levels) {
  std::vector<int32_t> sizes;
  for (const DomainLevel& level : levels) sizes.push_back(level.domain);
  return sizes;
}

std::vector<int32_t> ranks_of(const std::vector<DomainLevel>& levels) {
  std::vector<int32_t> ranks;
  for (const DomainLevel& level : levels) ranks.push_back(level.ranks);
  return ranks;
}

bool knows_times(const PlacedModel& model, const StepWork& work) {
  return model.rates && knows_described_times(model) && !work.batches.empty();
}

JsonArray numbers_json(const std::vector<int32_t>& numbers) {
  JsonArray json;
  for (const int32_t number : numbers) json.emplace_back(int64_t{number});
  return json;
}

/// Blocks of routed experts, and adapters of these.
bool is_of_expert(const ParameterTable& table, BlockId block) {
  const Block& own = table.block(block);
  const Block& base = own.kind == BlockKind::adapter ? table.block(own.base) : own;
  return base.kind == BlockKind::expert;
}

double trained_elements(const ParameterTable& table, BlockId block) {
  double elements = 0;
  for (TensorId id = table.block(block).begin; id < table.block(block).end; ++id) {
    if (table.tensor(id).trainable) elements += static_cast<double>(table.tensor(id).size());
  }
  return elements;
}

}  // namespace

void choose_domains(PlacedModel& model, PlanRequest& request, const StepWork& work, bool fetches) {
  if (request.shards.levels.empty() || !model.plan.train) return;
  const int32_t fewest = ExpertDomains(request.shards.levels).size();
  auto forecast = std::make_shared<DomainForecast>();
  const bool known = knows_times(model, work);
  std::optional<PlacedModel> best;
  double best_s = 0;
  RankShards best_shards;
  for (const ExpertDomains& domains : ExpertDomains::of_levels(ranks_of(request.shards.levels))) {
    if (domains.size() < fewest || domains.sharing() > model.opened->spec.experts) continue;
    PlanRequest again = request;
    again.shards.share(domains);
    if (fetches) again.shards.fetched_from = -1;
    PlacedModel planned = replanned(model, again);
    if (fetches) fetch_what_does_not_fit(planned, again);
    DomainForecast::Candidate candidate{sizes_of(domains.levels()), planned.plan.fits(), {}};
    if (candidate.fits && known) candidate.time_s = predict(planned, work, {}).step.time_s;
    const double time = candidate.time_s.value_or(0);
    if (candidate.fits && (!best || (known && time < best_s * (1 - kDomainGain)))) {
      best = std::move(planned);
      best_s = time;
      best_shards = again.shards;
    }
    forecast->candidates.push_back(std::move(candidate));
  }
  if (best) {
    model = std::move(*best);
    request.shards = best_shards;
  }
  model.domains = std::move(forecast);
}

DomainVolumes domain_volumes(const PlacedModel& model, double tokens) {
  DomainVolumes volumes;
  const ModelSpec& spec = model.opened->spec;
  const RankShards& shards = model.plan.shards;
  RankCosts costs;
  costs.shards = shards;
  costs.owners = owners_of(model.table, shards);
  costs.weight_bytes = model.settings.compute == Compute::bf16 ? 2 : 4;
  const Owners& owners = costs.owners;
  std::map<int32_t, double> fetches;  // in a step, by layer
  for (const Task& task : model.plan.train->schedule.tasks) {
    if (task.kind == TaskKind::fetch) ++fetches[task.layer];
  }
  std::map<int32_t, double> shared;  // bytes of the shared expert that a rank sends, by layer
  for (BlockId block = 0; block < std::ssize(model.table.blocks()); ++block) {
    if (!is_of_expert(model.table, block)) continue;
    const double elements = trained_elements(model.table, block);
    const int32_t owner = owners.owner(block);
    for (const int32_t user : owners.users(block)) {
      if (user == owner) continue;
      const bool fetched = is_fetched(model.table, owners, shards, block, user);
      volumes.experts += fetched ? fetches[model.table.block(block).layer] *
                                       fetched_bytes(costs, model.table, block)
                                 : given_bytes(costs, model.table, block);
    }
    if (is_wired(costs, model.table, block)) {
      double& bytes = shared[model.table.block(block).layer];
      bytes = std::max(bytes, elements * static_cast<double>(sizeof(float) + costs.weight_bytes) *
                                  (shards.ranks - 1) / shards.ranks);
    }
    for (const BlockShare& subtree : owners.subtrees(block)) {
      volumes.gradients += subtree.rank == owner ? 0 : sizeof(float) * elements;
    }
  }
  volumes.experts /= shards.ranks;
  for (const auto& [layer, bytes] : shared) volumes.experts += bytes;
  volumes.gradients /= shards.ranks;
  // A row and what became of it, and the gradients of both; if backward recomputes, the row again.
  const double vectors = model.plan.train && model.plan.train->recompute ? 5 : 4;
  const double travel = static_cast<double>(shards.expert_ranks - 1) / shards.expert_ranks;
  const double rows = tokens / shards.ranks * static_cast<double>(spec.experts_per_token) * travel;
  volumes.tokens =
      rows * vectors * sizeof(float) * static_cast<double>(spec.hidden * spec.moe_layers());
  return volumes;
}

std::string domains_text(const RankShards& shards) {
  return "domains of " + numbers_text(sizes_of(shards.levels)) + " on levels of " +
         numbers_text(ranks_of(shards.levels));
}

std::string wire_line(const PlacedModel& model) {
  const ExpertWire& wire = model.plan.shards.wire;
  if (!wire.compresses()) return {};
  return fmt::format(
      "weights of experts travel compressed ({} 1/{} of the bytes, if their error is at most {}): "
      "another run "
      "than with dense weights, with other results",
      wire.kind == ExpertWire::Kind::residual ? "to" : "to no less than", wire.ratios().front(),
      wire.threshold);
}

std::vector<std::string> domain_lines(const PlacedModel& model) {
  const std::vector<DomainLevel>& levels = model.plan.shards.levels;
  if (levels.empty()) return {};
  const ExpertDomains domains(levels);
  std::vector<std::string> lines{
      fmt::format("expert domains: each expert is at {} of {} ranks ({})", domains.size(),
                  domains.ranks(), domains_text(model.plan.shards))};
  if (model.plan.shards.fetches()) {
    lines.push_back(fmt::format(
        "  in layers from {} on, ranks other than 0 keep only the experts that they own, "
        "and fetch the others before each use",
        model.plan.shards.fetched_from));
  }
  if (!model.domains) return lines;
  for (const DomainForecast::Candidate& each : model.domains->candidates) {
    const std::string step = each.time_s ? fmt::format("a step takes {:.4g} s", *each.time_s)
                             : each.fits ? "fits"
                                         : "does not fit";
    const bool taken = each.domains == sizes_of(levels);
    lines.push_back("  domains of " + numbers_text(each.domains) + ": " + step +
                    (taken ? " (taken)" : ""));
  }
  return lines;
}

void add_domains_json(const PlacedModel& model, double tokens, Json& plan) {
  const std::vector<DomainLevel>& levels = model.plan.shards.levels;
  if (levels.empty()) return;
  plan["levels"] = numbers_json(ranks_of(levels));
  plan["domains"] = numbers_json(sizes_of(levels));
  if (model.plan.shards.fetches()) plan["kept_layers"] = int64_t{model.plan.shards.fetched_from};
  plan["p"] = ExpertDomains(levels).travelling_share();
  const DomainVolumes volumes = domain_volumes(model, tokens);
  if (const ExpertWire& wire = model.plan.shards.wire; wire.compresses()) {
    plan["wire"] = JsonObject{{"ratio", wire.ratios().front()},
                              {"threshold", wire.threshold},
                              {"consistent", wire.consistent}};
  }
  plan["volumes"] = JsonObject{
      {"experts", volumes.experts}, {"tokens", volumes.tokens}, {"gradients", volumes.gradients}};
  if (!model.domains) return;
  JsonArray choice;
  for (const DomainForecast::Candidate& each : model.domains->candidates) {
    choice.emplace_back(JsonObject{{"domains", numbers_json(each.domains)},
                                   {"fits", each.fits},
                                   {"time_s", each.time_s ? Json(*each.time_s) : Json(nullptr)}});
  }
  plan["domain_choice"] = std::move(choice);
}

}  // namespace hearth
