#include "runtime/shared_parameters.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

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

int64_t elements_of(const ParameterTable& table, const Block& block) {
  int64_t elements = 0;
  for (TensorId id = block.begin; id < block.end; ++id) elements += table.tensor(id).size();
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

/// What `give` brings of a run: what products read.
const View& given_copy(const UpdateRun& run) { return run.working ? run.working : run.master; }

/// f(block, tensor) of the trained tensors: the same on all ranks.
template <class F>
void each_trained_tensor(const ParameterTable& table, const F& f) {
  for (BlockId block = 0; block < std::ssize(table.blocks()); ++block) {
    for (TensorId id = table.block(block).begin; id < table.block(block).end; ++id) {
      if (table.tensor(id).trainable) f(block, id);
    }
  }
}

/// Empty: this rank has none.
const View& kept_copy(const ParameterTable& table, TensorId id, CopyRole role) {
  return table.tensor(id).copies[static_cast<int>(role)].view;
}

View at_host(std::byte* data, const View& of) { return {data, of.dtype, of.rows, of.cols}; }

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
  if (!shards.group().divided()) return;
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
  const ExpertDomains domains = shards.domains();
  const std::map<int32_t, int64_t> experts = experts_by_layer(table);
  std::vector<OwnedBlock> blocks;
  for (BlockId block = 0; block < std::ssize(table.blocks()); ++block) {
    const Block* const expert = expert_of(table, block);
    std::vector<BlockShare> shares;
    if (expert == nullptr || !shards.group().divided()) {
      shares = shares_of_all(map);
    } else {
      const ExpertRanks ranks = shards.experts(expert->layer);
      const int32_t position = ranks.position_of(expert->expert, experts.at(expert->layer));
      shares = shards.attention_ranks > 0 ? shares_of_role(shards, position)
                                          : shares_of_expert(map, domains, position);
    }
    const Block& of = table.block(block);
    const bool sent = of.kind == BlockKind::expert && shards.fetches(of.layer);
    const int64_t gradients = gradient_elements(table, block);
    const int64_t frozen = sent && gradients == 0 ? elements_of(table, of) : 0;
    blocks.push_back({gradients, std::move(shares), of.layer, frozen});
  }
  return choose_owners(shards.shards, shards.ranks, std::move(blocks));
}

