#include "runtime/shared_parameters.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

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

/// The copies of a block that only its owner has after a step, run by run. `given`: `give` has brought
/// what products read to where they go.
std::vector<View> kept_by_owner(const ParameterTable& table, BlockId block, bool given) {
  std::vector<View> copies;
  for (const UpdateRun& run : update_runs(table, block, block + 1)) {
    copies.push_back(run.moment1);
    copies.push_back(run.moment2);
    if (run.working || !given) copies.push_back(run.master);
  }
  return copies;
}

/// The routed expert of a block, itself or the base of an adapter; null if it is of none.
const Block* expert_of(const ParameterTable& table, BlockId block) {
  const Block& own = table.block(block);
  const Block& base = own.kind == BlockKind::adapter ? table.block(own.base) : own;
  return base.kind == BlockKind::expert ? &base : nullptr;
}

/// How many experts each layer has.
std::map<int32_t, int64_t> experts_by_layer(const ParameterTable& table) {
  std::map<int32_t, int64_t> experts;
  for (const Block& block : table.blocks()) {
    if (block.kind == BlockKind::expert) ++experts[block.layer];
  }
  return experts;
}

/// f(block) of each block with gradients of this rank's experts, if ranks share experts.
template <class F>
void each_shared_expert(const ParameterTable& table, const Owners& owners, const RankShards& shards,
                        const F& f) {
  if (!shards.experts().divided()) return;
  for (BlockId block = 0; block < std::ssize(table.blocks()); ++block) {
    if (expert_of(table, block) == nullptr || !table.is_trained(block)) continue;
    if (owners.uses(block, shards.rank)) f(block);
  }
}

size_t gradient_bytes(const ParameterTable& table, BlockId block) {
  return align_up(static_cast<size_t>(gradient_elements(table, block)) * sizeof(float));
}

// Sums of a whole arena are rows of this many bytes (parameter_arenas).
constexpr size_t kRow = sizeof(float) * 2 * kTensorAlignment;

View rows_of_arena(std::byte* data, size_t bytes) {
  return {data, DType::f32, static_cast<int64_t>(bytes / kRow),
          static_cast<int64_t>(kRow / sizeof(float))};
}

}  // namespace

Owners owners_of(const ParameterTable& table, const RankShards& shards) {
  const ShardMap map = shards.map();
  const ExpertRanks ranks = shards.experts();
  const std::map<int32_t, int64_t> experts = experts_by_layer(table);
  std::vector<OwnedBlock> blocks;
  for (BlockId block = 0; block < std::ssize(table.blocks()); ++block) {
    const Block* const expert = expert_of(table, block);
    std::vector<BlockShare> shares;
    if (expert == nullptr || !ranks.divided()) {
      shares = shares_of_all(map);
    } else {
      const int32_t position = ranks.position_of(expert->expert, experts.at(expert->layer));
      shares = shards.attention_ranks > 0 ? shares_of_one(map, position)
                                          : shares_of_expert(map, ranks.ranks, position);
    }
    blocks.push_back({gradient_elements(table, block), std::move(shares)});
  }
  return choose_owners(shards.shards, shards.ranks, std::move(blocks));
}

void own_blocks(ParameterTable& table, const RankShards& shards) {
  const Owners owners = owners_of(table, shards);
  for (BlockId block = 0; block < std::ssize(table.blocks()); ++block) {
    const bool owned = owners.owner(block) == shards.rank;
    table.set_owned(block, owned, owned || shards.rank == 0);  // rank 0 saves all
    table.set_present(block, shards.rank == 0 || owners.uses(block, shards.rank));
  }
}

int32_t gradients_aside(const RankShards& shards) {
  return shards.computes() ? most_partial_sums(shards.shards, shards.range()) - 1 : 0;
}

