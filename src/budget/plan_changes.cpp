#include "budget/plan_changes.h"

#include <algorithm>
#include <functional>

#include "base/setting.h"
#include "base/size_text.h"
#include "budget/plan_fit.h"
#include "budget/plan_variant.h"
#include "budget/stage_room.h"

namespace hearth {

namespace {

/// Of the host: the program of the run that takes the change will not be as large to the page.
constexpr uint64_t kMargin = uint64_t{4} << 20;

/// A step of more micro-batches than this is no advice, and its schedule alone takes gigabytes.
constexpr int64_t kMostMicroBatches = 4096;

/// The smaller ranks and shares that are tried.
constexpr int64_t kRanks[] = {8, 4, 2, 1};
constexpr double kShares[] = {50, 25, 10};

/// Changes what is trained; false if the change is none, or if a run refuses it.
using Part = std::function<bool(PlanVariant&)>;

class Search {
 public:
  Search(const std::shared_ptr<const OpenedModel>& opened, const PlanSubject& subject,
         const PlanRequest& request, const TrainConfig& config)
      : subject_(subject), request_(request), config_(config) {
    uint64_t& host = subject_.places[kHostPlace].budget.bytes;
    host -= std::min(host, kMargin);
    short_place_ = plan_placement(subject, request).plan.short_place().value_or(kHostPlace);
    start_ = {"", config, request, subject.of_model,
              std::make_shared<const TrainedModel>(trained_model(opened, config))};
  }

  std::vector<PlanChange> run() {
    if (!anything_fits()) return found_;
    if (recompute() || smaller_micro_batch() || no_rounded_weights()) return found_;
    if (experts_on_host()) return found_;
    if (shorter_sequences(start_, config_.seq_len / 4) || less_trained()) return found_;
    if (!shorter_sequences(start_, 1)) all_together();
    return found_;
  }

 private:
  std::optional<uint64_t> peak_if_fits(const PlanVariant& v, bool one_micro_batch = false) const {
    const ParameterTable& table = v.model->table;
    RunSettings settings = v.model->settings;
    settings.compute = resolved_compute(v.model->compute, table, subject_.places, v.places);
    const PlanSubject subject{subject_.spec,
                              settings,
                              table,
                              subject_.places,
                              subject_.hosts,
                              v.places,
                              subject_.planner,
                              subject_.types_basis,
                              subject_.opening_bytes,
                              subject_.workers,
                              subject_.process,
                              subject_.popularity,
                              subject_.expected,
                              subject_.compute,
                              subject_.compute_backward};
    PlanRequest request = v.request;
    if (request.micro_batches > std::max(request_.micro_batches, kMostMicroBatches)) {
      return std::nullopt;
    }
    if (one_micro_batch) request.micro_batches = request.shards.count();
    if (!may_fit(subject, request)) return std::nullopt;
    const Plan plan = plan_placement(subject, request).plan;
    if (!plan.fits()) return std::nullopt;
    return plan.places[static_cast<size_t>(short_place_)].peak;
  }

  bool take(const PlanVariant& v) {
    // Most do not fit, which one micro-batch alone shows.
    if (!peak_if_fits(v, true)) return false;
    const auto peak = peak_if_fits(v);
    if (peak) found_.push_back({v.options, *peak});
    return peak.has_value();
  }

  bool may_recompute() const { return !request_.recompute.value_or(true); }
  bool recompute() {
    if (!may_recompute()) return false;
    PlanVariant v = start_;
    v.recompute_blocks();
    return take(v);
  }

  /// Largest first, those that divide the present one.
  bool smaller_micro_batch() {
    for (int64_t n = config_.micro_batch / 2; n >= 1; --n) {
      if (config_.micro_batch % n != 0) continue;
      PlanVariant v = start_;
      v.cut_micro_batch(n);
      if (take(v)) return true;
    }
    return false;
  }

  bool may_drop_rounded() const { return subject_.settings.compute == Compute::bf16; }
  bool no_rounded_weights() {
    if (!may_drop_rounded()) return false;
    PlanVariant v = start_;
    v.drop_rounded_weights();
    return take(v);
  }

  /// If devices hold everything: their experts go to the host.
  bool experts_on_host() {
    if (!experts_may_move()) return false;
    PlanVariant v = start_;
    const Place from = v.places.dense.front();
    v.places.experts = {kHostPlace};
    // As it was given, with its keys.
    if (config_.devices == "auto") {
      v.config.devices = subject_.places[static_cast<size_t>(from)].budget.name;
    }
    v.config.devices += ",host";
    v.add(spelled(Setting::devices, v.config.devices));
    return take(v);
  }

