#include "budget/plan_grade.h"

#include <algorithm>

#include "base/error.h"

namespace hearth {

namespace {

/// Fills the lines of an arena. The lines share the arena: the last line takes the rest.
void grade_arena(PlaceLines& place, const MeasuredArena& arena) {
  uint64_t left = arena.bytes;
  MemoryLine* last = nullptr;
  for (MemoryLine& line : place.lines) {
    if (line.id != arena.id) continue;
    line.measured = std::min(left, line.bytes);
    left -= *line.measured;
    last = &line;
  }
  if (last != nullptr) *last->measured += left;
}

/// The measured bytes of a line that is not an arena; nullopt for arenas.
std::optional<uint64_t> measured_of(const MemoryLine& line, const MeasuredMemory& measured,
                                    const std::vector<uint64_t>& sums) {
  switch (line.id.use) {
    case MemoryUse::program:
    case MemoryUse::data:
    case MemoryUse::opening:
    case MemoryUse::tables:
    case MemoryUse::result:
    case MemoryUse::staging: return line.bytes;  // measured when planned; pinned, so resident
    case MemoryUse::reading: return measured.read_buffers.value_or(line.bytes);
    case MemoryUse::saving: return std::min(measured.saving, line.bytes);
    case MemoryUse::ranks: return measured.ranks;
    case MemoryUse::schedules: return measured.schedules;
    case MemoryUse::reached: return sums[static_cast<size_t>(line.id.of)];
    case MemoryUse::parameters:
    case MemoryUse::activations:
    case MemoryUse::scratch:
    case MemoryUse::sums:
    case MemoryUse::slots:
    case MemoryUse::predictor:
    case MemoryUse::allowance: return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::vector<PlaceLines> graded(const Plan& plan, const MeasuredMemory& measured) {
  std::vector<PlaceLines> places = plan.places;
  std::vector<uint64_t> sums(places.size());
  for (const MeasuredArena& arena : measured.arenas) {
    const auto place = static_cast<size_t>(arena.place);
    HEARTH_CHECK(place < places.size(), "plan: memory of a place that it does not have");
    grade_arena(places[place], arena);
    sums[place] += arena.bytes;
  }
  for (size_t place = 1; place < places.size(); ++place) places[place].measured_peak = sums[place];
  PlaceLines& host = places[kHostPlace];
  uint64_t sum = sums[kHostPlace];
  for (MemoryLine& line : host.lines) {
    const std::optional<uint64_t> bytes = measured_of(line, measured, sums);
    if (!bytes) continue;
    line.measured = bytes;
    sum += *bytes;
  }
  for (MemoryLine& line : host.lines) {
    if (line.id.use != MemoryUse::allowance) continue;
    line.measured = measured.peak - std::min(measured.peak, sum);
  }
  host.measured_peak = measured.peak;
  return places;
}

}  // namespace hearth
