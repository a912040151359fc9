#include "runtime/shared_parameters.h"

#include <algorithm>

#include "base/arena.h"
#include "comm/shard_sum.h"
#include "layers/kinds.h"
#include "model/parameter_access.h"
#include "model/parameter_memory.h"

namespace hearth {

namespace {

/// Elements of the gradients of a block, which are neighbours in their arena, with what lies between
/// them. That is zero, and sums keep it so.
int64_t gradient_elements(const ParameterTable& table, BlockId block) {
  int64_t elements = 0;
  for (TensorId id = table.block(block).begin; id < table.block(block).end; ++id) {
    const Tensor& t = table.tensor(id);
    if (!t.trainable) continue;
    const auto unit = static_cast<size_t>(kTensorAlignment);
    elements = static_cast<int64_t>(align_up(static_cast<size_t>(elements), unit)) + t.size();
  }
  return elements;
}

/// The gradients of a block as one view.
View gradients_of(const ParameterTable& table, BlockId block) {
  for (TensorId id = table.block(block).begin; id < table.block(block).end; ++id) {
    const View first = table.gradient(id);
    if (first) return {first.raw(), first.dtype, 1, gradient_elements(table, block)};
  }
  HEARTH_CHECK(false, "shared parameters: a block without gradients");
  return {};
}

ConstBytes sent(const View& view) {
  return {static_cast<const std::byte*>(view.data), view.bytes()};
}
Bytes received(const View& view) { return {static_cast<std::byte*>(view.raw()), view.bytes()}; }

/// The copies of a block that only its owner has after a step, run by run.
std::vector<View> kept_by_owner(const ParameterTable& table, BlockId block) {
  std::vector<View> copies;
  for (const UpdateRun& run : update_runs(table, block, block + 1)) {
    copies.push_back(run.moment1);
    copies.push_back(run.moment2);
    if (run.working) copies.push_back(run.master);
  }
  return copies;
}

}  // namespace

Owners owners_of(const ParameterTable& table, const RankShards& shards) {
  const ShardMap map(shards.shards, shards.ranks);
  std::vector<OwnedBlock> blocks;
  for (BlockId block = 0; block < std::ssize(table.blocks()); ++block) {
    blocks.push_back({gradient_elements(table, block), shares_of_all(map)});
  }
  return choose_owners(map, std::move(blocks));
}

void own_blocks(ParameterTable& table, const RankShards& shards) {
  const Owners owners = owners_of(table, shards);
  for (BlockId block = 0; block < std::ssize(table.blocks()); ++block) {
    const bool owned = owners.owner(block) == shards.rank;
    table.set_owned(block, owned, owned || shards.rank == 0);  // rank 0 saves all
  }
}

int32_t gradients_aside(const RankShards& shards) {
  return most_partial_sums(shards.shards, shards.range()) - 1;
}

size_t staging_bytes(const Schedule& schedule, const ParameterTable& table,
                     const RankShards& shards) {
  if (shards.ranks == 1) return 0;
  const Owners owners = owners_of(table, shards);
  size_t most = 0;
  for (const Task& task : schedule.tasks) {
    if (task.kind != TaskKind::reduce) continue;
    std::vector<SharedGradient> gradients;
    for (const BlockId block : numbers_of(task.blocks)) {
      gradients.push_back({block, DType::f32, gradient_elements(table, block)});
    }
    most = std::max(most, staging_bytes(owners, shards.rank, gradients));
  }
  return most;
}

SharedParameters::SharedParameters(const RankShards& shards, ParameterTable& table, Memory memory,
                                   RankTeam* team)
    : shards_(shards),
      table_(table),
      memory_(std::move(memory)),
      team_(team),
      owners_(owners_of(table, shards)) {
  HEARTH_CHECK(team == nullptr ? shards.ranks == 1
                               : shards.ranks == team->size() && shards.rank == team->rank(),
               "shared parameters: a plan for other ranks");
}

std::vector<BlockId> SharedParameters::trained_blocks() const {
  std::vector<BlockId> blocks;
  for (BlockId block = 0; block < std::ssize(table_.blocks()); ++block) {
    if (table_.is_trained(block)) blocks.push_back(block);
  }
  return blocks;
}

void SharedParameters::end_shard(const OpSet& ops, Stream& stream, Place place, int32_t shard) {
  const auto at = static_cast<size_t>(place);
  const std::span<std::byte> arena = memory_.gradients[at];
  // An arena is a whole number of rows (parameter_arenas).
  constexpr size_t kRow = sizeof(float) * 2 * kTensorAlignment;
  const auto rows = static_cast<int64_t>(arena.size() / kRow);
  const auto view = [&](std::byte* data) {
    return View(data, DType::f32, rows, static_cast<int64_t>(kRow / sizeof(float)));
  };
  std::vector<View> aside;
  for (std::byte* const data : memory_.aside[at]) aside.push_back(view(data));
  const ShardRange range = shards_.range();
  const ShardSum sum(ops, shards_.shards, range, view(arena.data()), aside);
  sum.end(stream, range.begin + shard);
}

void SharedParameters::reduce(const OpSet& ops, Stream& stream, std::span<const BlockId> blocks) {
  std::vector<SharedGradient> shared;
  for (const BlockId block : blocks) {
    const auto at = static_cast<size_t>(table_.block(block).place);
    const View gradient = gradients_of(table_, block);
    const auto offset = static_cast<std::byte*>(gradient.raw()) - memory_.gradients[at].data();
    std::vector<View> aside;
    for (std::byte* const data : memory_.aside[at]) {
      aside.emplace_back(data + offset, gradient.dtype, 1, gradient.cols);
    }
    SharedGradient one{block, gradient.dtype, gradient.cols};
    for (const PartialSum& partial :
         ShardSum(ops, shards_.shards, shards_.range(), gradient, aside).sums()) {
      one.mine.push_back(partial.sum);
    }
    if (owns(block)) one.sum = gradient;
    shared.push_back(std::move(one));
  }
  reduce_to_owners(team_->comm(), team_->next(), ops, stream, owners_, shared, memory_.staging);
}

void SharedParameters::gather_norms(View norms) {
  std::vector<int32_t> owner_of;
  for (const Tensor& t : table_.tensors()) {
    if (t.trainable) owner_of.push_back(owners_.owner(t.block));
  }
  hearth::gather_norms(team_->comm(), team_->next(), owner_of, norms);
}

void SharedParameters::give(Stream& stream, std::span<const BlockId> blocks) {
  std::vector<SharedCopy> copies;
  for (const BlockId block : blocks) {
    for (const UpdateRun& run : update_runs(table_, block, block + 1)) {
      copies.push_back({block, run.working ? run.working : run.master});
      for (TensorId id = run.begin; !owns(block) && id < run.end; ++id) {
        table_.mark_updated(id, static_cast<bool>(run.working));
      }
    }
  }
  give_to_users(team_->comm(), team_->next(), stream, owners_, copies);
}

void SharedParameters::spread() {
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  for (const BlockId block : trained_blocks()) {
    for (const UpdateRun& run : update_runs(table_, block, block + 1)) {
      for (int32_t rank = 1; rank < shards_.ranks; ++rank) {
        const bool moments = owners_.owner(block) == rank;
        for (const View& copy : {run.master, run.moment1, run.moment2}) {
          if (!moments && copy.data != run.master.data) continue;
          if (shards_.rank == 0) out.push_back({rank, sent(copy)});
          if (shards_.rank == rank) in.push_back({0, received(copy)});
        }
      }
    }
  }
  team_->comm().wait_for(team_->comm().transfer(team_->next(), std::move(out), std::move(in)));
  if (shards_.rank > 0) refresh_working_copies(table_);
}

void SharedParameters::collect() {
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  for (const BlockId block : trained_blocks()) {
    const int32_t owner = owners_.owner(block);
    if (owner == 0) continue;
    for (const View& copy : kept_by_owner(table_, block)) {
      if (shards_.rank == owner) out.push_back({0, sent(copy)});
      if (shards_.rank == 0) in.push_back({owner, received(copy)});
    }
  }
  team_->comm().wait_for(team_->comm().transfer(team_->next(), std::move(out), std::move(in)));
}

}  // namespace hearth
