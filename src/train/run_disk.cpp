#include "train/run_disk.h"

#include <algorithm>

#include "base/file_ops.h"
#include "base/setting.h"
#include "base/size_text.h"
#include "peft/adapter.h"
#include "peft/write.h"

namespace hearth {

namespace {

/// Whether the run saves at every step of `every`, so that their number is known.
bool by_steps_only(const Interval& every) { return !every.seconds && !every.epoch; }

int64_t times(const Interval& every, int64_t steps) {
  return every.steps && *every.steps > 0 ? steps / *every.steps : 0;
}

/// The most states that a run saves; one more than it keeps is there for a moment. Every evaluation
/// may save one.
int64_t most_states(const TrainConfig& config, std::optional<int64_t> steps) {
  const int64_t best = config.best_states(), kept = config.keep + best + 1;
  const Interval &save = config.save_every, &eval = config.eval_every;
  if (!steps || !by_steps_only(save) || (best > 0 && !by_steps_only(eval))) return kept;
  const bool at_end = times(save, *steps) > 0 && *steps % *save.steps == 0;
  const int64_t of_best = best > 0 ? times(eval, *steps) : 0;
  const bool saves_end = (config.final_state || best > 0) && !at_end;
  return std::min(kept, times(save, *steps) + of_best + (saves_end ? 1 : 0));
}

}  // namespace

uint64_t disk_needed(const PlacedModel& model, const TrainConfig& config,
                     std::optional<int64_t> steps) {
  // Of a state: manifest and directories; of a tensor, its entries in three headers.
  constexpr uint64_t kState = uint64_t{32} << 10, kEntries = 3 * 128;
  constexpr uint64_t kPart = 3 * (uint64_t{5} << 10);  // of a rank: three files, and their entries
  const auto ranks = static_cast<uint64_t>(model.plan.shards.ranks);
  uint64_t result = 0, state = kState;
  for (const Tensor& t : model.table.tensors()) {
    const auto size = static_cast<uint64_t>(t.size());
    if (config.method == Method::full || t.trainable) result += size * size_of(t.stored);
    if (!t.trainable) continue;
    state += size * 3 * sizeof(float) + 3 * t.name.size() + kEntries;  // master and two moments
    if (ranks > 1) state += 3 * (t.name.size() + 16);                  // once more in the manifest
  }
  if (ranks > 1) state += ranks * kPart;
  if (config.method == Method::lora && model.opened->checkpoint) {  // f32, with zeros of fillers
    result = adapter_bytes(model.table, model.opened->checkpoint->family(), config.adapter_layout);
  }
  const std::string states = config.out + "/state";
  const bool has_states = !config.out.empty() && file_info(states).kind == FileKind::directory;
  const auto there = has_states ? static_cast<int64_t>(list_directory(states).size()) : 0;
  const int64_t most = most_states(config, steps);
  const auto more = static_cast<uint64_t>(most > 0 ? std::max<int64_t>(1, most - there) : 0);
  return result + more * state;
}

void require_disk(const PlacedModel& model, const TrainConfig& config,
                  std::optional<int64_t> steps) {
  std::string place = config.out;  // or the nearest folder above that exists
  while (file_info(place).kind == FileKind::none) {
    const size_t slash = place.find_last_of('/');
    place = slash == std::string::npos ? "." : slash == 0 ? "/" : place.substr(0, slash);
  }
  const uint64_t need = disk_needed(model, config, steps), have = free_bytes(place);
  if (need > have) {
    throw storage_error(spelled(Setting::out, quoted(config.out)) + ": " + size_text(need) +
                        " are needed for saved states and the result, " + size_text(have) +
                        " are free");
  }
}

void require_folder_of_trace(const TrainConfig& config) {
  const size_t slash = config.trace.find_last_of('/');
  if (slash == std::string::npos || slash == 0) return;
  const std::string folder = config.trace.substr(0, slash);
  if (file_info(folder).kind == FileKind::directory) return;
  throw storage_error(spelled(Setting::trace, quoted(config.trace)) +
                      ": no such folder; make it first");
}

}  // namespace hearth
