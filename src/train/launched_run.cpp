#include "train/launched_run.h"

#include <exception>

#include "base/error_format.h"
#include "base/log.h"
#include "base/raised_error.h"
#include "base/setting.h"
#include "budget/plan_fit.h"
#include "record/run_reporter.h"
#include "train/other_ranks.h"
#include "train/rank_crew.h"
#include "train/rank_options.h"
#include "train/rank_texts.h"
#include "train/resume.h"
#include "train/settled_options.h"
#include "train/shared_disk.h"
#include "train/signals.h"
#include "train/trainer.h"

namespace hearth {

namespace {

/// What rank 0 tells is a run that begins, or the exit code with which all end.
constexpr const char* kCode = "code";
constexpr const char* kDevices = "devices";  // those of rank 0

Json experts_json(const ExpertChoice& experts) {
  JsonArray layers;
  for (const std::vector<int32_t>& layer : experts) {
    JsonArray numbers;
    for (const int32_t expert : layer) numbers.emplace_back(int64_t{expert});
    layers.emplace_back(std::move(numbers));
  }
  return layers;
}

ExpertChoice experts_in(const Json& layers) {
  ExpertChoice experts;
  for (const Json& layer : layers.as_array()) {
    std::vector<int32_t>& numbers = experts.emplace_back();
    for (const Json& expert : layer.as_array()) {
      numbers.push_back(static_cast<int32_t>(expert.as_int()));
    }
  }
  return experts;
}

JsonArray numbers_json(const std::vector<int32_t>& numbers) {
  JsonArray json;
  for (const int32_t number : numbers) json.emplace_back(int64_t{number});
  return json;
}

std::vector<int32_t> numbers_in(const Json& json) {
  std::vector<int32_t> numbers;
  for (const Json& number : json.as_array()) {
    numbers.push_back(static_cast<int32_t>(number.as_int()));
  }
  return numbers;
}

std::vector<DomainLevel> levels_in(const Json& json) {
  const std::vector<int32_t> numbers = numbers_in(json);
  std::vector<DomainLevel> levels;
  for (size_t i = 0; i + 1 < numbers.size(); i += 2) {
    levels.push_back({numbers[i], numbers[i + 1]});
  }
  return levels;
}

Json levels_json(const std::vector<DomainLevel>& levels) {
  std::vector<int32_t> numbers;
  for (const auto& [ranks, domain] : levels) {
    numbers.push_back(ranks);
    numbers.push_back(domain);
  }
  return numbers_json(numbers);
}

/// Rank 0 alone speaks.
class SilentReporter final : public Reporter {
 public:
  void note(const std::string&) override {}
  void warn(const std::string&) override {}
  void step(const StepMetrics&, int64_t) override {}
};

/// What a rank other than 0 does of a run that began.
void follow_run(const Json& begin, const TrainConfig& given, Reporter& reporter, RankTeam& team) {
  const std::shared_ptr<const OpenedModel> opened = open_model(given);
  require_ranks(given, opened->devices);
  require_expert_ranks(given, opened->spec);
  const TrainingData data(given, *opened, reporter);
  const TrainConfig config = with_choices(given, data.choices);
  const Json* const experts = begin.find("experts");
  TrainSchedule leader;
  leader.group = begin.find("group")->as_int();
  leader.recompute = begin.find("recompute")->as_bool();
  leader.inputs_on_host = begin.find("inputs_on_host")->as_bool();
  leader.expert_shift = numbers_in(*begin.find("expert_shift"));
  leader.zebra_order = order_of(numbers_in(*begin.find("zebra_order")));
  leader.levels = levels_in(*begin.find("levels"));
  leader.fetched_from = static_cast<int32_t>(begin.find("fetched_from")->as_int());
  const PlacedModel model = placed_for_rank(
      experts ? trained_model(opened, config, experts_in(*experts)) : trained_model(opened, config),
      training_request(config, &data), leader, team.rank());
  if (!model.plan.fits()) {
    const RankShards& shards = model.plan.shards;
    const bool could_fetch = config.parallel == "hybrid-ep" && shards.ranks > shards.expert_ranks &&
                             !shards.wire.compresses() && shards.fetched_from != 0;
    throw usage_error("{}{}", what_is_missing(model.plan),
                      could_fetch ? "; less with " + spelled(Setting::kept_layers, "0") : "");
  }
  const RunIdentity identity = identity_of_run(config, model, data.rows.digests(), {});
  require_same_fields(team, read_fields(identity));
  ranks_on_disk(team, config.out);
  follow_orders(team, model, config, data.rows.training());
}

ExitCode follow(TrainConfig config, RankTeam& team) {
  const StopSignals signals;  // rank 0 learns of them after a step
  SilentReporter silent;
  RunReporter reporter(silent);
  const Json first = parse_json(hear(team), "what rank 0 tells");
  take_settled(config, first);
  const std::string leader = devices_of(config.rank_devices, 0, first.find(kDevices)->as_string());
  config = with_devices_of_rank(with_shared_cores(std::move(config)), team.rank());
  if (config.parallel == "zebra") {
    const World& world = team.world();
    const bool alike = config.devices == leader && world.host(team.rank()) == world.host(0);
    gather_texts(team, alike ? "" : own_speed(config, team.rank(), reporter));
  }
  while (true) {
    const Json told = parse_json(hear(team), "what rank 0 tells");
    if (const Json* const code = told.find(kCode)) return static_cast<ExitCode>(code->as_int());
    follow_run(told, config, reporter, team);
  }
}

ExitCode lead(TrainConfig config, Reporter& reporter, LaunchedRanks& ranks) {
  settle_options(config);
  Json told = settled(config);
  told[kDevices] = config.devices;
  tell(ranks.team(), told.dump());
  if (config.parallel == "zebra") config.rank_speeds = gather_texts(ranks.team(), "");
  if (!ranks.binding_warning().empty()) log_warning(ranks.binding_warning());
  if (!config.why_not_direct.empty()) {
    log_verbose("messages between GPUs pass the hosts: " + config.why_not_direct);
  }
  const ExitCode code = train(config, reporter, &ranks.team());
  tell(ranks.team(), Json(JsonObject{{kCode, int64_t{static_cast<int>(code)}}}).dump());
  return code;
}

}  // namespace

void tell_begin(RankTeam& team, const PlannedRun& run) {
  const TrainSchedule& train = *run.model.plan.train;
  JsonObject begin{{"group", train.group},
                   {"recompute", train.recompute},
                   {"inputs_on_host", train.inputs_on_host},
                   {"expert_shift", numbers_json(train.expert_shift)},
                   {"zebra_order", numbers_json(numbers_of(train.zebra_order))},
                   {"levels", levels_json(train.levels)},
                   {"fetched_from", int64_t{train.fetched_from}}};
  if (run.experts) begin.emplace_back("experts", experts_json(run.experts->experts));
  tell(team, Json(std::move(begin)).dump());
}

ExitCode train_launched(TrainConfig config, Reporter& reporter, LaunchedRanks& ranks) {
  ranks.describe(config);
  const auto ended = [&](const Error& error) { return say(ranks.fail(error)); };
  ranks.team().watch(config.rank_limit);
  try {
    return ranks.leads() ? lead(std::move(config), reporter, ranks)
                         : follow(std::move(config), ranks.team());
  } catch (...) {
    return as_error(std::current_exception(), ended);
  }
}

}  // namespace hearth
