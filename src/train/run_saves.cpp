#include "train/run_saves.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/system.h"
#include "train/due.h"

namespace hearth {

namespace {

constexpr int kMaxFailedSaves = 3;  // in a row

}  // namespace

RunSaves::RunSaves(const TrainConfig& config, const RunDirectory& directory, Source source,
                   RunLogs& logs, RunReporter& reporter, int64_t saved_step)
    : config_(config),
      directory_(directory),
      source_(std::move(source)),
      logs_(logs),
      reporter_(reporter),
      saved_step_(saved_step) {}

void RunSaves::begin_if_due() {
  end(false);
  const int64_t step = source_.progress.step;
  if (source_.best.wants(step) ||
      is_due(config_.save_every, step, source_.sampler.ended_epoch(), since_begin_.seconds())) {
    begin();
  }
}

void RunSaves::begin() {
  end(true);
  const int64_t step = source_.progress.step;
  if (saved_step_ == step) return source_.best.saved(step);
  directory_.require_there();
  if (source_.settle) source_.settle();
  since_begin_.restart();
  const KeptStates keep{static_cast<int>(config_.keep), source_.best.steps()};
  SaveRequest request{directory_.path(), step, keep, source_.extra(), [this] {
                        logs_.metrics.sync();
                        directory_.require_there();
                      }};
  release_freed_memory();  // of the save before: its lists come again
  const uint64_t before = resident_bytes();
  if (source_.crew != nullptr) request.others = &source_.crew->begin_save(step);
  auto save = std::make_unique<StateSave>(source_.registry, std::move(request), source_.pool);
  memory_bytes_ = std::max(memory_bytes_, resident_bytes() - std::min(resident_bytes(), before));
  HEARTH_CHECK(!root_ || *root_ == save->digest().root,
               "the state changed after the digest of its step was taken");
  save_.begin(std::move(save));
  begin_s_ = since_begin_.seconds();
}

void RunSaves::end(bool wait) {
  const auto outcome = save_.end(wait);
  if (!outcome) return;
  seconds_ += begin_s_ + outcome->seconds;
  failure_ = outcome->failure;
  // If a rank has failed, that ends the run, and no save has a story of its own.
  if (!failure_.empty() && source_.crew != nullptr) source_.crew->team().world().beat();
  if (failure_.empty()) {
    failed_ = 0;
    saved_step_ = outcome->step;
    source_.best.saved(outcome->step);
    logs_.journal.event("state_saved", {{"step", outcome->step},
                                        {"begin_s", begin_s_},
                                        {"seconds", outcome->seconds},
                                        {"waited_s", outcome->waited_s}});
  } else {
    ++failed_;
    source_.best.not_saved(outcome->step);
    reporter_.warn_of_event("the state of step " + std::to_string(outcome->step) +
                            " could not be saved; older states are intact: " + failure_);
    logs_.journal.event("save_failed", {{"step", outcome->step}, {"reason", failure_}});
  }
  logs_.note_warnings(source_.progress.step);
  if (failed_ >= kMaxFailedSaves) {
    throw storage_error(failure_ + " (three saves in a row have failed)");
  }
}

void RunSaves::save_now() {
  begin();
  end(true);
  if (saved_step_ != source_.progress.step) throw storage_error(failure_);
}

double RunSaves::take_seconds() { return std::exchange(seconds_, 0); }

}  // namespace hearth
