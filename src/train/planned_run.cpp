#include "train/planned_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error_format.h"
#include "base/setting.h"
#include "base/system.h"
#include "budget/device_loads.h"
#include "budget/domain_choice.h"
#include "budget/fetched_layers.h"
#include "budget/needed_memory.h"
#include "budget/peak_line.h"
#include "budget/placement_report.h"
#include "budget/plan_file.h"
#include "budget/plan_fit.h"
#include "budget/policy_choice.h"
#include "budget/rank_memory.h"
#include "budget/recompute_choice.h"
#include "budget/zebra_choice.h"
#include "runtime/shared_parameters.h"
#include "setup/row_requests.h"
#include "train/domain_options.h"
#include "train/known_policy.h"
#include "train/known_tables.h"
#include "train/other_ranks.h"
#include "train/rank_options.h"
#include "train/recorded_decisions.h"

namespace hearth {

namespace {

std::optional<TrainingData> data_of(const TrainConfig& config, const OpenedModel& opened,
                                    Reporter& reporter) {
  if (config.data.empty()) return std::nullopt;
  return std::optional<TrainingData>(std::in_place, config, opened, reporter);
}

constexpr const char* kCounting =
    "counting how often each expert is used, by a first pass over a sample of the data";

TrainedModel trained_by(const TrainConfig& config, const std::shared_ptr<const OpenedModel>& opened,
                        const std::optional<ChosenExperts>& experts,
                        const std::optional<SampleCounts>& sample) {
  TrainedModel model =
      experts ? trained_model(opened, config, experts->experts) : trained_model(opened, config);
  if (sample) model.popularity = sample->counts;
  return model;
}

/// Whether devices hold some of the experts, so that a sample has to show which are used most. A run
/// that does not fit is refused at once, not behind a pass over the model.
bool needs_sample(const TrainedModel& model, const PlanRequest& request,
                  const std::optional<ChosenPolicy>& policy) {
  if (!model.opened->devices.of_model.hot) return false;
  const PlacedModel placed = place_model(model, request, Rates::none, {}, policy);
  return placed.plan.fits() && chooses_held_experts(placed);
}

/// Options that cannot go together are refused before data are read.
std::shared_ptr<const OpenedModel> checked(std::shared_ptr<const OpenedModel> opened,
                                           const TrainConfig& config) {
  require_ranks(config, opened->devices);
  require_expert_ranks(config, opened->spec);
  require_expert_shift(config, opened->spec);
  require_domains(config, opened->spec);
  if (config.divide_experts && config.ranks() > 1) {
    throw usage_error("{}: works on one rank, not on {}", spelled(Setting::divide_experts, "on"),
                      config.ranks());
  }
  trained_model(opened, config);
  return opened;
}

/// What `auto` becomes: as the plan file or the saved state has it, so that a resume repeats it, unless
/// it is allowed to change something. None: the fastest.
std::optional<ChosenPolicy> repeated_policy(const TrainConfig& config, const OpenedModel& opened,
                                            const PlanRequest& request) {
  const auto named = [&](const std::string& name, const char* why) {
    return policy_named(name, opened, request, why);
  };
  if (!config.replay_decisions.empty()) return named(kMakespan, "its decisions are replayed");
  if (auto planned = named(config.planned_policy, "the plan file has it")) return planned;
  if (config.allow_change.empty()) {
    if (auto saved = named(saved_policy(config), "the saved state has it")) return saved;
  }
  return std::nullopt;
}

/// A run would end at that step.
void warn_of_small_budgets(const PlacedModel& model, Reporter& reporter) {
  if (!model.plan.fits() || !model.plan.train) return;
  for (size_t at = 0; at < model.opened->devices.places.size(); ++at) {
    const ComputePlace& place = model.opened->devices.places[at];
    if (!place.shrink) continue;
    const uint64_t least = least_budget(model, static_cast<Place>(at));
    if (place.shrink->bytes >= least) continue;
    reporter.warn(
        fmt::format("{}: its budget will fall to {} bytes at step {}, but the run needs {} bytes "
                    "there: it will "
                    "end then",
                    place.budget.name, place.shrink->bytes, place.shrink->step, least));
  }
}

/// Of --replay-decisions.
void require_decisions(const PlacedModel& model) {
  if (model.of_model.decides()) return;
  throw usage_error(
      "decisions are to be replayed, but this run makes none; {} must name a device, and the host "
      "beside it",
      spelled(Setting::devices));
}

/// It knows tokens of a run that was recorded, and no others.
void require_journal_of_oracle(const TrainConfig& config) {
  if (config.foresight.predictor != ForetoldBy::oracle || !config.replay_decisions.empty()) return;
  throw usage_error("{} foretells the tokens of a run that was recorded; {} must name its journal",
                    spelled(Setting::predictor, "oracle"), spelled(Setting::replay_decisions));
}

void warn_of_faster_expert_ranks(const PlacedModel& model, Reporter& reporter) {
  if (!model.zebra || !model.zebra->forecast) return;
  const std::string& text = model.zebra->forecast->faster_expert_rank;
  if (!text.empty()) reporter.warn(text);
}

/// An option that does nothing is said.
void warn_of_idle_sums(const PlacedModel& model, Reporter& reporter) {
  if (!model.settings.partial_sums || !model.plan.train) return;
  const bool used = std::ranges::any_of(model.plan.train->schedule.buffers, [](const Buffer& b) {
    return b.port.value == Value::expert_sum;
  });
  if (used) return;
  reporter.warn(
      "partial sums change nothing here: all experts are beside the dense parts of their layer");
}

void warn_of_idle_links(const TrainConfig& config, Reporter& reporter) {
  if (config.rank_links.bytes_per_s <= 0 || config.ranks() > 1) return;
  reporter.warn(spelled(Setting::rank_links) + " changes nothing here: there is one rank");
}

void warn_of_idle_wire(const PlacedModel& model, Reporter& reporter) {
  const RankShards& shards = model.plan.shards;
  if (!shards.wire.compresses() || !model.plan.train) return;
  if (WireExperts(shards, model.table, owners_of(model.table, shards)).any()) return;
  reporter.warn(spelled(Setting::wire) +
                " changes nothing here: no trained expert is at several ranks");
}

void warn_of_idle_predictor(const TrainConfig& config, const PlacedModel& model,
                            Reporter& reporter) {
  if (config.foresight.predictor == ForetoldBy::history || model.of_model.decides()) return;
  reporter.warn("the predictor changes nothing here: tokens do not divide the experts of this run");
}

void warn_of_idle_division(const TrainConfig& config, const PlacedModel& model,
                           Reporter& reporter) {
  if (!config.divide_experts || model.of_model.divides_experts()) return;
  reporter.warn(spelled(Setting::divide_experts) +
                " changes nothing here: tokens do not divide the experts of this run by makespan");
}

}  // namespace

PlannedRun::PlannedRun(const TrainConfig& given, std::shared_ptr<const OpenedModel> opened_model,
                       Reporter& reporter, Planning planning)
    : opened(checked(std::move(opened_model), given)),
      data(data_of(given, *opened, reporter)),
      config(data ? with_choices(given, data->choices) : given),
      request(training_request(config, rows())) {
  require_journal_of_oracle(config);
  request.own_process = planning == Planning::run;
  request.shards.expert_shift = expert_shift_of(config, opened->spec);
  if (config.parallel == "hybrid-ep") {
    request.shards.share(domains_of(config, opened->spec));
    request.shards.fetched_from = fetched_from(config, opened->spec);
  }
  if (planning == Planning::run && config.experts_top > 0) {
    experts = saved_experts(config, opened->spec);
    if (!experts) {
      reporter.note("choosing experts by a first pass over a sample of the data");
      sample = count_expert_tokens(opened, config, data->rows.training(), data->bytes());
      experts = choose_experts(sample->counts, config.experts_top, sample->tokens);
    }
  }
  if (!sample) sample = saved_sample(config, opened->spec);
  RunTables tables = known_tables(config, *opened);
  const std::optional<ChosenPolicy> policy = chosen_policy(planning, tables, reporter);
  // No table is kept: the process is measured when the model has its place.
  if (planning == Planning::run && !sample &&
      needs_sample(trained_by(config, opened, experts, sample), request, policy)) {
    reporter.note(kCounting);
    sample = count_expert_tokens(opened, config, data->rows.training(), data->bytes());
  }
  const StepWork work = sampled_work();
  model = place_fastest(trained_by(config, opened, experts, sample), request, work,
                        std::move(tables), policy);
  RankMachines machines(config, opened);
  choose_zebra(model, request, work, config, other_ranks(machines, planning));
  if (!config.kept_layers) fetch_what_does_not_fit(model, request);
  if (!config.domains) choose_domains(model, request, work, !config.kept_layers);
  plan_others(machines, planning);
  steps = steps_of_run(config, rows());
  times = predict(model, work, steps);
  warn_of_positions(config, opened->spec, data ? data->longest() : 0);
  require_planned(config, plan_json(model, times, model.plan.places));
  warn_of_small_budgets(model, reporter);
  warn_of_faster_expert_ranks(model, reporter);
  warn_of_idle_sums(model, reporter);
  warn_of_idle_links(config, reporter);
  warn_of_idle_wire(model, reporter);
  warn_of_idle_predictor(config, model, reporter);
  warn_of_idle_division(config, model, reporter);
  if (!config.replay_decisions.empty()) {
    require_decisions(model);
    repeated = read_recorded_decisions(config.replay_decisions, model);
  }
  if (planning == Planning::run) count_planning();
}

/// Plans that were compared left holes in the heap, which no plan counts. What they took while they were
/// compared may be more than the run takes.
void PlannedRun::count_planning() {
  release_freed_memory();
  uint64_t& before = model.process.peak;
  before = std::max(before, peak_resident_bytes());
  set_peak(model.plan.places[kHostPlace], before);
}

StepWork PlannedRun::sampled_work() const {
  StepWork work = step_work(config, request, rows());
  if (sample) {
    work.routing = routing_like(sample->counts, opened->spec, work.batches, popularity_of(*sample));
  }
  return work;
}

/// A run counts the use of experts before it compares policies, unless it will be refused anyway.
std::optional<ChosenPolicy> PlannedRun::chosen_policy(Planning planning, RunTables& tables,
                                                      Reporter& reporter) {
  if (auto repeated_of = repeated_policy(config, *opened, request)) return repeated_of;
  const TrainedModel trained = trained_by(config, opened, experts, sample);
  PolicyOutlook outlook = policy_outlook(trained, request, tables);
  if (!outlook.must_compare) return std::move(outlook.policy);
  if (planning == Planning::run && !sample && any_policy_fits(trained, request)) {
    reporter.note(kCounting);
    sample = count_if_it_fits(opened, config, data->rows.training(), data->bytes());
  }
  return compare_policies(trained_by(config, opened, experts, sample), request, sampled_work(),
                          tables);
}

/// Of zebra alone, whose plan depends on them.
OtherRanks PlannedRun::other_ranks(RankMachines& machines, Planning planning) const {
  if (request.shards.attention_ranks == 0) return {};
  const bool here = request.shards.are_threads || planning == Planning::sizes;
  if (!here) return ranks_told(config, request);
  return ranks_here(machines, config, request, model,
                    [this](const std::shared_ptr<const OpenedModel>& with) {
                      return trained_by(config, with, experts, sample);
                    });
}

/// Threads run what is planned here. Processes plan for themselves; what they take is shown as if their
/// machines were this one, if nothing of these has to be opened for that.
void PlannedRun::plan_others(RankMachines& machines, Planning planning) {
  const int32_t ranks = request.shards.ranks;
  const bool threads = request.shards.are_threads;
  if (ranks == 1 || !model.plan.train || (!threads && planning == Planning::run)) return;
  ProcessMemory before = model.process;
  before.peak = 0;  // they measure no rates, and compare no plans
  std::vector<std::vector<PlaceLines>> memory;
  for (int32_t rank = 1; rank < ranks; ++rank) {
    const auto with = machines.of(rank);
    if (!with) return others.clear();
    others.push_back(placed_for_rank(trained_by(config, with, experts, sample), request,
                                     *model.plan.train, rank, before));
    memory.push_back(memory_of_rank(others.back().plan, !threads));
  }
  if (threads) {
    for (const PlacedModel& of : others) share_reading(model.plan, of.plan);
  }
  take_rank_memory(model.plan, std::move(memory));
}

PlacedModel placed_for_rank(TrainedModel model, PlanRequest request, const TrainSchedule& leader,
                            int32_t rank, std::optional<ProcessMemory> process) {
  request = request.scheduled_as(leader);
  request.shards.rank = rank;
  request.eval_tokens = request.decode_tokens = request.cache_rows = 0;
  return place_model(std::move(model), request, Rates::none, {}, {}, process);
}

PlanAdvice advice_for(const PlannedRun& run, const TrainConfig& config) {
  PlanRequest request = run.request;
  request.shortest = shortest_useful(config, run.rows());
  const PlanSubject subject = subject_of(run.model);
  return {changes_that_fit(run.opened, subject, request, config), needed_memory(subject, request)};
}

void require_run_fits(const PlannedRun& run, const TrainConfig& config) {
  if (!run.model.plan.fits()) {
    const PlanAdvice advice = advice_for(run, config);
    throw usage_error(refusal(run.model.plan, advice.changes, advice.needed));
  }
  if (const std::string missing = what_ranks_miss(run.model.plan); !missing.empty()) {
    throw usage_error(missing);
  }
}

}  // namespace hearth
