#include "budget/rank_memory.h"

#include <algorithm>
#include <numeric>

#include "budget/peak_line.h"
#include "budget/plan_fit.h"

namespace hearth {

namespace {

/// The first line of a use; null: there is none.
template <class Lines>
auto* line_of(Lines& lines, MemoryUse use) {
  const auto line =
      std::ranges::find_if(lines, [use](const MemoryLine& of) { return of.id.use == use; });
  return line == lines.end() ? nullptr : &*line;
}

}  // namespace

bool is_of_rank(MemoryUse use) {
  return use == MemoryUse::parameters || use == MemoryUse::activations ||
         use == MemoryUse::scratch || use == MemoryUse::sums || use == MemoryUse::schedules ||
         use == MemoryUse::tables || use == MemoryUse::reached || use == MemoryUse::staging;
}

std::vector<PlaceLines> memory_of_rank(const Plan& plan, bool is_process) {
  std::vector<PlaceLines> places = plan.places;
  PlaceLines& host = places[kHostPlace];
  if (is_process) return places;
  std::erase_if(host.lines, [](const MemoryLine& line) { return !is_of_rank(line.id.use); });
  host.peak = sum_of(host.lines);
  return places;
}

void share_reading(Plan& plan, const Plan& other) {
  auto* const line = line_of(plan.places[kHostPlace].lines, MemoryUse::reading);
  const auto* const theirs = line_of(other.places[kHostPlace].lines, MemoryUse::reading);
  if (theirs->bytes > line->bytes) *line = *theirs;
}

void take_rank_memory(Plan& plan, std::vector<std::vector<PlaceLines>> others) {
  plan.others = std::move(others);
  PlaceLines& host = plan.places[kHostPlace];
  MemoryLine* const ranks = line_of(host.lines, MemoryUse::ranks);
  if (ranks == nullptr) return;
  const uint64_t before = bytes_of(host, MemoryUse::opening) > 0 ? host.peak : 0;
  ranks->bytes = 0;
  for (const std::vector<PlaceLines>& of : plan.others) ranks->bytes += of[kHostPlace].peak;
  set_peak(host, before);
}

std::string what_ranks_miss(const Plan& plan) {
  for (size_t i = 0; i < plan.others.size(); ++i) {
    Plan of;
    of.places = plan.others[i];
    of.places[kHostPlace].peak = 0;  // the host's memory is that of all ranks
    const std::string missing = what_is_missing(of);
    if (!missing.empty()) return "rank " + std::to_string(i + 1) + ": " + missing;
  }
  return {};
}

std::vector<PlaceLines> memory_by_rank(const Plan& plan, std::vector<PlaceLines> of_leader,
                                       const std::vector<uint64_t>& measured) {
  if (plan.shards.ranks == 1) return of_leader;
  PlaceLines& host = of_leader[kHostPlace];
  if (const MemoryLine* const ranks = line_of(host.lines, MemoryUse::ranks); ranks != nullptr) {
    host.peak -= std::min(host.peak, ranks->bytes);
    if (host.measured_peak && ranks->measured) {
      *host.measured_peak -= std::min(*host.measured_peak, *ranks->measured);
    }
    std::erase_if(host.lines,
                  [](const MemoryLine& line) { return line.id.use == MemoryUse::ranks; });
  }
  std::vector<PlaceLines> all;
  const auto add = [&](std::vector<PlaceLines> places, size_t rank) {
    for (PlaceLines& place : places) {
      place.budget.name = std::to_string(rank) + "/" + place.budget.name;
      all.push_back(std::move(place));
    }
  };
  add(std::move(of_leader), 0);
  for (size_t i = 0; i < plan.others.size(); ++i) {
    std::vector<PlaceLines> places = plan.others[i];
    if (i < measured.size()) places[kHostPlace].measured_peak = measured[i];
    add(std::move(places), i + 1);
  }
  return all;
}

}  // namespace hearth
