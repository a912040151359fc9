// What kinds of tasks cost, and by which size. Cost tables, predictions, pacers and plans read it
// here alone, so a new kind of task needs one line.
#pragma once

#include "layers/body.h"

namespace hearth {

struct KindCosts {
  bool in_tables = true;       // cost tables have times for it
  bool by_parameters = false;  // its size is a number of parameters, not of tokens
  /// How often its ops go over the rows that it reads and writes, besides its products: norms,
  /// rope, residuals and the like read what another op of the task wrote.
  double passes = 0;
  bool sweeps = false;     // memory bounds it, not products
  bool ends_step = false;  // plans count it as "update"
  bool talks = false;      // moves bytes between ranks (plan/rank_costs.h)
};

constexpr KindCosts kind_costs(TaskKind kind) {
  switch (kind) {
    case TaskKind::attention:
    case TaskKind::head: return {.passes = 2};
    case TaskKind::mlp: return {.passes = 1};
    case TaskKind::embed:
    case TaskKind::dispatch:
    case TaskKind::combine: return {.passes = 1, .sweeps = true};
    case TaskKind::experts: break;  // passes are counted in the experts' rate
    case TaskKind::norm:
    case TaskKind::update: return {.by_parameters = true, .sweeps = true, .ends_step = true};
    case TaskKind::clip: return {.in_tables = false, .ends_step = true};
    case TaskKind::sample:  // at most layers/router_sample.h's kSampledTokens rows
    case TaskKind::foretell:
    case TaskKind::decide: return {.in_tables = false};
    // Before a step is routed, no expert is divided along its width.
    case TaskKind::pack:
    case TaskKind::join: return {.in_tables = false, .sweeps = true};
    case TaskKind::divided: return {.in_tables = false};
    case TaskKind::copy: return {.in_tables = false};  // its link costs
    case TaskKind::shard: return {.in_tables = false, .sweeps = true, .ends_step = true};
    case TaskKind::send_counts:
    case TaskKind::send_rows:
    case TaskKind::return_rows: return {.in_tables = false, .talks = true};
    case TaskKind::fetch: return {.in_tables = false, .talks = true};
    case TaskKind::reduce:
    case TaskKind::gather:
    case TaskKind::give:
      return {.in_tables = false, .sweeps = true, .ends_step = true, .talks = true};
  }
  return {};
}

/// Whether tables have times for tasks of this kind.
constexpr bool has_costs(TaskKind kind) { return kind_costs(kind).in_tables; }

}  // namespace hearth