  /// The longest that fits, at least `least` and what leaves trained tokens. Micro-batches are cut to
  /// one sequence before.
  bool shorter_sequences(PlanVariant base, int64_t least) {
    base.cut_micro_batch(1);
    least = std::max(least, request_.shortest);
    const int64_t unit = config_.seq_len >= 512 ? 64 : 8;
    int64_t low = 0, high = (std::min(config_.seq_len, request_.longest) - 1) / unit;  // units
    while (low < high) {
      const int64_t middle = (low + high + 1) / 2;
      PlanVariant v = base;
      v.cut_sequences(middle * unit);
      if (peak_if_fits(v, true) && peak_if_fits(v)) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    int64_t length = low * unit;
    for (int64_t half = unit / 2; length == 0 && half >= least; half /= 2) {
      PlanVariant v = base;
      v.cut_sequences(half);
      if (peak_if_fits(v)) length = half;
    }
    if (length < least) return false;
    base.cut_sequences(length);
    return take(base);
  }

  /// Ways to train less, more and more of them.
  std::vector<Part> parts() const {
    std::vector<Part> all;
    if (config_.method == Method::lora) {
      add_lora_parts(all, [](PlanVariant&) { return true; });
      return all;
    }
    if (config_.trainable.empty()) add_full_parts(all);
    const Part lora = [](PlanVariant& v) { return v.train_adapters(); };
    all.push_back(lora);
    add_lora_parts(all, lora);
    return all;
  }

  void add_full_parts(std::vector<Part>& all) const {
    const auto embedding =
        std::find_if(subject_.table.tensors().begin(), subject_.table.tensors().end(),
                     [](const Tensor& t) { return t.slot == Slot::embedding; });
    all.emplace_back([name = embedding->name](PlanVariant& v) { return v.freeze(name); });
    all.emplace_back([](PlanVariant& v) { return v.freeze("*.experts.*"); });
    // Beside frozen globs, trainable ones would only take tensors out of what is frozen.
    if (config_.freeze.empty()) {
      all.emplace_back([](PlanVariant& v) { return v.train_only("*.self_attn.*"); });
    }
  }

  /// Of a new adapter; those of one that is trained on are all trained.
  void add_lora_parts(std::vector<Part>& all, const Part& before) const {
    if (!config_.adapter.empty()) return;
    for (const double share : kShares) {
      all.emplace_back([=](PlanVariant& v) { return before(v) && v.choose_experts(share); });
    }
    for (const int64_t rank : kRanks) {
      all.emplace_back([=](PlanVariant& v) { return before(v) && v.cut_rank(rank); });
    }
    for (const int64_t rank : kRanks) {
      all.emplace_back([=](PlanVariant& v) { return before(v) && v.cut_expert_rank(rank); });
    }
    all.emplace_back([=](PlanVariant& v) { return before(v) && v.freeze("*.experts.*"); });
    all.emplace_back([=](PlanVariant& v) { return before(v) && v.adapt_attention_alone(); });
    for (const int64_t rank : kRanks) {
      all.emplace_back([=](PlanVariant& v) {
        return before(v) && v.adapt_attention_alone() && v.cut_rank(rank);
      });
    }
  }

  /// The run with less of it trained; nullopt if the part changes nothing or a run refuses it.
  static std::optional<PlanVariant> with(const Part& part, const PlanVariant& run) {
    PlanVariant v = run;
    if (!part(v)) return std::nullopt;
    if (trained_parameters(v.model->table) >= trained_parameters(run.model->table)) return {};
    return v;
  }

  bool less_trained() {
    for (const Part& part : parts()) {
      std::optional<PlanVariant> v = with(part, start_);
      if (!v) continue;
      if (take(*v)) return true;
      v->cut_micro_batch(1);
      if (config_.micro_batch > 1 && take(*v)) return true;
    }
    return false;
  }

  /// Runs that are cut in everything but what is trained and the sequences: with and without rounded
  /// weights, because either may be the smaller.
  std::vector<PlanVariant> cut_runs() const {
    PlanVariant v = start_;
    if (may_recompute()) v.recompute_blocks();
    v.cut_micro_batch(1);
    std::vector<PlanVariant> runs{v};
    if (may_drop_rounded()) runs.emplace_back(v).drop_rounded_weights();
    return runs;
  }

  /// Whether `takes` takes one of the runs with all cuts at once: all of it trained, then less.
  bool any_cut_run(const std::function<bool(const PlanVariant&)>& takes) const {
    const std::vector<PlanVariant> runs = cut_runs();
    if (std::any_of(runs.begin(), runs.end(), takes)) return true;
    for (const Part& part : parts()) {
      for (const PlanVariant& run : runs) {
        const std::optional<PlanVariant> v = with(part, run);
        if (v && takes(*v)) return true;
      }
    }
    return false;
  }

  /// Changes of several kinds at once, if none alone is enough.
  bool all_together() {
    return any_cut_run([&](const PlanVariant& v) { return take(v) || shorter_sequences(v, 1); });
  }

  /// Whether the smallest run of all changes fits: if it does not, none does.
  bool anything_fits() const {
    return experts_may_move() || any_cut_run([&](PlanVariant v) {
             v.cut_sequences(std::min(request_.shortest, config_.seq_len));
             return peak_if_fits(v, true).has_value();
           });
  }
  bool experts_may_move() const {
    const ModelPlaces& places = start_.places;  // weights that travel are the host's already
    return places.experts.empty() && places.travel == Travel::never &&
           places.dense.front() != kHostPlace;
  }

  PlanSubject subject_;  // with a little less memory
  const PlanRequest& request_;
  const TrainConfig& config_;
  PlanVariant start_;
  Place short_place_ = kHostPlace;
  std::vector<PlanChange> found_;
};

}  // namespace

std::vector<PlanChange> changes_that_fit(const std::shared_ptr<const OpenedModel>& opened,
                                         const PlanSubject& subject, const PlanRequest& request,
                                         const TrainConfig& config) {
  // What the process took before it planned stays, whatever the run does.
  if (subject.process.peak > subject.places[kHostPlace].budget.bytes) return {};
  const PlanSubject then = at_another_start(subject);
  return Search(opened, then, request, config).run();
}

std::string refusal(const Plan& plan, const std::vector<PlanChange>& changes,
                    const std::vector<uint64_t>& needed) {
  if (plan.fits()) return "";
  std::string text = what_is_missing(plan, needed);
  if (!changes.empty()) {
    text += "; the smallest change that fits: " + changes.front().options + " (" +
            size_text(changes.front().peak) + ")";
  }
  const std::string options = options_that_fit(plan, needed);
  if (options.empty()) {
    return text +
           (changes.empty() ? "; no smaller change fits, and no larger budget was found" : "");
  }
  return text + (changes.empty() ? "; no smaller change fits, but more memory does: " : "; or ") +
         options;
}

}  // namespace hearth
