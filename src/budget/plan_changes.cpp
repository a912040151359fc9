#include "budget/plan_changes.h"

#include <algorithm>
#include <functional>

#include "budget/plan_variant.h"

namespace hearth {

namespace {

/// The program of the run that takes the change will not be as large to the page.
constexpr uint64_t kMargin = uint64_t{4} << 20;

/// A step of more micro-batches than this is no advice, and its list alone takes gigabytes.
constexpr int64_t kMostMicroBatches = 4096;

class Search {
 public:
  Search(const PlanSubject& subject, const PlanRequest& request, const TrainConfig& config)
      : subject_(subject), request_(request), config_(config) {
    for (PlanPlace& place : subject_.places) place.budget -= std::min(place.budget, kMargin);
    const RunPlan plan = make_run_plan(subject, request);
    short_place_ = plan.short_place().value_or(kHostPlace);
  }

  std::vector<PlanChange> run() {
    if (!anything_fits()) return found_;
    if (recompute() || smaller_micro_batch() || no_rounded_weights()) return found_;
    if (experts_on_host()) return found_;
    if (shorter_sequences(start(), config_.seq_len / 4) || frozen_parts()) return found_;
    if (!shorter_sequences(start(), 1)) all_together();
    return found_;
  }

 private:
  PlanVariant start() const {
    return {"",
            subject_.settings,
            subject_.table,
            request_,
            config_.seq_len,
            config_.micro_batch,
            config_.grad_accum};
  }