size_t guest_gradient_bytes(const ParameterTable& table, const RankShards& shards) {
  size_t bytes = 0;
  each_shared_expert(table, owners_of(table, shards), shards,
                     [&](BlockId block) { bytes += gradient_bytes(table, block); });
  return align_up(bytes, kRow);
}

std::vector<int32_t> guest_gradients(const RankShards& shards) {
  std::vector<int32_t> copies(static_cast<size_t>(shards.experts().ranks));
  for (int32_t guest = 0; guest < std::ssize(copies); ++guest) {
    RankShards of = shards;
    of.rank = shards.first_of_group() + guest;
    if (!shards.experts().serves(guest)) continue;
    copies[static_cast<size_t>(guest)] = 1 + gradients_aside(of);
  }
  return copies;
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
  size_t offset = 0;
  each_shared_expert(table, owners_, shards, [&](BlockId block) {
    experts_.push_back({block, gradients_of(table, block), offset});
    offset += gradient_bytes(table, block);
  });
  guest_bytes_ = align_up(offset, kRow);
  std::ranges::sort(experts_, {}, [](const ExpertGradients& e) { return e.own.data; });
  const int32_t size = shards.experts().ranks;
  for (int32_t first = 0; size > 1 && first < shards.ranks; first += size) {
    std::vector<int32_t> ranks(static_cast<size_t>(size));
    std::iota(ranks.begin(), ranks.end(), first);
    const size_t count = experts().ways_apart() ? channels_.size() : 1;
    for (Channel& channel : std::span(channels_).first(count)) {
      std::unique_ptr<Communicator> comm = team->world().group(ranks);
      if (comm) channel.comm = std::move(comm);
    }
  }
}

void SharedParameters::exchange(Stream& stream, RowsGo go, std::span<const SentRows> out,
                                std::span<const ReceivedRows> in) {
  Channel& channel = channels_[experts().ways_apart() ? static_cast<size_t>(go) : 0];
  CommLabel& label = channel.label;
  if (label.step != team_->step()) label = {team_->step(), 0};
  std::vector<Outgoing> to;
  std::vector<Incoming> from;
  for (const SentRows& rows : out) {
    HEARTH_CHECK(rows.rows.contiguous(), "shared parameters: rows that are not contiguous");
    if (rows.rows.rows > 0) {
      to.push_back({rows.to, {static_cast<const std::byte*>(rows.rows.data), rows.rows.bytes()}});
    }
  }
  for (const ReceivedRows& rows : in) {
    if (rows.rows.rows > 0) from.push_back({rows.from, received(rows.rows)});
  }
  stream.synchronize();
  Communicator& comm = *channel.comm;
  comm.wait_for(comm.transfer({label.step, label.number++}, std::move(to), std::move(from)));
}

View SharedParameters::gradient_for(int32_t guest, View own) const {
  if (!own) return own;
  auto expert = std::ranges::upper_bound(experts_, own.data, std::less<>(),
                                         [](const ExpertGradients& e) { return e.own.data; });
  HEARTH_CHECK(expert != experts_.begin(), "shared parameters: a gradient of no expert");
  --expert;
  const auto within =
      static_cast<const std::byte*>(own.data) - static_cast<const std::byte*>(expert->own.data);
  HEARTH_CHECK(static_cast<size_t>(within) < expert->own.bytes(),
               "shared parameters: a gradient of no expert");
  std::byte* const of_guest = memory_.guests[static_cast<size_t>(guest)].front();
  return {of_guest + expert->offset + within, own.dtype, own.rows, own.cols, own.stride};
}

