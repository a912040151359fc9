// What is predicted of a group of micro-batches with zebra.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plan/zebra/theorem_1.h"
#include "plan/zebra/zebra_simulation.h"

namespace hearth {

/// What the same ranks would take with `ep`.
struct EpBeside {
  double step_s = 0;
  int32_t shards = 1;  // logical ones, of that plan
};

struct ZebraForecast {
  ZebraTimes times;
  int32_t micro_batches = 1;  // of a group
  ExpertShift shift;          // empty: no expert moves
  Theorem1 theorem;
  ZebraRun run;                         // with the order and the shift that were taken
  double theorem_1_s = 0;               // with the order of Theorem 1
  double unshifted_s = 0;               // with that, too, and without a shift
  std::optional<EpBeside> ep = {};      // none: they cannot
  std::string faster_expert_rank = {};  // a warning: it would be faster at attention; empty: none
};

}  // namespace hearth