  std::optional<uint64_t> peak_if_fits(const PlanVariant& v, bool one_micro_batch = false) const {
    PlanSubject subject{subject_.spec,    v.settings,           v.table,
                        subject_.places,  subject_.types_basis, subject_.opening_bytes,
                        subject_.workers, subject_.process};
    PlanRequest request = v.request;
    if (request.micro_batches > std::max(request_.micro_batches, kMostMicroBatches)) {
      return std::nullopt;
    }
    if (one_micro_batch) request.micro_batches = 1;
    const RunPlan plan = make_run_plan(subject, request);
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
  void add_recompute(PlanVariant& v) const {
    if (!may_recompute()) return;
    v.request.recompute = true;
    v.add("--recompute blocks");
  }
  bool recompute() {
    PlanVariant v = start();
    add_recompute(v);
    return may_recompute() && take(v);
  }

  /// Largest first, those that divide the present one.
  bool smaller_micro_batch() {
    for (int64_t n = config_.micro_batch / 2; n >= 1; --n) {
      if (config_.micro_batch % n != 0) continue;
      PlanVariant v = start();
      v.cut_micro_batch(n);
      if (take(v)) return true;
    }
    return false;
  }

  bool may_drop_rounded() const { return subject_.settings.compute == Compute::bf16; }
  static void drop_rounded(PlanVariant& v) {
    v.settings.compute = Compute::f32;
    v.add("--compute-dtype f32");
  }
  bool no_rounded_weights() {
    PlanVariant v = start();
    drop_rounded(v);
    return may_drop_rounded() && take(v);
  }

  /// Where a device holds everything: its experts go to the host.
  bool experts_on_host() {
    PlanVariant v = start();
    Place from = kHostPlace;
    for (BlockId id = 0; id < std::ssize(v.table.blocks()); ++id) {
      const Block& own = v.table.block(id);
      const Block& of = own.kind == BlockKind::adapter ? v.table.block(own.base) : own;
      if (of.kind != BlockKind::expert || own.place == kHostPlace) continue;
      from = own.place;
      v.table.set_place(id, kHostPlace);
    }
    if (from == kHostPlace) return false;
    // As it was given, with its keys.
    const bool is_named = config_.devices != "auto";
    v.add("--devices " +
          (is_named ? config_.devices : subject_.places[static_cast<size_t>(from)].name) + ",host");
    return take(v);
  }

  /// The longest that fits, at least `least`: the sequences of a micro-batch are cut to one before.
  bool shorter_sequences(PlanVariant base, int64_t least) {
    base.cut_micro_batch(1);
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

  /// What is trained, less and less; each as a change of a variant, false where it is none.
  std::vector<std::function<bool(PlanVariant&)>> parts() const {
    if (!config_.trainable.empty()) return {};
    const auto embedding =
        std::find_if(subject_.table.tensors().begin(), subject_.table.tensors().end(),
                     [](const Tensor& t) { return t.slot == Slot::embedding; });
    std::vector<std::function<bool(PlanVariant&)>> all{
        [name = embedding->name](PlanVariant& v) { return v.freeze(name); },
        [](PlanVariant& v) { return v.freeze("*.experts.*"); }};
    // Beside --freeze, --trainable would only take tensors out of what is frozen.
    if (config_.freeze.empty()) {
      all.emplace_back([](PlanVariant& v) { return v.train_only("*.self_attn.*"); });
    }
    return all;
  }

  bool frozen_parts() {
    for (const auto& part : parts()) {
      PlanVariant v = start();
      if (!part(v)) continue;
      if (take(v)) return true;
      v.cut_micro_batch(1);
      if (config_.micro_batch > 1 && take(v)) return true;
    }
    return false;
  }

  /// Runs that are cut in everything but what is trained and the sequences: with and without rounded
  /// weights, because either may be the smaller.
  std::vector<PlanVariant> cut_runs() const {
    PlanVariant v = start();
    add_recompute(v);
    v.cut_micro_batch(1);
    std::vector<PlanVariant> runs{v};
    if (may_drop_rounded()) drop_rounded(runs.emplace_back(v));
    return runs;
  }

  /// Changes of several kinds at once, where none alone is enough.
  bool all_together() {
    std::vector<std::function<bool(PlanVariant&)>> trained = parts();
    trained.insert(trained.begin(), [](PlanVariant&) { return true; });
    for (const auto& part : trained) {
      for (const PlanVariant& run : cut_runs()) {
        PlanVariant v = run;
        if (part(v) && (take(v) || shorter_sequences(v, 1))) return true;
      }
    }
    return false;
  }

  /// Whether the smallest run of all changes fits: where it does not, none does.
  bool anything_fits() const {
    std::vector<std::function<bool(PlanVariant&)>> trained = parts();
    trained.insert(trained.begin(), [](PlanVariant&) { return true; });
    for (const auto& part : trained) {
      for (PlanVariant run : cut_runs()) {
        if (!part(run)) continue;
        run.cut_sequences(1);
        if (peak_if_fits(run, true)) return true;
      }
    }
    return false;
  }

  PlanSubject subject_;  // with a little less memory
  const PlanRequest& request_;
  const TrainConfig& config_;
  Place short_place_ = kHostPlace;
  std::vector<PlanChange> found_;
};

/// The same run in a process of its own: what a program has resident differs from start to start, by
/// some hundred KiB.
PlanSubject at_another_start(PlanSubject subject) {
  subject.process.program += uint64_t{1} << 20;
  return subject;
}

}  // namespace

std::vector<PlanChange> changes_that_fit(const PlanSubject& subject, const PlanRequest& request,
                                         const TrainConfig& config) {
  // What the process took before it planned stays, whatever the run does.
  if (subject.process.peak > subject.host().budget) return {};
  const PlanSubject then = at_another_start(subject);
  return Search(then, request, config).run();
}

uint64_t needed_memory(const PlanSubject& subject, const PlanRequest& request, Place place) {
  PlanSubject least = at_another_start(subject);
  for (PlanPlace& of : least.places) of.budget = 0;
  return make_run_plan(least, request).places[static_cast<size_t>(place)].peak;
}

std::string refusal(const RunPlan& plan, const std::vector<PlanChange>& changes, uint64_t needed) {
  const std::optional<Place> place = plan.short_place();
  if (!place) return "";
  const PlacePlan& where = plan.places[static_cast<size_t>(*place)];
  std::string text = what_is_missing(plan);
  if (!changes.empty()) {
    text += "; the smallest change that fits: " + changes.front().options + " (" +
            whole_mebibytes(changes.front().peak) + " MiB)";
  }
  return text +
         (changes.empty() ? "; no smaller change was found that surely fits, more memory does: "
                          : "; or ") +
         where.more_memory + whole_mebibytes(needed) + "Mi where " +
         (*place == kHostPlace ? "the machine" : where.name) + " has it";
}

}  // namespace hearth
