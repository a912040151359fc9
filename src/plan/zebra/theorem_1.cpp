#include "plan/zebra/theorem_1.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/zebra/zebra_simulation.h"

namespace hearth {

namespace {

/// Of equal times one may be measured as slightly longer.
constexpr double kEqualTimes = 1e-6;
constexpr double kAlike = 1.25;

struct NamedTime {
  double seconds = 0;
  std::string what;
};

std::string text_of(const NamedTime& one) {
  return fmt::format("{} ({:.3g} ms)", one.what, 1e3 * one.seconds);
}

/// By seconds: the least or the most.
void keep(NamedTime& kept, double seconds, bool least, const std::string& what) {
  if (kept.what.empty() || (least ? seconds < kept.seconds : seconds > kept.seconds)) {
    kept = {seconds, what};
  }
}

void require(const NamedTime& longer, const NamedTime& shorter, double factor, const char* text,
             Theorem1& theorem) {
  if (longer.seconds <= shorter.seconds * factor * (1 + kEqualTimes)) return;
  theorem.fails.push_back(std::string(text) + ": " + text_of(longer) + ", and " + text_of(shorter));
}

}  // namespace

namespace {

/// Of each phase.
struct ZebraExtremes {
  NamedTime least[2], most[2];
  void add(const char* what, size_t layer, const ZebraTime& time) {
    for (const int phase : {0, 1}) {
      const double seconds = phase == 0 ? time.forward : time.backward;
      const std::string name =
          fmt::format("{} {} of layer {}", what, phase == 0 ? "forward" : "backward", layer);
      keep(least[phase], seconds, true, name);
      keep(most[phase], seconds, false, name);
    }
  }
};

}  // namespace

Theorem1 check_theorem_1(const ZebraTimes& times, const ExpertShift& shift) {
  ZebraExtremes attention, experts, rows;
  for (size_t at = 0; at < times.layers.size(); ++at) {
    const auto layer = static_cast<int32_t>(at);
    attention.add("attention", at, times.stages[at]);
    experts.add("experts", at, experts_there(times, layer, moved_of(shift, layer)));
    rows.add("rows out", at, times.layers[at].out);
    rows.add("rows back", at, times.layers[at].back);
  }
  Theorem1 theorem;
  for (const ZebraExtremes* of : {&attention, &experts}) {
    for (const int phase : {0, 1}) {
      require(of->most[phase], of->least[phase], kAlike, "layers differ by more than a quarter",
              theorem);
    }
  }
  NamedTime shortest;
  for (const int phase : {0, 1}) {
    NamedTime& least = attention.least[phase];
    // Forward and backward of the last stage follow each other at once.
    keep(least, times.stages.back().total(), true, "the head");
    keep(shortest, least.seconds, true, least.what);
    require(experts.most[phase], least, 1, "experts take longer than attention", theorem);
  }
  for (const int phase : {0, 1}) {
    require(rows.most[phase], shortest, 1, "rows travel longer than attention takes", theorem);
  }
  if (std::ranges::any_of(shift, [](int32_t moved) { return moved > 0; })) {
    theorem.fails.emplace_back("attention ranks compute experts, too");
  }
  return theorem;
}

}  // namespace hearth
