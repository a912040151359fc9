// What a run of several logical shards or ranks costs beside the tasks that one rank alone has:
// sums of gradients, bytes between ranks, cores that ranks share. Pure; no clock.
#pragma once

#include <cstdint>
#include <string>

#include "comm/owners.h"
#include "device/link_rate.h"
#include "plan/rank_links.h"
#include "plan/schedule.h"

namespace hearth {

struct RankCosts {
  RankShards shards;
  Owners owners;  // of blocks; empty with one rank
  RankLinks links;
  std::string links_basis;  // where the rates of the links are from, for people
  /// Bytes that sums read and write per second; 0: they cost nothing.
  double sweep_bytes_per_s = 0;
  int64_t weight_bytes = 4;  // of an element that owners give to all ranks
  /// How much longer tasks take beside those of the ranks on the same cores.
  double products = 1, sweeps = 1;

  /// What ranks tell each other around the tasks of a step: to begin, and what became of it.
  double around_tasks_s() const;
};

/// The routed rows of a task's micro-batches at a rank, evenly spread over the experts of a layer.
struct RoutedRows {
  double bytes = 0;
  int64_t experts = 1;
};
RoutedRows routed_rows(const ModelSpec& spec, double tokens);

/// Bytes of a block's weights on their way to a rank that fetches them.
double fetched_bytes(const RankCosts& costs, const ParameterTable& table, BlockId block);
/// Whether a block's weights travel compressed. A layer's experts have equally many receivers.
bool is_wired(const RankCosts& costs, const ParameterTable& table, BlockId block);
/// Bytes of a block's weights on their way from its owner to one rank; compressed, those of the first
/// ratio (ExpertWire::ratios), whose error nobody knows before the run.
double given_bytes(const RankCosts& costs, const ParameterTable& table, BlockId block);
/// Of a task that gives experts compressed: elements of their layer's shared expert, else 0.
double shared_expert_elements(const Task& task, const RankCosts& costs,
                              const ParameterTable& table);
/// Operations of ranks that a task of a kind that talks consists of (runtime/wire_experts.h).
int32_t operations_of(const Task& task, const RankCosts& costs, const ParameterTable& table);

/// Bytes that a task of a kind that talks sends between ranks. All ranks have this task.
Traffic traffic_of(const Task& task, const RankCosts& costs, const ParameterTable& table,
                   const RoutedRows& rows = {});
/// Bytes that a task reads and writes for sums over shards, of the rank that has most to do.
double swept_bytes(const Task& task, const RankCosts& costs, const ParameterTable& table);
/// Seconds in which this rank's devices and its host pass each other what a task of a kind that talks
/// sends, if their links are free. `links`: by place, with rates where they have a limit.
double staged_seconds(const Schedule& schedule, const Task& task, const RankCosts& costs,
                      const ParameterTable& table, std::span<const LinkRates> links);
/// Bytes that a rank reads and writes to move messages: those of threads are copies in memory, made
/// by all ranks together.
double copied_bytes(const Traffic& traffic, const RankShards& shards);

}  // namespace hearth
