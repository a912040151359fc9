#include "budget/peak_line.h"

namespace hearth {

uint64_t sum_of(const std::vector<MemoryLine>& lines) {
  uint64_t total = 0;
  for (const MemoryLine& line : lines) total += line.bytes;
  return total;
}

void set_peak(PlaceLines& host, uint64_t before) {
  std::erase_if(host.lines,
                [](const MemoryLine& line) { return line.id.use == MemoryUse::opening; });
  host.peak = sum_of(host.lines);
  if (before <= host.peak) return;
  host.lines.push_back(
      {{MemoryUse::opening},
       "before the run, at its peak",
       before - host.peak,
       "measured: what opening, measuring and planning took beyond all other lines"});
  host.peak = before;
}

uint64_t bytes_of(const PlaceLines& place, MemoryUse use) {
  uint64_t bytes = 0;
  for (const MemoryLine& line : place.lines) bytes += line.id.use == use ? line.bytes : 0;
  return bytes;
}

}  // namespace hearth