ShardRange SharedParameters::range_of_guest(int32_t guest) const {
  return shards_.map().of(shards_.first_of_group() + guest);
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
  const auto end = [&](ShardRange range, size_t bytes, std::byte* gradients,
                       std::span<std::byte* const> aside) {
    std::vector<View> views;
    for (std::byte* const data : aside) views.push_back(rows_of_arena(data, bytes));
    ShardSum(ops, shards_.shards, range, rows_of_arena(gradients, bytes), views)
        .end(stream, range.begin + shard);
  };
  const std::span<std::byte> arena = memory_.gradients[at];
  if (arena.empty()) return;  // nothing that is trained is here
  if (shards_.computes()) end(shards_.range(), arena.size(), arena.data(), memory_.aside[at]);
  if (place != kHostPlace) return;
  const size_t bytes = guest_bytes_;
  for (int32_t guest = 0; guest < std::ssize(memory_.guests); ++guest) {
    const std::vector<std::byte*>& of = memory_.guests[static_cast<size_t>(guest)];
    if (!of.empty()) end(range_of_guest(guest), bytes, of.front(), std::span(of).subspan(1));
  }
}

std::vector<View> SharedParameters::aside_of(Place place, const View& gradient) const {
  const auto at = static_cast<size_t>(place);
  const auto offset = static_cast<std::byte*>(gradient.raw()) - memory_.gradients[at].data();
  std::vector<View> aside;
  for (std::byte* const data : memory_.aside[at]) {
    aside.emplace_back(data + offset, gradient.dtype, 1, gradient.cols);
  }
  return aside;
}

std::vector<PartialSum> SharedParameters::sums_of(const OpSet& ops, BlockId block) const {
  const View gradient = gradients_of(table_, block);
  const std::vector<View> own_aside = aside_of(table_.block(block).place, gradient);
  const auto own = [&] {
    return ShardSum(ops, shards_.shards, shards_.range(), gradient, own_aside).sums();
  };
  const auto expert = std::ranges::find(experts_, block, &ExpertGradients::block);
  if (expert == experts_.end()) return own();
  std::vector<PartialSum> sums;
  for (int32_t guest = 0; guest < experts().ranks; ++guest) {
    std::vector<PartialSum> more;
    if (guest == experts().position) {
      if (shards_.computes()) more = own();
    } else if (experts().has_tokens(guest)) {
      std::vector<View> views;
      for (std::byte* const data : memory_.guests[static_cast<size_t>(guest)]) {
        views.emplace_back(data + expert->offset, gradient.dtype, 1, gradient.cols);
      }
      more = ShardSum(ops, shards_.shards, range_of_guest(guest), views.front(),
                      std::span(views).subspan(1))
                 .sums();
    }
    sums.insert(sums.end(), more.begin(), more.end());
  }
  return sums;
}

void SharedParameters::reduce(const OpSet& ops, Stream& stream, std::span<const BlockId> blocks) {
  std::vector<SharedGradient> shared;
  for (const BlockId block : blocks) {
    shared.push_back({block, DType::f32, gradient_elements(table_, block)});
    SharedGradient& one = shared.back();
    if (!uses(block)) continue;
    std::vector<PartialSum> sums = sums_of(ops, block);
    if (experts().divided()) sums = join_partial_sums(ops, stream, shards_.shards, sums);
    for (const PartialSum& partial : sums) one.mine.push_back(partial.sum);
    if (owns(block)) one.sum = gradients_of(table_, block);
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
    if (!uses(block)) continue;
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
          if (!owners_.uses(block, rank)) continue;
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
    for (const View& copy : kept_by_owner(table_, block, owners_.uses(block, 0))) {
      if (shards_.rank == owner) out.push_back({0, sent(copy)});
      if (shards_.rank == 0) in.push_back({owner, received(copy)});
    }
  }
  team_->comm().wait_for(team_->comm().transfer(team_->next(), std::move(out), std::move(in)));
  if (shards_.rank > 0 || !experts().divided()) return;
  for (const BlockId block : trained_blocks()) {
    for (TensorId id = table_.block(block).begin; !uses(block) && id < table_.block(block).end;
         ++id) {
      if (table_.tensor(id).trainable) table_.mark_updated(id, true);
    }
  }
  refresh_working_copies(table_);
}

}  // namespace hearth