void own_blocks(ParameterTable& table, const RankShards& shards) {
  const Owners owners = owners_of(table, shards);
  for (BlockId block = 0; block < std::ssize(table.blocks()); ++block) {
    const bool owned = owners.owner(block) == shards.rank;
    table.set_owned(block, owned);
    table.set_present(block, shards.rank == 0 || owners.uses(block, shards.rank));
    table.set_fetched(block, is_fetched(table, owners, shards, block, shards.rank));
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
  std::vector<int32_t> copies(static_cast<size_t>(shards.group().ranks));
  for (int32_t guest = 0; guest < std::ssize(copies); ++guest) {
    RankShards of = shards;
    of.rank = shards.member(guest);
    if (!shards.serves(guest)) continue;
    copies[static_cast<size_t>(guest)] = 1 + gradients_aside(of);
  }
  return copies;
}

Place guest_place(const ParameterTable& table, const RankShards& shards) {
  Place place = -1;
  each_shared_expert(table, owners_of(table, shards), shards, [&](BlockId block) {
    HEARTH_CHECK(place < 0 || place == table.block(block).place,
                 "shared parameters: experts of one rank at several places");
    place = table.block(block).place;
  });
  return std::max(place, kHostPlace);
}

/// Of a fetch task: weights that this rank sends from a device.
static size_t sent_through_host(const ParameterTable& table, const Owners& owners,
                                const RankShards& shards, const Task& task, int32_t hosts) {
  size_t bytes = 0;
  for (const BlockId block : numbers_of(task.blocks)) {
    const Block& of = table.block(block);
    if (of.place < hosts || !of.owned || !is_sent(table, owners, shards, block)) continue;
    for (TensorId id = of.begin; id < of.end; ++id) {
      bytes += align_up(static_cast<size_t>(table.tensor(id).size()) * sizeof(float));
    }
  }
  return bytes;
}

StagingNeed staging_bytes(const Schedule& schedule, const ParameterTable& table,
                          const RankShards& shards, int32_t hosts) {
  if (shards.ranks == 1) return {};
  const Owners owners = owners_of(table, shards);
  size_t most = 0, incoming = 0;
  const WireExperts wire(shards, table, owners);
  for (const int32_t layer : wire.layers()) {
    most = std::max(most, wire.staging_bytes(table, layer, hosts));
  }
  for (const Task& task : schedule.tasks) {
    if (task.kind == TaskKind::fetch) {
      most = std::max(most, sent_through_host(table, owners, shards, task, hosts));
    }
    if (task.kind != TaskKind::reduce && task.kind != TaskKind::give) continue;
    std::vector<SharedGradient> gradients;
    size_t of_devices = 0;
    for (const BlockId block : numbers_of(task.blocks)) {
      gradients.push_back({block, DType::f32, gradient_elements(table, block)});
      if (table.block(block).place < hosts || !owners.uses(block, shards.rank)) continue;
      const std::vector<BlockShare> subtrees = owners.subtrees(block);
      const auto own = std::ranges::count(subtrees, shards.rank, &BlockShare::rank);
      of_devices += static_cast<size_t>(own) * align_up(gradient_bytes(table, block));
    }
    const bool reduces = task.kind == TaskKind::reduce;
    const size_t come = reduces ? staging_bytes(owners, shards.rank, gradients) : 0;
    incoming = std::max(incoming, come);
    most = std::max(most, of_devices + come);
    if (of_devices > 0) most = std::max(most, kMovedBytes);
  }
  return shards.direct ? StagingNeed{kMovedBytes, incoming} : StagingNeed{most, 0};
}

SharedParameters::SharedParameters(const RankShards& shards, ParameterTable& table, Memory memory,
                                   RankTeam* team, std::span<Device* const> devices, int32_t hosts,
                                   World* between_devices)
    : shards_(shards),
      table_(table),
      memory_(std::move(memory)),
      team_(team),
      owners_(owners_of(table, shards)),
      stage_(devices, hosts),
      wire_(shards, table, owners_),
      guest_place_(guest_place(table, shards)) {
  HEARTH_CHECK(team == nullptr ? shards.ranks == 1
                               : shards.ranks == team->size() && shards.rank == team->rank(),
               "shared parameters: a plan for other ranks");
  HEARTH_CHECK(shards.direct == (between_devices != nullptr),
               "shared parameters: direct messages need a world between devices");
  if (between_devices != nullptr) direct_all_.comm = between_devices->everyone();
  size_t offset = 0;
  each_shared_expert(table, owners_, shards, [&](BlockId block) {
    experts_.push_back({block, gradients_of(table, block), offset});
    offset += gradient_bytes(table, block);
  });
  guest_bytes_ = align_up(offset, kRow);
  std::ranges::sort(experts_, {}, [](const ExpertGradients& e) { return e.own.data; });
  for (int32_t first = 0; shards.group().divided() && first < shards.ranks; ++first) {
    if (shards.position_of(first) != 0) continue;
    std::vector<int32_t> ranks;
    for (int32_t position = 0; position < shards.expert_ranks; ++position) {
      ranks.push_back(shards.member(first, position));
    }
    const size_t count = shards_.group().ways_apart() ? channels_.size() : 1;
    for (Channel& channel : std::span(channels_).first(count)) {
      std::unique_ptr<Communicator> comm = team->world().group(ranks);
      if (comm) channel.comm = std::move(comm);
    }
    if (between_devices == nullptr) continue;
    std::unique_ptr<Communicator> comm = between_devices->group(ranks);
    if (comm) direct_rows_.comm = std::move(comm);
  }
}

void SharedParameters::exchange(Stream& stream, Place place, RowsGo go,
                                std::span<const SentRows> out, std::span<const ReceivedRows> in) {
  const bool apart = shards_.group().ways_apart();
  Channel& channel =
      stage_.is_device(place) ? direct_rows_ : channels_[apart ? static_cast<size_t>(go) : 0];
  std::vector<Outgoing> to;
  std::vector<Incoming> from;
  for (const SentRows& rows : out) {
    HEARTH_CHECK(rows.rows.contiguous(), "shared parameters: rows that are not contiguous");
    if (rows.rows.rows > 0) {
      to.push_back({rows.to, {static_cast<const std::byte*>(rows.rows.data), rows.rows.bytes()}});
    }
  }
  for (const ReceivedRows& rows : in) {
    if (rows.rows.rows > 0) {
      from.push_back({rows.from, {static_cast<std::byte*>(rows.rows.raw()), rows.rows.bytes()}});
    }
  }
  stream.synchronize();
  Communicator& comm = *channel.comm;
  comm.wait_for(comm.transfer(next(channel), std::move(to), std::move(from)));
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
  return shards_.map().of(shards_.member(guest));
}

std::vector<BlockId> SharedParameters::trained_blocks() const {
  std::vector<BlockId> blocks;
  for (BlockId block = 0; block < std::ssize(table_.blocks()); ++block) {
    if (table_.is_trained(block)) blocks.push_back(block);
  }
  return blocks;
}

void SharedParameters::end_arena(const OpSet& ops, Stream& stream, ShardRange range, int32_t shard,
                                 size_t bytes, std::byte* gradients,
                                 std::span<std::byte* const> aside) const {
  std::vector<View> views;
  for (std::byte* const data : aside) views.push_back(rows_of_arena(data, bytes));
  ShardSum(ops, shards_.shards, range, rows_of_arena(gradients, bytes), views)
      .end(stream, range.begin + shard);
}

void SharedParameters::end_shard(const OpSet& ops, Stream& stream, Place place, int32_t shard) {
  const auto at = static_cast<size_t>(place);
  const std::span<std::byte> arena = memory_.gradients[at];
  if (arena.empty()) return;  // nothing that is trained is here
  if (shards_.computes()) {
    end_arena(ops, stream, shards_.range(), shard, arena.size(), arena.data(), memory_.aside[at]);
  }
  if (place != guest_place_) return;
  for (int32_t guest = 0; guest < std::ssize(memory_.guests); ++guest) {
    const std::vector<std::byte*>& of = memory_.guests[static_cast<size_t>(guest)];
    if (of.empty()) continue;
    end_arena(ops, stream, range_of_guest(guest), shard, guest_bytes_, of.front(),
              std::span(of).subspan(1));
  }
  if (shard + 1 == shards_.count()) join_guests(ops, stream);
}

/// Each expert has sums of several ranks' shards, at one place.
void SharedParameters::join_guests(const OpSet& ops, Stream& stream) const {
  for (const ExpertGradients& expert : experts_) {
    join_partial_sums(ops, stream, shards_.shards, sums_of(ops, expert.block));
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
  for (int32_t guest = 0; guest < shards_.group().ranks; ++guest) {
    std::vector<PartialSum> more;
    if (guest == shards_.group().position) {
      if (shards_.computes()) more = own();
    } else if (shards_.group().has_tokens(guest)) {
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

std::byte* SharedParameters::room(size_t bytes, size_t& used) const {
  std::byte* const data = memory_.staging.data + used;
  used += align_up(bytes);
  HEARTH_CHECK(used <= memory_.staging.bytes, "shared parameters: too little staging memory");
  return data;
}

/// A copy of it on the host, on its way.
View SharedParameters::staged_gradient(BlockId block, const View& gradient, size_t& used) {
  std::byte* const data = room(gradient.bytes(), used);
  stage_.to_host(place_of(block), data, gradient.data, gradient.bytes(), block, true);
  return at_host(data, gradient);
}

void SharedParameters::reduce(const OpSet& ops, Stream& stream, std::span<const BlockId> blocks) {
  std::vector<SharedGradient> shared;
  for (const BlockId block : blocks) {
    shared.push_back({block, DType::f32, gradient_elements(table_, block)});
  }
  const size_t incoming = hearth::staging_bytes(owners_, shards_.rank, shared);
  size_t used = shards_.direct ? 0 : incoming;
  std::vector<std::pair<BlockId, View>> at_devices;  // that were copied
  for (SharedGradient& one : shared) {
    if (!uses(one.block)) continue;
    one.copied = passes_host(one.block);
    const std::vector<PartialSum> sums = sums_of(ops, one.block);
    if (joins_in_reduce()) join_partial_sums(ops, stream, shards_.shards, sums);
    for (const PartialSum& partial : joined_partial_sums(shards_.shards, sums)) {
      one.mine.push_back(one.copied ? staged_gradient(one.block, partial.sum, used) : partial.sum);
      if (one.copied) at_devices.emplace_back(one.block, partial.sum);
    }
    if (owns(one.block)) one.sum = one.copied ? one.mine.front() : gradients_of(table_, one.block);
  }
  if (shards_.direct) {
    return reduce_to_owners(*direct_all_.comm, next(direct_all_), ops, stream, owners_, shared,
                            {memory_.device_staging.data, incoming});
  }
  stage_.synchronize();
  reduce_to_owners(team_->comm(), team_->next(), ops, stream, owners_, shared,
                   {memory_.staging.data, incoming});
  stream.synchronize();  // its sums are copied back
  for (const auto& [block, gradient] : at_devices) {
    if (owns(block) && gradient.data == gradients_of(table_, block).data) continue;
    stage_.clear(place_of(block), gradient.raw(), gradient.bytes());
  }
  for (const SharedGradient& one : shared) {
    if (!one.copied || !one.sum) continue;
    stage_.to_device(place_of(one.block), gradients_of(table_, one.block).raw(), one.sum.data,
                     one.sum.bytes(), one.block, true);
  }
  stage_.synchronize();
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
  std::vector<std::pair<View, View>> staged;  // on the host, and where they go at a device
  std::vector<BlockId> staged_of;
  std::set<int32_t> wired;  // layers
  const auto keeps = [&](BlockId block, int32_t rank) { return !fetches(block, rank); };
  size_t used = 0;
  for (const BlockId block : blocks) {
    if (wire_.has(block)) {
      wired.insert(table_.block(block).layer);
      continue;
    }
    if (!uses(block) || fetches(block, shards_.rank)) continue;
    for (const UpdateRun& run : update_runs(table_, block, block + 1)) {
      View copy = given_copy(run);
      if (passes_host(block)) {
        const View on_host = at_host(room(copy.bytes(), used), copy);
        if (owns(block)) {
          stage_.to_host(place_of(block), on_host.raw(), copy.data, copy.bytes(), block, false);
        } else {
          staged.emplace_back(on_host, copy);
          staged_of.push_back(block);
        }
        copy = on_host;
      }
      copies.push_back({block, copy});
      for (TensorId id = run.begin; !owns(block) && id < run.end; ++id) {
        table_.mark_updated(id, static_cast<bool>(run.working));
      }
    }
  }
  if (shards_.direct) {
    return give_to_users(*direct_all_.comm, next(direct_all_), stream, owners_, copies, keeps);
  }
  stage_.synchronize();
  give_to_users(team_->comm(), team_->next(), stream, owners_, copies, keeps);
  for (size_t i = 0; i < staged.size(); ++i) {
    const auto& [on_host, copy] = staged[i];
    stage_.to_device(place_of(staged_of[i]), copy.raw(), on_host.data, copy.bytes(), staged_of[i],
                     false);
  }
  stage_.synchronize();
  for (const int32_t layer : wired) give_wired(layer);
}

void SharedParameters::fetch(Stream& stream, std::span<const BlockId> experts,
                             std::span<const View> into) {
  std::vector<Outgoing> to;
  std::vector<Incoming> from;
  size_t used = 0, come = 0;
  for (const BlockId block : experts) {
    const Block& of = table_.block(block);
    for (TensorId id = of.begin; of.fetched && id < of.end; ++id) {
      const View& here = into[come++];
      from.push_back({owners_.owner(block), {static_cast<std::byte*>(here.raw()), here.bytes()}});
    }
    if (!of.owned || !is_sent(table_, owners_, shards_, block)) continue;
    for (TensorId id = of.begin; id < of.end; ++id) {
      ConstView weight = table_.weight(id);
      if (passes_host(block)) {
        std::byte* const on_host = room(weight.bytes(), used);
        stage_.to_host(place_of(block), on_host, weight.data, weight.bytes(), block, false);
        weight.data = on_host;
      }
      for (const int32_t user : owners_.users(block)) {
        if (!fetches(block, user)) continue;
        to.push_back({user, {static_cast<const std::byte*>(weight.data), weight.bytes()}});
      }
    }
  }
  HEARTH_CHECK(come == into.size(), "shared parameters: other experts are fetched");
  if (!shards_.direct) stage_.synchronize();
  stream.synchronize();
  Communicator& comm = shards_.direct ? *direct_all_.comm : team_->comm();
  const CommLabel label = shards_.direct ? next(direct_all_) : team_->next();
  comm.wait_for(comm.transfer(label, std::move(to), std::move(from)));
}

void SharedParameters::repeat_give() {
  if (!has_exact_) return;
  has_exact_ = false;
  for (const int32_t layer : wire_.layers()) give_wired(layer);
  stage_.take_copies();  // of no step
}

void SharedParameters::move(std::span<const Move> moves) {
  constexpr auto kMost = static_cast<int64_t>(kMovedBytes / sizeof(float));
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  struct Arrived {
    BlockId block;
    std::byte *target, *staged;
    size_t bytes;
  };
  std::vector<Arrived> arrived;
  int64_t elements = 0;  // of this batch
  size_t used = 0;
  const auto send = [&] {
    if (elements == 0) return;
    stage_.synchronize();
    team_->comm().wait_for(team_->comm().transfer(team_->next(), std::move(out), std::move(in)));
    for (const Arrived& a : arrived) {
      stage_.to_device(place_of(a.block), a.target, a.staged, a.bytes, a.block, false);
    }
    stage_.synchronize();
    out.clear();
    in.clear();
    arrived.clear();
    elements = 0;
    used = 0;
  };
  for (const Move& move : moves) {
    for (int64_t begin = 0; begin < move.elements;) {
      if (elements == kMost) send();
      const int64_t n = std::min(kMost - elements, move.elements - begin);
      // Whole lines of staging memory, on all ranks alike.
      elements = std::min(
          kMost, elements + static_cast<int64_t>(align_up(static_cast<size_t>(n) * sizeof(float)) /
                                                 sizeof(float)));
      const size_t bytes = static_cast<size_t>(n) * sizeof(float);
      const auto offset = static_cast<size_t>(begin) * sizeof(float);
      begin += n;
      if (!move.copy) continue;
      std::byte* data = static_cast<std::byte*>(move.copy.raw()) + offset;
      const bool sends = move.from == shards_.rank;
      if (is_at_device(move.block)) {
        std::byte* const staged = room(bytes, used);
        if (sends) {
          stage_.to_host(place_of(move.block), staged, data, bytes, move.block, false);
        } else {
          arrived.push_back({move.block, data, staged, bytes});
        }
        data = staged;
      }
      for (const int32_t to : move.to) {
        if (sends) out.push_back({to, {data, bytes}});
        if (to == shards_.rank) in.push_back({move.from, {data, bytes}});
      }
    }
  }
  send();
  stage_.take_copies();  // of no step
}

void SharedParameters::spread() {
  std::vector<Move> moves;
  each_trained_tensor(table_, [&](BlockId block, TensorId id) {
    const int32_t owner = owners_.owner(block);
    Move move{block, owner, {}, {}, table_.tensor(id).size()};
    bool takes_part = shards_.rank == owner;
    for (int32_t rank = 0; rank < shards_.ranks; ++rank) {
      if (rank == owner || fetches(block, rank)) continue;
      if (rank > 0 && !owners_.uses(block, rank)) continue;
      move.to.push_back(rank);
      takes_part = takes_part || shards_.rank == rank;
    }
    if (takes_part && !move.to.empty()) move.copy = kept_copy(table_, id, CopyRole::master);
    moves.push_back(std::move(move));
  });
  move(moves);
  refresh_working_copies(table_);
  has_exact_ = wire_.any();
}

void SharedParameters::collect() {
  std::vector<Move> moves;
  each_trained_tensor(table_, [&](BlockId block, TensorId id) {
    const int32_t owner = owners_.owner(block);
    if (owner == 0) return;
    // Without working copies, `give` has brought the masters.
    const bool given =
        owners_.uses(block, 0) && !kept_copy(table_, id, CopyRole::working) && !wire_.has(block);
    const bool takes_part = shards_.rank == 0 || shards_.rank == owner;
    Move move{block, owner, {0}, {}, table_.tensor(id).size()};
    if (takes_part && !given) move.copy = kept_copy(table_, id, CopyRole::master);
    moves.push_back(std::move(move));
  });
  move(moves);
  has_exact_ = has_exact_ || !wire_.report().empty();  // what step 1 computes with is exact, too
  if (shards_.rank > 0 || (!shards_.group().divided() && !wire_.any())) return;
  for (const BlockId block : trained_blocks()) {
    for (TensorId id = table_.block(block).begin; !uses(block) && id < table_.block(block).end;
         ++id) {
      if (table_.tensor(id).trainable) table_.mark_updated(id, true);
    }
  }
  refresh_working_copies(table_);
}

}  // namespace hearth
