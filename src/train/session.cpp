#include "train/session.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/random.h"
#include "base/stop.h"
#include "base/stopwatch.h"
#include "base/system.h"
#include "budget/decided_splits.h"
#include "budget/peak_line.h"
#include "budget/plan_time.h"
#include "budget/schedule_memory.h"
#include "comm/device_world.h"
#include "layers/linear.h"

namespace hearth {

namespace {

/// Copies a micro-batch into the inputs of the schedule. Documents are sequences of their own.
BatchShape fill(const Executor& executor, const MicroBatch& batch, int32_t m) {
  const auto copy = [&](Value value, const std::vector<int32_t>& from) {
    std::memcpy(executor.value(value, -1, m).raw(), from.data(), from.size() * sizeof(int32_t));
  };
  copy(Value::ids, batch.ids);
  copy(Value::labels, batch.labels);
  copy(Value::positions, batch.positions);
  copy(Value::query_offsets, batch.offsets);
  copy(Value::key_offsets, batch.offsets);
  executor.scalar(Value::micro_tokens, m) = static_cast<double>(batch.tokens);
  executor.scalar(Value::micro_trained_tokens, m) = static_cast<double>(batch.trained_tokens);
  return {batch.tokens, static_cast<int64_t>(batch.offsets.size()) - 1, 0};
}

double max_over_mean(const std::vector<double>& counts) {
  double most = 0, sum = 0;
  for (const double c : counts) {
    most = std::max(most, c);
    sum += c;
  }
  return sum > 0 ? most * static_cast<double>(counts.size()) / sum : 0;
}

}  // namespace

std::vector<double> expert_load(const std::vector<std::vector<double>>& expert_tokens) {
  std::vector<double> load;
  for (const auto& layer : expert_tokens) load.push_back(max_over_mean(layer));
  return load;
}

Session::Session(const PlacedModel& model, RankTeam* team,
                 std::shared_ptr<const RecordedSplits> repeated)
    : model_(model),
      opened_(*model.opened),
      plan_(model.plan),
      pool_(std::make_unique<Pool>(opened_.workers, opened_.cores)),
      table_(model.table),
      team_(team),
      repeated_(std::move(repeated)) {
  const std::vector<ComputePlace>& places = opened_.devices.places;
  std::vector<Device*> devices;
  const std::vector<PlaceCosts> costs = pacing_tables(model);
  for (const ComputePlace& place : places) {
    parts_.push_back({*place.device, *place.ops, costs[devices.size()]});
    devices.push_back(place.device.get());
  }
  memory_ = std::make_unique<DeviceMemory>(std::span(devices).subspan(1));
  table_.set_memory(*memory_);
  std::vector<PlaceArenas> arenas(places.size(), PlaceArenas{});
  for (const ParameterArena& arena : parameter_arenas(table_, plan_.policy)) {
    const auto place = static_cast<size_t>(arena.place);
    auto reserved = devices[place]->reserve(arena.name, places[place].memory, arena.bytes);
    reserved->touch(*pool_);
    arenas[place][static_cast<size_t>(arena.role)] = reserved->data();
    parameters_.push_back({arena.place, arena.role, std::move(reserved)});
  }
  bind_parameters(table_, plan_.policy, arenas);
  make_shared(devices, arenas);
  std::vector<std::vector<StreamTeam>> teams;
  for (const ComputePlace& place : places) teams.push_back(place.teams);
  workspace_ = make_workspace(devices, workspace_need(plan_.schedules()), teams);
  make_residencies();
  make_predictor();
  const uint64_t before = resident_bytes();
  make_executors();
  // What the process grows by is this session's only if no other rank's makes its memory meanwhile.
  const bool is_alone = plan_.shards.ranks == 1 || !plan_.shards.are_threads;
  schedules_bytes_ = is_alone ? resident_bytes() - std::min(resident_bytes(), before)
                              : bytes_of(plan_.host(), MemoryUse::schedules);
  const Place first_device = opened_.devices.hosts;
  for (Place at = first_device; at < std::ssize(places); ++at) {
    device_bytes_[opened_.place(at).budget.name] = 0;
  }
  if (device_bytes_.empty()) return;
  for (const MeasuredArena& arena : measured_memory().arenas) {
    if (arena.place < first_device) continue;
    device_bytes_[places[static_cast<size_t>(arena.place)].budget.name] += arena.bytes;
  }
}

void Session::make_shared(std::span<Device* const> devices, std::span<const PlaceArenas> arenas) {
  const RankShards& shards = plan_.shards;
  if (!plan_.train || (shards.shards == 1 && shards.ranks == 1)) return;
  SharedParameters::Memory memory;
  memory.gradients.resize(arenas.size());
  memory.aside.resize(arenas.size());
  const auto reserve = [&](Place at, const char* name, size_t bytes) {
    const auto place = static_cast<size_t>(at);
    auto reserved = devices[place]->reserve(name, opened_.place(at).memory, bytes);
    reserved->touch(*pool_);
    std::byte* const data = reserved->data();
    sums_.push_back({at, CopyRole::gradient, std::move(reserved)});
    return data;
  };
  for (const ParameterArena& arena : parameter_arenas(table_, plan_.policy)) {
    if (arena.role != CopyRole::gradient) continue;
    const auto place = static_cast<size_t>(arena.place);
    std::byte* const gradients = arenas[place][static_cast<size_t>(CopyRole::gradient)];
    memory.gradients[place] = {gradients, arena.bytes};
    for (int32_t i = 0; i < gradients_aside(shards); ++i) {
      memory.aside[place].push_back(
          reserve(arena.place, "gradients of earlier logical shards", arena.bytes));
    }
  }
  const size_t of_guest = guest_gradient_bytes(table_, shards);
  const Place of_experts = guest_place(table_, shards);
  for (const int32_t count : guest_gradients(shards)) {
    std::vector<std::byte*>& copies = memory.guests.emplace_back();
    for (int32_t i = 0; of_guest > 0 && i < count; ++i) {
      copies.push_back(reserve(of_experts, "gradients of other ranks' rows", of_guest));
    }
  }
  const int32_t hosts = opened_.devices.hosts;
  const StagingNeed staging = staging_bytes(plan_.train->schedule, table_, shards, hosts);
  const char* const of_staging = "gradients from other ranks";
  if (staging.host > 0) {
    memory.staging = {reserve(kHostPlace, of_staging, staging.host), staging.host};
    for (Device* const device : devices.subspan(static_cast<size_t>(hosts))) {
      pinned_.push_back(device->pin(memory.staging.data, staging.host));
    }
  }
  if (staging.device > 0) {
    memory.device_staging = {reserve(hosts, of_staging, staging.device), staging.device};
  }
  if (shards.direct) {
    between_devices_ = make_device_world(team_->world(), *devices[static_cast<size_t>(hosts)]);
  }
  shared_ = std::make_unique<SharedParameters>(shards, table_, std::move(memory), team_, devices,
                                               hosts, between_devices_.get());
}

void Session::make_predictor() {
  if (!plan_.train || !foretells_by_routers(model_.of_model)) return;
  const RoutedShape shape = routed_shape(opened_.spec);
  predictor_ = std::make_unique<RouterPredictor>(
      shape, router_settings(opened_.spec, model_.of_model.foresight));
  routers_ = std::make_unique<RouterForesight>(
      routed_layers(opened_.spec), *predictor_, shape,
      static_cast<int32_t>(plan_.train->schedule.micro_batches), *pool_);
}

SplitRule* Session::split_rule(const Schedule& schedule) {
  std::vector<LinkRates> links;
  for (const ComputePlace& place : opened_.devices.places) {
    links.push_back(place.device->link_rates().value_or(LinkRates{}));
  }
  std::unique_ptr<SplitDecider> rule = split_decider(model_, schedule, links);
  if (!rule) return nullptr;
  if (schedule.pass == Pass::train && repeated_) rule->repeat(repeated_);
  if (schedule.pass == Pass::train) rule->foretell_with(routers_.get());
  return splits_.emplace_back(std::move(rule)).get();
}

void Session::run_alone(Executor& executor, const BatchShape& shape) {
  executor.run({&shape, 1});
  take_block_copies(0);
}

void Session::make_executors() {
  rope_of_ = nullptr;
  const auto make = [&](std::unique_ptr<Executor>& executor, const Schedule* schedule) {
    executor.reset();
    if (schedule == nullptr) return;
    ExecutorParts with{parts_,          workspace_, opened_.spec,
                       model_.settings, table_,     split_rule(*schedule)};
    with.ranks = shared_.get();
    executor = std::make_unique<Executor>(with, *schedule);
  };
  const std::vector<DecidedPast> past = decided_past();
  splits_.clear();
  make(train_, plan_.train ? &plan_.train->schedule : nullptr);
  restore_decided_past(past);
  make(drain_, plan_.drain ? &*plan_.drain : nullptr);
  make(eval_, plan_.eval ? &*plan_.eval : nullptr);
  make(decode_, plan_.decode ? &*plan_.decode : nullptr);
}

std::vector<DecidedPast> Session::decided_past() const {
  const SplitDecider* const rule = training_rule();
  return rule == nullptr ? std::vector<DecidedPast>{} : rule->past();
}

void Session::restore_decided_past(std::span<const DecidedPast> past) {
  if (SplitDecider* const rule = training_rule()) rule->restore(past);
}

MeasuredMemory Session::measured_memory() const {
  MeasuredMemory measured;
  for (const PlacedArena& of : parameters_) {
    measured.arenas.push_back({parameters_of(of.role), of.arena->resident_bytes(), of.place});
  }
  for (Place at = kHostPlace; at < std::ssize(opened_.devices.places); ++at) {
    uint64_t bytes = 0;
    for (const PlacedArena& of : sums_) bytes += of.place == at ? of.arena->resident_bytes() : 0;
    if (bytes > 0) measured.arenas.push_back({{MemoryUse::sums}, bytes, at});
  }
  const std::vector<const Schedule*> schedules = plan_.schedules();
  const std::vector<StreamPlan> streams = workspace_need(schedules).streams;
  for (size_t at = 0; at < workspace_.arenas.size(); ++at) {
    const auto place = static_cast<Place>(at);
    const Arena* activations = workspace_.arenas[at].get();
    for (const Schedule* schedule : schedules) {
      if (activations == nullptr || schedule->arena_bytes[at] != activations->size()) continue;
      measured.arenas.push_back(
          {activations_of(schedule->pass), activations->resident_bytes(), place});
      break;
    }
    uint64_t scratch = 0;
    for (size_t i = 0; i < streams.size(); ++i) {
      if (streams[i].place == place) scratch += workspace_.streams[i]->resident_bytes();
    }
    measured.arenas.push_back({{MemoryUse::scratch}, scratch, place});
    if (residencies_[at]) {
      measured.arenas.push_back({{MemoryUse::slots}, residencies_[at]->arena_bytes(), place});
    }
  }
  if (predictor_) {
    measured.arenas.push_back({{MemoryUse::predictor},
                               RouterPredictor::bytes(predictor_->shape(), predictor_->settings()),
                               kHostPlace});
  }
  measured.schedules = schedules_bytes_;
  measured.read_buffers = read_bytes_;
  measured.peak = peak_resident_bytes();
  return measured;
}

int Session::workers() const {
  int workers = 0;
  for (const Place at : model_.of_model.all()) {
    const ComputePlace& place = opened_.place(at);
    if (!place.host_reaches) continue;
    for (const StreamTeam& team : place.teams) workers += team.workers;
  }
  return workers;
}

void Session::fill_rope(const Executor& executor) {
  if (rope_of_ == &executor) return;
  rope_of_ = &executor;
  const View cosine = executor.value(Value::rope_cosine), sine = executor.value(Value::rope_sine);
  const int64_t half = cosine.cols;
  for (int64_t i = 0; i < half; ++i) {
    // As transformers: frequencies and angles in f32.
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(2 * half);
    const float frequency =
        1.0f / static_cast<float>(std::pow(static_cast<float>(opened_.spec.rope_theta), exponent));
    for (int64_t p = 0; p < cosine.rows; ++p) {
      const float angle = static_cast<float>(p) * frequency;
      cosine.row<float>(p)[i] = std::cos(angle);
      sine.row<float>(p)[i] = std::sin(angle);
    }
  }
}

/// Adds the tokens that each expert of a layer got from a micro-batch.
static void add_counts(const Executor& executor, int32_t layer, int32_t micro_batch,
                       std::vector<double>& counts) {
  const View of_batch = executor.value(Value::router_counts, layer, micro_batch);
  for (size_t e = 0; e < counts.size(); ++e) counts[e] += of_batch.as<double>()[e];
}

std::vector<std::vector<double>> Session::expert_tokens(const Executor& executor,
                                                        int32_t micro_batches) const {
  std::vector<std::vector<double>> layers;
  for (int32_t layer = 0; layer < opened_.spec.layers; ++layer) {
    if (!opened_.spec.moe[static_cast<size_t>(layer)]) continue;
    auto& counts = layers.emplace_back(static_cast<size_t>(opened_.spec.experts));
    for (int32_t m = 0; m < micro_batches; ++m) add_counts(executor, layer, m, counts);
  }
  return layers;
}

/// Seconds in which the place that computed most did so.
double Session::busiest_place_s(const StepUse& use) const {
  double most = use.busy.at(std::string(kCpu));
  for (const ComputePlace& place : opened_.devices.places) {
    const auto busy = use.busy.find(place.budget.name);
    if (busy != use.busy.end()) most = std::max(most, busy->second);
  }
  return most;
}

std::optional<StepResult> Session::train_step(const std::vector<MicroBatch>& batches,
                                              const StepNumbers& numbers, const StepHooks& hooks) {
  const Stopwatch time;
  StepResult result;
  std::vector<BatchShape> shapes;
  const auto own = static_cast<size_t>(plan_.train->schedule.micro_batches);
  const size_t first = own * static_cast<size_t>(plan_.shards.rank);
  const bool computes = plan_.shards.computes();  // else it has nothing but experts
  if (computes) fill_rope(*train_);
  if (!computes) shapes.resize(own);
  for (size_t m = first; computes && m < first + own; ++m) {
    const auto id = static_cast<int32_t>(m - first);
    shapes.push_back(fill(*train_, batches[m], id));
    if (has_dropout(model_.settings, Pass::train)) {
      const Random draw(model_.settings.seed, RandomSite::dropout,
                        static_cast<uint32_t>(numbers.step), static_cast<uint32_t>(m));
      train_->scalar(Value::dropout_key, id) = static_cast<double>(draw.bits(0) >> 11);
    }
    if (has_noise(model_.settings, Pass::train)) {
      const Random draw(model_.settings.seed, RandomSite::noise,
                        static_cast<uint32_t>(numbers.step), static_cast<uint32_t>(m));
      train_->scalar(Value::noise_key, id) = static_cast<double>(draw.bits(0) >> 11);
    }
  }
  for (const MicroBatch& batch : batches) {
    result.tokens += batch.tokens;
    result.trained_tokens += batch.trained_tokens;
    result.work.push_back(work_of(batch.offsets, static_cast<double>(batch.trained_tokens)));
  }
  if (computes) {
    train_->scalar(Value::tokens) = static_cast<double>(result.tokens);
    train_->scalar(Value::trained_tokens) = static_cast<double>(result.trained_tokens);
  }
  const bool rotates = plan_.train->schedule.rotates;
  if (rotates) {
    give_due(plan_.train->schedule, *train_);
  } else if (plan_.train->schedule.updates) {
    train_->scalar(Value::lr) = numbers.lr;
    train_->scalar(Value::update_step) = static_cast<double>(numbers.update);
  }

  RunOptions options = options_of(hooks, result.save_wait_s);
  options.trace = &trace_;
  if (shared_) shared_->repeat_give();
  const double start = steady_link_clock().now(), late_before = late_loads();
  const std::vector<DecidedPast> past = decided_past();
  for (const auto& rule : splits_) rule->begin_step(numbers.step);
  take_shares(1);  // of what was before the step
  const bool is_whole = train_->run(shapes, options);
  due_.reset();
  if (!is_whole) {
    restore_decided_past(past);  // the step will come again
    return std::nullopt;
  }
  result.residency = take_shares(steady_link_clock().now() - start);
  result.late_load_s = late_loads() - late_before;
  if (SplitDecider* const rule = training_rule()) {
    result.decisions = rule->decisions();
    result.prediction = rule->score();
    rule->end_step();
  }
  const Executor::LoadedExperts loaded = train_->loaded_experts();
  if (loaded.tokens > 0) result.expert_hit_rate = loaded.came_before / loaded.tokens;
  block_copies_ = take_block_copies(start);
  if (shared_) add_rank_copies(start);
  result.use = use_of(plan_.train->schedule, trace_, opened_.devices.names(), block_copies_);
  for (size_t at = 0; at < opened_.devices.places.size(); ++at) {
    const ComputePlace& place = opened_.devices.places[at];
    if (place.costs) result.paced[place.budget.name] = train_->paced()[at];
  }

  StepPart part;
  if (!computes) part.losses.resize(own);  // behind those of the ranks that have some
  for (int32_t m = 0; computes && m < static_cast<int32_t>(own); ++m) {
    part.losses.push_back({train_->scalar(Value::loss, m), train_->scalar(Value::aux_loss, m),
                           train_->scalar(Value::z_loss, m)});
    part.tokens += static_cast<double>(batches[first + static_cast<size_t>(m)].tokens);
  }
  part.expert_tokens = expert_tokens(*train_, computes ? static_cast<int32_t>(own) : 0);
  if (team_ != nullptr) {
    part.time_s = time.seconds();
    // What comes from other ranks comes on other streams, so compute streams stand still meanwhile.
    part.wait_s = std::max(0.0, part.time_s - busiest_place_s(result.use));
    part.signal = stop_signal();
    part.between_devices = between_devices_.get();
    result.ranks = join_parts(*team_, part);
    team_->end_step(time.seconds());
    result.signal = part.signal;
  }
  for (size_t m = 0; m < batches.size(); ++m) {
    const double share =
        static_cast<double>(batches[m].tokens) / static_cast<double>(result.tokens);
    const auto& [loss, aux_loss, z_loss] = part.losses[m];
    result.loss_sum += loss;
    result.aux_loss += share * aux_loss;
    result.z_loss += share * z_loss;
  }
  result.expert_tokens = std::move(part.expert_tokens);
  if (shared_) result.wired = shared_->wired();
  result.grad_norm = train_->scalar(Value::grad_norm);
  result.finite = train_->scalar(Value::finite) != 0 && std::isfinite(result.loss_sum);
  if (rotates) due_ = {numbers, train_->scalar(Value::clip), train_->scalar(Value::finite)};
  return result;
}

RunOptions Session::options_of(const StepHooks& hooks, double& save_wait_s) const {
  RunOptions options;
  options.abandon = hooks.abandon;
  if (hooks.before_update) {
    options.before_update = [&](const Task& task) {
      const Stopwatch waiting;
      hooks.before_update(views_through(task));
      save_wait_s += waiting.seconds();
    };
  }
  if (team_ !=
      nullptr) {  // raises the failure of another rank, which may come in a long computation
    options.abandon = [this] {
      team_->world().beat();
      return false;
    };
    // At once, as other streams of this rank may wait for ranks that wait for it.
    options.failed = [this](const Error& error) { team_->world().fail(error); };
  }
  return options;
}

void Session::give_due(const Schedule& schedule, const Executor& executor) const {
  const DueUpdates due = due_.value_or(DueUpdates{.numbers = {.step = 0, .update = 0}});
  executor.scalar(Value::update_step) = static_cast<double>(due.numbers.update);
  if (!schedule.updates) return;
  executor.scalar(Value::lr) = due.numbers.lr;
  executor.scalar(Value::due_clip) = due.clip;
  executor.scalar(Value::due_finite) = due.finite;
}

void Session::drain(const StepHooks& hooks) {
  if (!due_) return;
  give_due(*plan_.drain, *drain_);
  double save_wait_s = 0;
  RunOptions options = options_of(hooks, save_wait_s);
  if (team_ == nullptr) options.abandon = {};  // their step has ended
  drain_->run({}, options);
  due_.reset();
}

EvalResult Session::evaluate(EvalBatches& batches, const std::function<bool()>& stop) {
  batches.restart();
  return evaluate([&] { return batches.next(); }, stop);
}

EvalResult Session::evaluate(const std::function<std::optional<MicroBatch>()>& next,
                             const std::function<bool()>& stop) {
  HEARTH_CHECK(!due_, "session: evaluation before updates that are due");
  EvalResult result;
  std::vector<std::vector<double>>& counts = result.expert_tokens;
  counts.resize(static_cast<size_t>(opened_.spec.layers));
  while (const auto batch = next()) {
    if (stop && stop()) break;
    fill_rope(*eval_);
    const BatchShape shape = fill(*eval_, *batch, 0);
    run_alone(*eval_, shape);
    result.loss_sum += eval_->scalar(Value::loss, 0);
    result.aux_loss += eval_->scalar(Value::aux_loss, 0) * static_cast<double>(batch->tokens);
    result.tokens += batch->tokens;
    result.trained_tokens += batch->trained_tokens;
    for (size_t layer = 0; layer < counts.size(); ++layer) {
      if (!opened_.spec.moe[layer]) continue;
      counts[layer].resize(static_cast<size_t>(opened_.spec.experts));
      add_counts(*eval_, static_cast<int32_t>(layer), 0, counts[layer]);
    }
  }
  if (result.tokens > 0) result.aux_loss /= static_cast<double>(result.tokens);
  for (const auto& layer : counts) {
    if (!layer.empty()) result.expert_load.push_back(max_over_mean(layer));
  }
  return result;
}

const float* Session::decode(std::span<const int32_t> ids, int64_t past) {
  HEARTH_CHECK(!due_, "session: decoding before updates that are due");
  const auto n = static_cast<int32_t>(ids.size());
  const auto last = static_cast<int32_t>(past) + n;
  fill_rope(*decode_);
  std::memcpy(decode_->value(Value::ids, -1, 0).raw(), ids.data(), ids.size_bytes());
  auto* positions = decode_->value(Value::positions, -1, 0).as<int32_t>();
  for (int32_t i = 0; i < n; ++i) positions[i] = static_cast<int32_t>(past) + i;
  auto* query = decode_->value(Value::query_offsets, -1, 0).as<int32_t>();
  auto* key = decode_->value(Value::key_offsets, -1, 0).as<int32_t>();
  query[0] = key[0] = 0;
  query[1] = n;
  key[1] = last;
  const BatchShape shape{n, 1, past};
  run_alone(*decode_, shape);
  return decode_->value(Value::logits).as<float>();
}

}  // namespace hearth
