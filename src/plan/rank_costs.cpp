#include "plan/rank_costs.h"

#include <algorithm>
#include <vector>

namespace hearth {

namespace {

constexpr double kClear = 4, kCopy = 8, kAdd = 12;  // bytes read and written for an f32
// The same for the shared expert, a frame with three passes, and what a frame is decoded to.
constexpr double kEncode = kAdd + 3 * kCopy, kDecode = kCopy;

double trained_elements(const ParameterTable& table, BlockId block) {
  double elements = 0;
  for (TensorId id = table.block(block).begin; id < table.block(block).end; ++id) {
    if (table.tensor(id).trainable) elements += static_cast<double>(table.tensor(id).size());
  }
  return elements;
}

/// Tensors whose norm each rank knows.
std::vector<double> norms_by_rank(const RankCosts& costs, const ParameterTable& table) {
  std::vector<double> norms(static_cast<size_t>(costs.shards.ranks));
  for (const Tensor& t : table.tensors()) {
    if (t.trainable) ++norms[static_cast<size_t>(costs.owners.owner(t.block))];
  }
  return norms;
}

/// What the end of a shard of a range adds, puts aside and clears (comm/shard_sum.h), per gradient.
double shard_end_bytes(int32_t shards, ShardRange range, int32_t number) {
  const int32_t shard = range.begin + number;
  const auto sums = [&](int32_t end) {
    return static_cast<double>(subtrees_of(shards, {range.begin, end}).size());
  };
  const double adds = sums(shard) + 1 - sums(shard + 1);
  return kAdd * adds + (shard + 1 == range.end ? 0 : kCopy + kClear);
}

/// What joins the sums of an expert that ranks share, one of the shards of each rank of the group.
double join_bytes(const RankCosts& costs, BlockId block) {
  const RankShards& shards = costs.shards;
  double joins = 0;
  for (int32_t guest = 0; guest < shards.group().ranks; ++guest) {
    if (!shards.group().has_tokens(guest)) continue;
    const ShardRange range = shards.map().of(shards.member(guest));
    joins += static_cast<double>(subtrees_of(shards.shards, range).size());
  }
  for (const BlockShare& share : costs.owners.shares(block)) {
    if (share.rank != shards.rank) continue;
    joins -= static_cast<double>(subtrees_of(shards.shards, share.shards).size());
  }
  return joins * (kAdd + kClear);
}

/// Whether a rank has sums of other ranks' shards of a block, too.
bool is_shared(const RankCosts& costs, BlockId block) {
  const RankShards& shards = costs.shards;
  std::vector<ShardRange> own;
  for (const BlockShare& share : costs.owners.shares(block)) {
    if (share.rank == shards.rank) own.push_back(share.shards);
  }
  return !own.empty() && !(own.size() == 1 && shards.computes() && own[0] == shards.range());
}

/// Of a rank, what the end of a shard takes of a block.
double end_bytes(const RankCosts& costs, BlockId block, int32_t number) {
  const RankShards& shards = costs.shards;
  if (shards.ranks > 1 && !costs.owners.uses(block, shards.rank)) return 0;
  if (shards.ranks == 1 || !is_shared(costs, block)) {
    return shards.computes() ? shard_end_bytes(shards.shards, shards.range(), number) : 0;
  }
  double bytes = 0;
  for (int32_t guest = 0; guest < shards.group().ranks; ++guest) {
    if (!shards.group().has_tokens(guest)) continue;
    bytes += shard_end_bytes(shards.shards, shards.map().of(shards.member(guest)), number);
  }
  return bytes + (number + 1 == shards.count() ? join_bytes(costs, block) : 0);
}

/// Of a rank that has one shard, and shared experts at the host: `reduce` joins their sums.
double joined_in_reduce(const RankCosts& costs, const ParameterTable& table, BlockId block) {
  const bool joins = costs.shards.count() == 1 && table.block(block).place == kHostPlace &&
                     is_shared(costs, block);
  return joins ? join_bytes(costs, block) : 0;
}

/// By rank: what it adds of gradients that it owns, and clears of those that it does not.
void add_sums(BlockId block, double elements, const Owners& owners, std::vector<double>& bytes) {
  const std::vector<BlockShare> subtrees = owners.subtrees(block);
  const auto owner = static_cast<size_t>(owners.owner(block));
  bytes[owner] += kAdd * elements * static_cast<double>(subtrees.size() - 1);
  for (const BlockShare& subtree : subtrees) {
    bytes[static_cast<size_t>(subtree.rank)] += kClear * elements;
  }
  bytes[owner] -= kClear * elements;  // its sum stays
}

}  // namespace

double RankCosts::around_tasks_s() const {
  if (shards.ranks == 1) return 0;
  return 2 * (links.latency_s() + links.busy_s(Traffic(shards.ranks)));
}

RoutedRows routed_rows(const ModelSpec& spec, double tokens) {
  const int64_t vectors = spec.experts_per_token * spec.hidden;
  return {sizeof(float) * tokens * static_cast<double>(vectors), spec.experts};
}

namespace {

/// A round of all groups: the guest of each rank sends its rows there, or gets them back.
void add_round(const Task& task, const RankShards& shards, const RoutedRows& rows,
               Traffic& traffic) {
  const ExpertRanks own = shards.experts(task.layer);
  const int32_t round = own.round_of(task.part.place);
  for (int32_t rank = 0; rank < shards.ranks; ++rank) {
    ExpertRanks group = own;
    group.position = shards.position_of(rank);
    const int32_t guest = group.guest_of(round);
    if (!group.serves(guest)) continue;
    const auto [begin, end] = group.own(rows.experts);
    const double bytes = rows.bytes * (end - begin) / static_cast<double>(rows.experts);
    const int32_t other = shards.member(rank, guest);
    const bool back = task.kind == TaskKind::return_rows;
    traffic.add(back ? rank : other, back ? other : rank, bytes);
  }
}

}  // namespace

bool is_wired(const RankCosts& costs, const ParameterTable& table, BlockId block) {
  const ExpertWire& wire = costs.shards.wire;
  if (!wire.compresses() || table.block(block).kind != BlockKind::expert) return false;
  if (!table.is_trained(block)) return false;
  return wire.owners_decode() || costs.owners.users(block).size() > 1;
}

double given_bytes(const RankCosts& costs, const ParameterTable& table, BlockId block) {
  const double dense = static_cast<double>(costs.weight_bytes) * trained_elements(table, block);
  return is_wired(costs, table, block) ? dense / costs.shards.wire.ratios().front() : dense;
}

double fetched_bytes(const RankCosts& costs, const ParameterTable& table, BlockId block) {
  double bytes = 0;
  for (TensorId id = table.block(block).begin; id < table.block(block).end; ++id) {
    const Tensor& t = table.tensor(id);
    const bool stored = !t.trainable && costs.weight_bytes == sizeof(float);
    const auto unit =
        stored ? static_cast<double>(size_of(t.stored)) : static_cast<double>(costs.weight_bytes);
    bytes += unit * static_cast<double>(t.size());
  }
  return bytes;
}

double shared_expert_elements(const Task& task, const RankCosts& costs,
                              const ParameterTable& table) {
  double elements = 0;
  for (const BlockUse& use : task.blocks) {
    for (BlockId block = use.begin; task.kind == TaskKind::give && block < use.end; ++block) {
      if (!is_wired(costs, table, block)) continue;
      elements = std::max(elements, trained_elements(table, block));
    }
  }
  return elements;
}

int32_t operations_of(const Task& task, const RankCosts& costs, const ParameterTable& table) {
  return shared_expert_elements(task, costs, table) > 0 ? 5 : 1;
}

Traffic traffic_of(const Task& task, const RankCosts& costs, const ParameterTable& table,
                   const RoutedRows& rows) {
  Traffic traffic(costs.shards.ranks);
  if (task.kind == TaskKind::send_rows || task.kind == TaskKind::return_rows) {
    add_round(task, costs.shards, rows, traffic);
    return traffic;
  }
  if (task.kind == TaskKind::gather) {
    const std::vector<double> norms = norms_by_rank(costs, table);
    for (int32_t from = 0; from < traffic.ranks(); ++from) {
      for (int32_t to = 0; to < traffic.ranks(); ++to) {
        traffic.add(from, to, 8 * norms[static_cast<size_t>(from)]);
      }
    }
  }
  const double piece = shared_expert_elements(task, costs, table) / traffic.ranks();
  for (int32_t from = 0; piece > 0 && from < traffic.ranks(); ++from) {
    for (int32_t to = 0; to < traffic.ranks(); ++to) {  // in fixed point, and the mean
      traffic.add(from, to, (4 + static_cast<double>(costs.weight_bytes)) * piece);
    }
  }
  for (const BlockUse& use : task.blocks) {
    for (BlockId block = use.begin; block < use.end; ++block) {
      const double elements = trained_elements(table, block);
      const int32_t owner = costs.owners.owner(block);
      if (task.kind == TaskKind::reduce) {
        for (const BlockShare& subtree : costs.owners.subtrees(block)) {
          traffic.add(subtree.rank, owner, 4 * elements);
        }
      } else if (task.kind == TaskKind::give) {
        for (const int32_t user : costs.owners.users(block)) {
          if (is_fetched(table, costs.owners, costs.shards, block, user)) continue;
          traffic.add(owner, user, given_bytes(costs, table, block));
        }
      } else if (task.kind == TaskKind::fetch) {
        for (const int32_t user : costs.owners.users(block)) {
          if (!is_fetched(table, costs.owners, costs.shards, block, user)) continue;
          traffic.add(owner, user, fetched_bytes(costs, table, block));
        }
      }
    }
  }
  return traffic;
}

double swept_bytes(const Task& task, const RankCosts& costs, const ParameterTable& table) {
  if (task.kind == TaskKind::shard) {
    double swept = 0;
    for (BlockId block = 0; block < std::ssize(table.blocks()); ++block) {
      if (table.block(block).place != task.place) continue;
      swept += trained_elements(table, block) * end_bytes(costs, block, task.layer);
    }
    return swept;
  }
  std::vector<double> bytes(static_cast<size_t>(costs.shards.ranks));
  for (const BlockUse& use : task.blocks) {
    for (BlockId block = use.begin; task.kind == TaskKind::reduce && block < use.end; ++block) {
      const double elements = trained_elements(table, block);
      add_sums(block, elements, costs.owners, bytes);
      bytes[static_cast<size_t>(costs.shards.rank)] +=
          elements * joined_in_reduce(costs, table, block);
    }
    for (BlockId block = use.begin; task.kind == TaskKind::give && block < use.end; ++block) {
      if (!is_wired(costs, table, block)) continue;
      const double elements = trained_elements(table, block);
      const int32_t owner = costs.owners.owner(block);
      bytes[static_cast<size_t>(owner)] += kEncode * elements;
      for (const int32_t user : costs.owners.users(block)) {
        const bool decodes = user != owner || costs.shards.wire.owners_decode();
        bytes[static_cast<size_t>(user)] += decodes ? kDecode * elements : 0;
      }
    }
  }
  return *std::ranges::max_element(bytes);
}

double staged_seconds(const Schedule& schedule, const Task& task, const RankCosts& costs,
                      const ParameterTable& table, std::span<const LinkRates> links) {
  const bool fetches = task.kind == TaskKind::fetch;
  if (task.kind != TaskKind::reduce && task.kind != TaskKind::give && !fetches) return 0;
  if (costs.shards.direct) return 0;
  double seconds = 0;
  const auto pass = [&](const LinkRate& link, double bytes) {
    seconds += link.latency_s + (link.bytes_per_s > 0 ? bytes / link.bytes_per_s : 0);
  };
  const int32_t rank = costs.shards.rank;
  for (const BlockUse& use : task.blocks) {
    for (BlockId block = use.begin; block < use.end; ++block) {
      const Place place = table.block(block).place;
      const bool used = schedule.is_device(place) && costs.owners.uses(block, rank);
      if (!used || static_cast<size_t>(place) >= links.size()) continue;
      const LinkRates& link = links[static_cast<size_t>(place)];
      const double elements = trained_elements(table, block);
      const bool owned = costs.owners.owner(block) == rank;
      if (fetches) {  // what comes crosses the link to the device in a copy task
        if (owned && is_sent(table, costs.owners, costs.shards, block)) {
          pass(link.out, fetched_bytes(costs, table, block));
        }
        continue;
      }
      if (task.kind == TaskKind::give) {
        if (!table.block(block).fetched)
          pass(owned ? link.out : link.in, static_cast<double>(costs.weight_bytes) * elements);
        continue;
      }
      for (const BlockShare& subtree : costs.owners.subtrees(block)) {
        if (subtree.rank == rank) pass(link.out, 4 * elements);
      }
      if (owned) pass(link.in, 4 * elements);
    }
  }
  return seconds;
}

double copied_bytes(const Traffic& traffic, const RankShards& shards) {
  return shards.are_threads ? 2 * traffic.total() / static_cast<double>(shards.ranks) : 0;
}

}  // namespace hearth
