// Memory of a plan by place: what is short, and what a run measured.
#include <algorithm>

#include "base/error.h"
#include "budget/plan_lines.h"
#include "budget/run_plan.h"

namespace hearth {

namespace {

/// Fills the lines of a place that an arena stands for.
void grade_arena(PlacePlan& place, const MeasuredArena& arena) {
  // The lines of an arena share it: what the last of them has is the arena less the others.
  uint64_t left = arena.bytes;
  MemoryLine* last = nullptr;
  for (MemoryLine& line : place.lines) {
    if (line.name != arena.name && !line.name.starts_with(arena.name + ":")) continue;
    line.measured = std::min(left, line.bytes);
    left -= *line.measured;
    last = &line;
  }
  if (last != nullptr) *last->measured += left;
}

}  // namespace

std::vector<const Schedule*> RunPlan::lists() const {
  std::vector<const Schedule*> result;
  if (train) result.push_back(&train->schedule);
  if (eval) result.push_back(&*eval);
  if (decode) result.push_back(&*decode);
  return result;
}

std::optional<Place> RunPlan::short_place() const {
  for (size_t place = 0; place < places.size(); ++place) {
    if (!places[place].fits()) return static_cast<Place>(place);
  }
  return std::nullopt;
}

void RunPlan::grade(const MeasuredMemory& measured) {
  std::vector<uint64_t> sums(places.size());
  for (const MeasuredArena& arena : measured.arenas) {
    const auto place = static_cast<size_t>(arena.place);
    HEARTH_CHECK(place < places.size(), "plan: memory of a place that it has not");
    grade_arena(places[place], arena);
    sums[place] += arena.bytes;
  }
  for (size_t place = 1; place < places.size(); ++place) places[place].measured_peak = sums[place];
  PlacePlan& host = places[kHostPlace];
  uint64_t& sum = sums[kHostPlace];
  for (size_t place = 1; place < places.size(); ++place) {
    for (MemoryLine& line : host.lines) {
      if (line.name != memory_line_of(places[place].name)) continue;
      line.measured = sums[place];
      sum += sums[place];
    }
  }
  for (MemoryLine& line : host.lines) {
    if (line.name == kProgram || line.name == kData) line.measured = line.bytes;
    if (line.name == kLists) line.measured = measured.lists;
    if (line.name == kReading) line.measured = measured.read_buffers;
    if (line.name == kSaving) line.measured = measured.saving;
    if (line.name == kStaging) line.measured = line.bytes;  // pinned, so resident
    if (line.name == kProgram || line.name == kData || line.name == kLists ||
        line.name == kReading || line.name == kSaving || line.name == kStaging) {
      sum += *line.measured;
    }
  }
  for (MemoryLine& line : host.lines) {
    if (line.name == kAllowance) line.measured = measured.peak - std::min(measured.peak, sum);
  }
  host.measured_peak = measured.peak;
}

std::string whole_mebibytes(uint64_t bytes) {
  return std::to_string((bytes >> 20) + (bytes % (uint64_t{1} << 20) > 0 ? 1 : 0));
}

std::string what_is_missing(const RunPlan& plan) {
  std::string text;
  for (size_t place = 0; place < plan.places.size(); ++place) {
    const PlacePlan& of = plan.places[place];
    if (of.fits()) continue;
    text += text.empty() ? "the plan needs " : ", and ";
    text += whole_mebibytes(of.peak) + " MiB of " +
            (place == kHostPlace ? std::string("host memory") : "the memory of " + of.name) +
            " and " + whole_mebibytes(of.budget) + " MiB may be used";
  }
  return text;
}

void require_fit(const RunPlan& plan) {
  if (plan.fits()) return;
  throw usage_error(what_is_missing(plan) + "; a smaller --micro-batch, --seq-len or " +
                    "--max-new-tokens needs less");
}

}  // namespace hearth
