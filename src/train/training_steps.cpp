// A step and what follows it: metrics, evaluation.
#include "train/training_run.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <utility>

#include "base/counted.h"
#include "base/error_format.h"
#include "base/one_line.h"
#include "base/setting.h"
#include "base/stop.h"
#include "base/system.h"
#include "budget/zebra_choice.h"
#include "state/state_digest.h"
#include "train/decision_journal.h"
#include "train/due.h"
#include "train/moved_experts.h"
#include "train/text_samples.h"

namespace hearth {

std::optional<StepResult> TrainingRun::step() {
  shrink_devices();
  step_time_.restart();
  const SamplerCursor before = data_.sampler.cursor();
  const std::vector<MicroBatch> batches = data_.sampler.next_step();
  step_lr_ = config_.lr * lr_factor(course_, progress_.step);
  const StepNumbers numbers{progress_.step + 1, progress_.updates + 1, step_lr_};
  if (crew_) crew_->begin_step(numbers, before);
  auto result = session_->train_step(batches, numbers, hooks());
  step_s_ = step_time_.seconds();
  unseen_updates_.look(session_->table());  // at those that were due
  if (result) {
    count(*result, batches);
  } else {
    data_.sampler.seek(before);
  }
  return result;
}

StepHooks TrainingRun::hooks() {
  // The step of several ranks always ends; a signal stops the run behind it.
  if (crew_) {
    return {{}, [this](size_t views) {
              const Away away(crew_->team().world());
              saves_->wait_until_safe(views);
            }};
  }
  return {[] { return stop_signal() != 0; },
          [this](size_t views) { saves_->wait_until_safe(views); }};
}

void TrainingRun::drain() {
  if (!session_->updates_are_due()) return;
  const Stopwatch draining;
  if (crew_) crew_->begin_drain();
  session_->drain(hooks());
  unseen_updates_.look(session_->table());
  if (crew_) crew_->join(gradients_);
  drain_s_ += draining.seconds();
}

void TrainingRun::settle() {
  drain();
  if (!crew_ || std::exchange(collected_step_, progress_.step) == progress_.step) return;
  crew_->collect(*session_);
}

void TrainingRun::shrink_devices() {
  const int64_t step = progress_.step + 1;
  const std::vector<ShrunkDevice> shrunk = session_->shrink_devices(step);
  for (const ShrunkDevice& of : shrunk) {
    logs_->journal.event("dropped", {{"step", step},
                                     {"device", of.device},
                                     {"blocks", of.slots},
                                     {"bytes", of.dropped.slot_bytes},
                                     {"cached_bytes", of.dropped.bytes},
                                     {"budget_bytes", of.budget},
                                     {"why", of.dropped.why}});
    reporter_.note("step " + std::to_string(step) + ": " + of.device + ": " + of.dropped.why +
                   ": " + counted(of.slots, "slot") + " fewer for copies of weights and gradients");
  }
  for (const ShrunkDevice& of : shrunk) {
    if (of.needed <= of.budget) continue;
    if (progress_.step > 0) saves_->save_now();
    throw device_error(
        "{}: its budget fell to {} bytes at step {}, but the run needs {} bytes there and nothing "
        "is "
        "left to drop; resume with a larger shrink= in {}",
        of.device, of.budget, step, of.needed, spelled(Setting::devices));
  }
}

void TrainingRun::follow_popularity() {
  if (crew_ || recent_tokens_ == 0 || !has_steps_left() || must_stop() || !may_move_experts(model_))
    return;
  const ExpertCounts counts = by_layer(model_.opened->spec, std::exchange(recent_experts_, {}));
  run_.sample = SampleCounts{counts, std::exchange(recent_tokens_, 0)};
  auto moved = moved_experts(model_, run_.request, session_->table(), counts);
  if (!moved) return;
  JsonArray swaps;
  for (const ExpertSwap& of : moved->swaps) {
    swaps.push_back(JsonArray{int64_t{of.layer}, int64_t{of.comes}, int64_t{of.leaves}});
  }
  logs_->journal.event("experts_moved", {{"step", progress_.step},
                                         {"device_share_before", moved->share_before},
                                         {"device_share", moved->share},
                                         {"swaps", std::move(swaps)}});
  session_->swap_experts(std::vector(moved->swaps),
                         [&] { take_moved(run_.model, std::move(*moved)); });
}

void TrainingRun::count(const StepResult& result, const std::vector<MicroBatch>& batches) {
  ++progress_.step;
  progress_.tokens += result.tokens;
  progress_.trained_tokens += result.trained_tokens;
  signal_of_ranks_ = result.signal;
  recent_tokens_ += result.tokens;
  recent_experts_.resize(result.expert_tokens.size());
  for (size_t layer = 0; layer < recent_experts_.size(); ++layer) {
    recent_experts_[layer].resize(result.expert_tokens[layer].size());
    std::ranges::transform(recent_experts_[layer], result.expert_tokens[layer],
                           recent_experts_[layer].begin(), std::plus{});
  }
  progress_.cursor = data_.sampler.cursor();
  if (result.finite) {
    ++progress_.updates;
    progress_.skipped_in_a_row = 0;
    routing_.count(batches, result.expert_tokens);
    unseen_updates_.add(*session_, result.expert_tokens);
    if (crew_) crew_->join(gradients_);
    if (result.trained_tokens > 0) {
      losses_.add(result.loss_sum / static_cast<double>(result.trained_tokens), result.grad_norm);
    }
  } else {
    ++progress_.skipped;
    ++progress_.skipped_in_a_row;
  }
}

void TrainingRun::record(const StepResult& result) {
  const bool with_digest = config_.digest_every && (progress_.step % *config_.digest_every) == 0;
  if (with_digest) drain();
  if (with_digest && crew_) crew_->take_digests();
  StepMetrics m;
  m.step = progress_.step;
  m.time = utc_now();
  m.epoch = data_.sampler.epochs();
  if (evaluated_step_ == progress_.step) m.eval_loss = eval_loss_;
  m.loss =
      result.trained_tokens > 0 ? result.loss_sum / static_cast<double>(result.trained_tokens) : 0;
  m.aux_loss = result.aux_loss;
  if (model_.settings.z_loss != 0) m.z_loss = result.z_loss;
  m.grad_norm = result.grad_norm;
  m.lr = step_lr_;
  m.tokens = result.tokens;
  m.trained_tokens = result.trained_tokens;
  m.time_s = step_s_ + std::exchange(drain_s_, 0);
  m.tokens_per_s = static_cast<double>(result.tokens) / m.time_s;
  const StepBound bound = bound_of(model_, result.work);
  m.bound_pct = 100 * bound.total_s() / m.time_s;
  m.peak_rss_bytes = peak_resident_bytes();
  m.peak_device_bytes = session_->device_bytes();
  m.bytes = result.use.bytes;
  record_ranks(result, m);
  for (const auto& [place, tasks] : result.paced) {
    m.paced_late = m.paced_late.value_or(0) + tasks.late;
    m.paced_late_s[place] = tasks.late_s;
    paced_[place] += tasks;
  }
  record_use(result, m);
  ++steps_here_;
  step_seconds_ += m.time_s;
  best_step_s_ = steps_here_ == 1 ? m.time_s : std::min(best_step_s_, m.time_s);
  const Stopwatch writing;
  m.expert_load = expert_load(result.expert_tokens);
  if (config_.tokens_by_expert) m.tokens_by_expert = result.expert_tokens;
  m.skipped = !result.finite;
  std::optional<Digest> root;
  if (with_digest) {
    root = state_digest(registry_, &session_->pool()).root;
    m.state_digest = root->hex();
  }
  journal_decisions(logs_->journal, m.step, result.decisions, model_.placement,
                    model_.opened->devices.names(), model_.opened->spec.expert_width,
                    config_.all_decisions);
  saves_->expect_root(root);
  logs_->metrics.append(m);
  logs_->scalars.step(m);
  log_s_ = writing.seconds();
  reporter_.step(m, *run_.steps);
  if (m.skipped) count_skipped(m);
}

void TrainingRun::record_ranks(const StepResult& result, StepMetrics& m) {
  // Ranks that share the experts have unequal work: experts of their own, or roles.
  const bool alike = !model_.plan.shards.group().divided();
  if (const auto slow = alike ? stragglers_.add(result.ranks) : std::nullopt) {
    reporter_.warn_of_event(slow->text());
    logs_->journal.event("straggler", {{"step", m.step},
                                       {"rank", int64_t{slow->rank}},
                                       {"host", slow->host},
                                       {"factor", slow->factor},
                                       {"steps", slow->steps}});
  }
  if (!result.ranks.empty()) {  // those of this rank
    for (const auto& [link, bytes] : std::exchange(m.bytes, {})) {
      const size_t arrow = link.find("->");
      m.bytes["0/" + link.substr(0, arrow) + "->0/" + link.substr(arrow + 2)] = bytes;
    }
  }
  m.wire = result.wired;
  for (const RankStep& step : result.ranks) {
    m.ranks.push_back({step.rank, step.host, step.time_s, step.wait_s, step.tokens,
                       role_of(model_.plan.shards, step.rank)});
    for (size_t to = 0; to < step.sent_bytes.size(); ++to) {
      if (static_cast<int32_t>(to) == step.rank) continue;
      const std::string link = std::to_string(step.rank) + "/host->" + std::to_string(to) + "/host";
      const auto sent = static_cast<uint64_t>(step.sent_bytes[to]);
      m.bytes[link] = sent - std::exchange(sent_before_[link], sent);
    }
  }
}

void TrainingRun::record_use(const StepResult& result, StepMetrics& m) {
  const StepUse& use = result.use;
  m.limit = use.limit();
  if (result.save_wait_s > use.busy.at(m.limit)) m.limit = "io";
  m.busy = use.busy;
  m.busy[kCpu] = use.products_s + use.sweeps_s;
  m.busy["io"] = log_s_ + saves_->take_seconds();
  m.stall_s = use.stall;
  m.stall_s["io"] = result.save_wait_s;
  m.late_load_s = result.late_load_s;
  m.expert_hit_rate = result.expert_hit_rate;
  if (const auto& score = result.prediction) {
    m.prediction = {score->token_hit(), score->least_quarter(), score->byte_hit()};
  }
  m.residency = result.residency;
  const double idle = session_->workers() * m.time_s - m.busy[kCpu];
  m.cpu_s = {
      {"products", use.products_s}, {"sweeps", use.sweeps_s}, {"waiting", std::max(0.0, idle)}};
}

void TrainingRun::count_skipped(const StepMetrics& m) {
  reporter_.warn_of_event(
      "step " + std::to_string(m.step) +
      ": the loss or a gradient is not finite; the step is skipped, weights are unchanged");
  logs_->journal.event("skipped_step",
                       {{"step", m.step}, {"loss", m.loss}, {"grad_norm", m.grad_norm}});
  if (progress_.skipped_in_a_row < 3) return;
  saves_->end(true);
  throw numeric_error("the loss or a gradient was not finite in three steps in a row up to step " +
                      std::to_string(m.step) + "; try a lower " + spelled(Setting::lr));
}

bool TrainingRun::evaluation_due() const {
  return is_due(config_.eval_every, progress_.step, data_.sampler.ended_epoch(),
                since_evaluation_.seconds());
}

int TrainingRun::signal() const { return stop_signal() != 0 ? stop_signal() : signal_of_ranks_; }

bool TrainingRun::must_stop() const {
  return signal() != 0 || (config_.max_time && start_.seconds() >= *config_.max_time);
}

void TrainingRun::evaluate(const char* when) {
  if (!data_.eval || evaluated_step_ == progress_.step) return;
  // The weights of experts may be at other ranks, or those here may be what travelled compressed.
  const RankShards& shards = model_.plan.shards;
  shards.group().divided() || shards.wire.compresses() ? settle() : drain();
  const EvalResult result = session_->evaluate(*data_.eval, [this] {
    if (crew_) crew_->team().world().beat();
    return stop_signal() != 0;
  });
  if (stop_signal() != 0) return;
  evaluated_step_ = progress_.step;
  eval_loss_ = result.loss();
  if (progress_.step > 0) best_.add(progress_.step, result.loss());
  since_evaluation_.restart();
  logs_->journal.event("eval", {{"step", progress_.step},
                                {"when", when},
                                {"loss", result.loss()},
                                {"trained_tokens", result.trained_tokens}});
  logs_->scalars.scalars(progress_.step, {{"eval/loss", result.loss()}});
  if (!std::isfinite(result.loss())) {
    reporter_.warn("evaluation at step " + std::to_string(progress_.step) +
                   ": the loss is not finite");
  }
  char loss[32];  // with the digits of a step's line
  std::snprintf(loss, sizeof loss, "%.4f", result.loss());
  reporter_.note("evaluation at step " + std::to_string(progress_.step) + ": loss " + loss);
}

void TrainingRun::write_samples(const char* when) {
  if (config_.samples == 0) return;
  drain();
  const RowSet& rows = data_.eval_rows                      ? data_.eval_rows->training()
                       : data_.rows.validation().rows() > 0 ? data_.rows.validation()
                                                            : data_.rows.training();
  const SampleWriter writer(config_, model_.opened->spec);
  for (const auto& prompt : sample_prompts(rows, config_.samples)) {
    const auto text = writer.continue_prompt(*session_, prompt, [] { return stop_signal() != 0; });
    if (!text) return;
    const std::string shown = writer.text(prompt);
    logs_->journal.event(
        "sample", {{"step", progress_.step}, {"when", when}, {"prompt", shown}, {"text", *text}});
    reporter_.note("sample, " + std::string(when) + ": " + quoted(with_visible_breaks(shown)) +
                   " -> " + quoted(with_visible_breaks(*text)));
  }
}

}  // namespace hearth
