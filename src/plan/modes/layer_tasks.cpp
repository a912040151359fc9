#include "modes/layer_tasks.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace hearth {

namespace {

/// A layer has a dense MLP, or routed experts with or without a shared expert.
bool has_mlp(const ModelSpec& spec, int32_t layer) {
  return !spec.has_experts(layer) || spec.has_shared_expert(layer);
}

/// The places of a layer's experts, in the order of the places; if a rule decides, both of them.
std::vector<ExpertPart> parts_of(const PlanInput& input, int32_t layer, Phase phase) {
  if (!input.spec.has_experts(layer)) return {};
  std::map<Place, int32_t> experts;
  const BlockId first = input.table.find_block(BlockKind::expert, layer, 0);
  for (int32_t e = 0; e < input.spec.experts; ++e) {
    ++experts[input.compute_place(first + e, phase)];
  }
  if (input.decided(layer)) {
    const Place dense = input.compute_place(input.table.find_block(BlockKind::attention, layer));
    experts.try_emplace(dense);
    experts.try_emplace(input.places[static_cast<size_t>(dense)].host);
  }
  std::vector<ExpertPart> parts;
  for (const auto& [place, count] : experts) parts.push_back({place, count});
  return parts;
}

std::set<Place> trained_places(const ParameterTable& table) {
  std::set<Place> places;
  Place last = -1;  // neighbours mostly are at one place
  for (const Tensor& t : table.tensors()) {
    if (!t.trainable) continue;
    const Place place = table.block(t.block).place;
    if (std::exchange(last, place) != place) places.insert(place);
  }
  return places;
}

}  // namespace

LayerTasks::LayerTasks(const PlanInput& input, Pass pass, int64_t cache_rows)
    : input_(input),
      builder_(input, pass, cache_rows),
      is_training_(pass == Pass::train),
      is_rotated_(is_training_ && input.rotates),
      ranks_(pass == Pass::train ? input.shards.group() : ExpertRanks{}),
      together_(layers_together(input.spec, input.table, input.shards)) {
  for (int32_t layer = 0; layer < input.spec.layers; ++layer) {
    parts_.push_back(parts_of(input, layer, Phase::forward));
    parts_backward_.push_back(parts_of(input, layer, Phase::backward));
  }
}

const std::vector<ExpertPart>& LayerTasks::parts(Phase phase, int32_t layer) const {
  return (phase == Phase::forward ? parts_ : parts_backward_)[static_cast<size_t>(layer)];
}

Place LayerTasks::dense_place(int32_t layer, Phase phase) const {
  const ParameterTable& table = input_.table;
  const auto of_block = [&](BlockKind kind) {
    const bool in_layer = kind == BlockKind::attention;
    return input_.compute_place(table.find_block(kind, in_layer ? layer : -1), phase);
  };
  if (layer < 0) return of_block(BlockKind::embedding);
  if (layer >= input_.spec.layers) return of_block(BlockKind::head);
  return of_block(BlockKind::attention);
}

void LayerTasks::add(TaskKind kind, Phase phase, int32_t layer, int32_t micro_batch) {
  Place place = dense_place(layer, phase);
  if (kind == TaskKind::mlp) {
    const BlockKind of =
        input_.spec.has_shared_expert(layer) ? BlockKind::shared : BlockKind::dense;
    place = input_.compute_place(input_.table.find_block(of, layer), phase);
  }
  builder_.add(kind, phase, layer, micro_batch, place);
}

void LayerTasks::add_embed(Phase phase, int32_t micro_batch) {
  if (phase == Phase::forward) add_updates_before(-1);
  builder_.add(TaskKind::embed, phase, 0, micro_batch, dense_place(-1, phase));
}

void LayerTasks::add_head(int32_t micro_batch) {
  add_updates_before(static_cast<int32_t>(input_.spec.layers));
  add(TaskKind::head, Phase::forward, static_cast<int32_t>(input_.spec.layers), micro_batch);
}

/// Where the rows of a token are summed: with the experts, if all are at one other place and that moves
/// fewer of the token's vectors than its rows are.
Place LayerTasks::sum_place(Phase phase, int32_t layer, int64_t vectors_moved) const {
  const std::vector<ExpertPart>& of = parts(phase, layer);
  const bool there = of.size() == 1 && vectors_moved < input_.spec.experts_per_token;
  return there ? of.front().place : dense_place(layer, phase);
}

/// Each place with experts that is not the dense parts' sums its rows; then, at the dense parts, the sums
/// are added in the order of the places.
void LayerTasks::add_sums(TaskKind kind, Phase phase, int32_t layer, int32_t micro_batch) {
  const std::vector<ExpertPart>& parts = this->parts(phase, layer);
  const Place dense = dense_place(layer, phase);
  if (parts.size() == 1) {
    builder_.add(kind, phase, layer, micro_batch, parts.front().place, dense);
    builder_.add(kind, phase, layer, micro_batch, dense);
    return;
  }
  const auto add = [&](const ExpertPart& part, Place place) {
    builder_.add_part(kind, phase, layer, micro_batch, part, place, dense);
  };
  for (const ExpertPart& part : parts) {
    if (part.place != dense) add(part, part.place);
  }
  builder_.add(kind, phase, layer, micro_batch, dense);
  for (const ExpertPart& part : parts) add(part, dense);
}

void LayerTasks::add_dispatch(Phase phase, int32_t layer, int32_t micro_batch) {
  const std::vector<ExpertPart>& parts = this->parts(phase, layer);
  const Place dense = dense_place(layer, phase);
  const int64_t shared = input_.spec.has_shared_expert(layer) ? 1 : 0;
  const bool backward = phase == Phase::backward;
  if (backward && input_.sums(layer))
    return add_sums(TaskKind::dispatch, phase, layer, micro_batch);
  if (backward) {  // moves d_normed back, and there if it has the shared expert's part
    builder_.add(TaskKind::dispatch, phase, layer, micro_batch, sum_place(phase, layer, 1 + shared),
                 dense);
    return;
  }
  const Place routes = parts.size() == 1 ? parts.front().place : dense;
  builder_.add(TaskKind::dispatch, phase, layer, micro_batch, routes, dense);
  if (parts.size() > 1) add_rows_of_parts(TaskKind::dispatch, phase, layer, micro_batch);
}

/// The tasks that bring tokens, or their gradients, to the rows of each place's experts, where experts do
/// not read them as they are.
void LayerTasks::add_rows_of_parts(TaskKind kind, Phase phase, int32_t layer, int32_t micro_batch) {
  const std::vector<ExpertPart>& parts = this->parts(phase, layer);
  for (const ExpertPart& part : parts) {
    const ExpertPart own = parts.size() == 1 ? ExpertPart{} : part;
    if (!builder_.writes(kind, phase, layer, own, part.place)) continue;
    builder_.add_part(kind, phase, layer, micro_batch, own, part.place, dense_place(layer, phase));
  }
}

void LayerTasks::add_combine(Phase phase, int32_t layer, int32_t micro_batch) {
  const Place dense = dense_place(layer, phase);
  const int64_t shared = input_.spec.has_shared_expert(layer) ? 1 : 0;
  if (phase == Phase::forward && input_.sums(layer)) {
    add_sums(TaskKind::combine, phase, layer, micro_batch);
  } else if (phase == Phase::forward) {  // moves the residual there and back
    builder_.add(TaskKind::combine, phase, layer, micro_batch, sum_place(phase, layer, 2 + shared),
                 dense);
  } else {
    add_rows_of_parts(TaskKind::combine, phase, layer, micro_batch);
  }
}

void LayerTasks::add_experts(Phase phase, int32_t layer, RowRange rows) {
  const Place dense = dense_place(layer, phase);
  builder_.add_experts(phase, layer, rows, dense, parts(phase, layer));
  builder_.add_divided(phase, layer, rows, dense);
}

void LayerTasks::send_round(Phase phase, int32_t layer, RowRange rows, int32_t round,
                            bool recompute) {
  if (round == ranks_.ranks) return;
  const int32_t guest = ranks_.guest_of(round);
  if (recompute) {
    builder_.add_exchange(TaskKind::send_rows, Phase::recompute, layer, rows, guest);
  }
  builder_.add_exchange(TaskKind::send_rows, phase, layer, rows, guest);
}

void LayerTasks::send_counts(int32_t layer, RowRange rows) {
  builder_.add_exchange(TaskKind::send_counts, Phase::forward, layer, rows);
}

void LayerTasks::compute_round(Phase phase, int32_t layer, RowRange rows, int32_t round,
                               bool recompute) {
  const int32_t guest = ranks_.guest_of(round);
  if (input_.shards.experts(layer).serves(guest)) {
    if (recompute) builder_.add_guests(Phase::recompute, layer, rows, guest);
    builder_.add_guests(phase, layer, rows, guest);
  }
  builder_.add_exchange(TaskKind::return_rows, phase, layer, rows, guest);
}

void LayerTasks::add_shared_experts(Phase phase, int32_t layer, RowRange rows, bool recompute) {
  if (phase == Phase::forward) send_counts(layer, rows);
  send_round(phase, layer, rows, 1, recompute);
  if (recompute) add_experts(Phase::recompute, layer, rows);
  add_experts(phase, layer, rows);
  for (int32_t round = 1; round < ranks_.ranks; ++round) {
    send_round(phase, layer, rows, round + 1, recompute);
    compute_round(phase, layer, rows, round, recompute);
  }
}

void LayerTasks::begin_layer(int32_t layer, int32_t m) {
  const bool experts = input_.spec.has_experts(layer);
  if (ranks_.has_tokens()) {
    add(TaskKind::attention, Phase::forward, layer, m);
    if (has_mlp(input_.spec, layer)) add(TaskKind::mlp, Phase::forward, layer, m);
    if (experts) add_dispatch(Phase::forward, layer, m);
  }
  if (!experts) return;
  send_counts(layer, rows_of(m));
  for (int32_t round = 1; round < ranks_.ranks; ++round) {
    send_round(Phase::forward, layer, rows_of(m), round, false);
  }
}

void LayerTasks::compute_experts(Phase phase, int32_t layer, int32_t m, bool recompute) {
  if (!input_.spec.has_experts(layer)) return;
  if (ranks_.has_tokens() && input_.shards.experts(layer).has_experts()) {
    if (recompute) add_experts(Phase::recompute, layer, rows_of(m));
    add_experts(phase, layer, rows_of(m));
  }
  for (int32_t round = 1; round < ranks_.ranks; ++round) {
    compute_round(phase, layer, rows_of(m), round, recompute);
  }
}

void LayerTasks::end_layer(int32_t layer, int32_t m) {
  if (ranks_.has_tokens()) add_combine(Phase::forward, layer, m);
}

void LayerTasks::begin_layer_backward(int32_t layer, int32_t m, bool recompute) {
  const bool experts = input_.spec.has_experts(layer), mlp = has_mlp(input_.spec, layer);
  if (ranks_.has_tokens()) {
    if (recompute) add(TaskKind::attention, Phase::recompute, layer, m);
    if (recompute && experts) add_dispatch(Phase::recompute, layer, m);
    if (experts) add_combine(Phase::backward, layer, m);
  }
  for (int32_t round = 1; experts && round < ranks_.ranks; ++round) {
    send_round(Phase::backward, layer, rows_of(m), round, recompute);
  }
  if (!ranks_.has_tokens() || !mlp) return;
  if (recompute) add(TaskKind::mlp, Phase::recompute, layer, m);
  add(TaskKind::mlp, Phase::backward, layer, m);
}

void LayerTasks::end_layer_backward(int32_t layer, int32_t m) {
  if (!ranks_.has_tokens()) return;
  if (input_.spec.has_experts(layer)) add_dispatch(Phase::backward, layer, m);
  add(TaskKind::attention, Phase::backward, layer, m);
}

/// Whether one task of the layer's experts computes several micro-batches. With many rows an expert
/// computes so long on its weights that reading them once more costs nothing, so the memory for the
/// rows of all micro-batches would be spent for nothing (docs/benchmarks/devices.md).
bool LayerTasks::together(int32_t layer, RowRange rows) const {
  if (rows.count() == 1 || !input_.spec.has_experts(layer)) return false;
  if (input_.decided(layer)) return true;
  if (input_.travels(input_.table.find_block(BlockKind::expert, layer, 0))) return true;
  const int64_t routed = input_.tokens * input_.spec.experts_per_token;
  return routed < kManyExpertRows * input_.spec.experts &&
         std::ranges::any_of(parts_[static_cast<size_t>(layer)], [&](const ExpertPart& part) {
           return !input_.places[static_cast<size_t>(part.place)].device;
         });
}

void LayerTasks::fetch_experts(Phase phase, int32_t layer, int32_t next) {
  if (!is_training_) return;
  for (const int32_t of : {layer, next}) {
    const bool is_layer = of >= 0 && of < input_.spec.layers;
    if (!is_layer || !input_.shards.fetches(of) || !input_.spec.has_experts(of)) continue;
    if (!fetched_.insert(of).second) continue;
    add_updates_before(of);  // which write what is sent
    builder_.add_fetch(phase, of);
  }
}

void LayerTasks::add_layer(int32_t layer, RowRange rows) {
  fetch_experts(Phase::forward, layer, layer + 1);
  add_layer_of(layer, rows);
  if (layer + 1 < input_.spec.layers) fetched_.erase(layer);  // else backward begins with it
}

void LayerTasks::add_layer_of(int32_t layer, RowRange rows) {
  if (rows.count() > 1 && !together(layer, rows)) {
    for (int32_t m = rows.begin; m < rows.end; ++m) add_layer_of(layer, rows_of(m));
    return;
  }
  // Before updates at the host, which nothing of this layer waits for.
  if (input_.decided(layer)) builder_.add_foretell(layer, rows, dense_place(layer));
  add_updates_before(layer);
  const TaskId first = builder_.tasks();
  const bool mlp = has_mlp(input_.spec, layer), experts = input_.spec.has_experts(layer);
  const bool divided = parts_[static_cast<size_t>(layer)].size() > 1;
  const bool decided = input_.decided(layer);
  if (divided && !decided) builder_.add_decide(layer, rows, dense_place(layer));
  for (int32_t m = rows.begin; m < rows.end; ++m) {
    add(TaskKind::attention, Phase::forward, layer, m);
    if (mlp && rows.count() == 1) add(TaskKind::mlp, Phase::forward, layer, m);
    if (experts && !decided) add_dispatch(Phase::forward, layer, m);
  }
  if (decided) {  // with the counts of all micro-batches
    builder_.add_decide(layer, rows, dense_place(layer));
    builder_.add_pack(Phase::forward, layer, rows, dense_place(layer));
    for (int32_t m = rows.begin; m < rows.end; ++m) add_dispatch(Phase::forward, layer, m);
  }
  if (experts && ranks_.divided()) {
    add_shared_experts(Phase::forward, layer, rows, false);
  } else if (experts) {
    add_experts(Phase::forward, layer, rows);
  }
  for (int32_t m = rows.begin; m < rows.end; ++m) {
    // Behind the experts, so that of its outputs one lives at a time.
    if (mlp && rows.count() > 1) add(TaskKind::mlp, Phase::forward, layer, m);
    add_combine(Phase::forward, layer, m);
  }
  keep_inputs(layer, rows, first);
}

/// Backward begins with the last layer, so its inputs stay.
bool LayerTasks::input_waits(int32_t layer) const {
  return is_training_ && input_.inputs_on_host && layer >= 0 && layer + 1 < input_.spec.layers &&
         input_.places[static_cast<size_t>(dense_place(layer))].device;
}

void LayerTasks::keep_inputs(int32_t layer, RowRange rows, TaskId first) {
  if (!input_waits(layer)) return;
  const TaskId stays = builder_.tasks() - first;
  for (int32_t m = rows.begin; m < rows.end; ++m) {
    builder_.keep_on_host(Value::residual, layer, m, stays);
  }
}

void LayerTasks::bring_inputs(int32_t layer, RowRange rows) {
  if (!input_waits(layer)) return;
  for (int32_t m = rows.begin; m < rows.end; ++m) {
    builder_.bring_back(Value::residual, layer, m, dense_place(layer, Phase::backward));
  }
}

void LayerTasks::add_layer_backward(int32_t layer, RowRange rows, bool recompute) {
  fetch_experts(Phase::backward, layer, layer - 1);
  const auto at_once = [&](int32_t of, int32_t m) {
    const bool all = rows.count() == 1 || (of >= 0 && together(of, rows));
    return all ? rows : rows_of(m);
  };
  for (RowRange some = at_once(layer, rows.begin);;) {
    // The inputs of the tasks behind these come meanwhile.
    const bool is_last = some.end == rows.end;
    const RowRange next = is_last ? at_once(layer - 1, rows.begin) : rows_of(some.end);
    bring_inputs(is_last ? layer - 1 : layer, next);
    add_layer_backward_at_once(layer, some, recompute);
    if (is_last) break;
    some = next;
  }
  fetched_.erase(layer);
}

void LayerTasks::add_layer_backward_at_once(int32_t layer, RowRange rows, bool recompute) {
  const bool mlp = has_mlp(input_.spec, layer), experts = input_.spec.has_experts(layer);
  const auto add_mlp = [&](int32_t m) {
    if (mlp && recompute) add(TaskKind::mlp, Phase::recompute, layer, m);
    if (mlp) add(TaskKind::mlp, Phase::backward, layer, m);
  };
  for (int32_t m = rows.begin; recompute && m < rows.end; ++m) {
    add(TaskKind::attention, Phase::recompute, layer, m);
    if (experts) add_dispatch(Phase::recompute, layer, m);
  }
  if (experts) {  // for recompute, too
    const Phase first = recompute ? Phase::recompute : Phase::backward;
    builder_.add_pack(first, layer, rows, dense_place(layer, first));
  }
  if (recompute && experts && !ranks_.divided()) add_experts(Phase::recompute, layer, rows);
  if (rows.count() == 1) add_mlp(rows.begin);
  if (experts) {
    for (int32_t m = rows.begin; m < rows.end; ++m) {
      add_combine(Phase::backward, layer, m);
    }
    if (ranks_.divided()) {
      add_shared_experts(Phase::backward, layer, rows, recompute);
    } else {
      add_experts(Phase::backward, layer, rows);
    }
  }
  for (int32_t m = rows.begin; m < rows.end; ++m) {
    if (rows.count() > 1) add_mlp(m);
    if (experts) add_dispatch(Phase::backward, layer, m);
    add(TaskKind::attention, Phase::backward, layer, m);
  }
}

void LayerTasks::end_shard(int32_t shard) {
  if (!shards_have_tasks()) return;
  for (const Place place : trained_places(input_.table)) {
    builder_.add(TaskKind::shard, Phase::backward, shard, -1, place);
  }
}

bool LayerTasks::shards_have_tasks() const {
  if (input_.shards.count() > 1) return true;
  if (!ranks_.divided()) return false;
  int32_t layer = 0;  // a rank has all its experts at one place
  while (!input_.spec.has_experts(layer)) ++layer;
  const BlockId expert = input_.table.find_block(BlockKind::expert, layer, 0);
  return input_.places[static_cast<size_t>(input_.compute_place(expert))].device;
}

void LayerTasks::add_reduce(int32_t layer) {
  if (input_.shards.ranks > 1 && !shards_have_tasks()) add_reduces_from(layer);
}

/// Of those layers, and of those that travel with them.
void LayerTasks::add_reduces_from(int32_t layer) {
  for (; next_reduce_ < together_.size() && together_[next_reduce_].first >= layer;
       ++next_reduce_) {
    builder_.add_collective(TaskKind::reduce, together_[next_reduce_]);
  }
}

void LayerTasks::add_updates() {
  const bool ranks = input_.shards.ranks > 1;
  if (ranks) add_reduces_from(-1);
  for (const Place place : trained_places(input_.table)) {
    builder_.add_norms(place);
  }
  if (ranks) builder_.add(TaskKind::gather, Phase::forward, kHostPlace, -1);
  builder_.add(TaskKind::clip, Phase::forward, 0, -1);
  if (!input_.rotates) add_due_updates();
}

void LayerTasks::add_due_updates() {
  add_updates_through(static_cast<int32_t>(input_.spec.layers));
  for (; next_give_ > 0; --next_give_) {
    builder_.add_collective(TaskKind::give, together_[next_give_ - 1]);
  }
}

void LayerTasks::add_updates_through(int32_t layer) {
  std::set<Place> places;
  for (const Block& block : input_.table.blocks()) places.insert(block.place);
  for (; next_update_ <= layer; ++next_update_) {
    if (!input_.decides) {  // all streams of a place update the layer that is needed first
      for (const Place place : places) builder_.add_update_by_lanes(next_update_, place);
      continue;
    }
    const auto begun = shares_updated_.find(next_update_);
    const int32_t count = begun == shares_updated_.end() ? 1 : kUpdateShares;
    const int32_t from = begun == shares_updated_.end() ? 0 : begun->second;
    for (int32_t share = from; share < count; ++share) {
      for (const Place place : places) {
        builder_.add_update(next_update_, {share, count}, place, dense_place(next_update_));
      }
    }
  }
}

void LayerTasks::add_first_updates(int32_t last) {
  if (!is_rotated_ || !input_.decides) return;
  std::set<Place> places;
  for (const Block& block : input_.table.blocks()) places.insert(block.place);
  for (; next_update_ <= std::min(last, static_cast<int32_t>(input_.spec.layers)); ++next_update_) {
    for (const Place place : places) builder_.add_update_by_lanes(next_update_, place);
  }
}

void LayerTasks::add_updates_ahead(int32_t first, int32_t last, double part) {
  if (!is_rotated_ || !input_.decides || first > last) return;
  const auto all = static_cast<double>((last - first + 1) * kUpdateShares);
  const auto due = static_cast<int32_t>(part * all + 1e-9);
  for (int32_t share = 0; share < due; ++share) {
    const int32_t layer = first + share / kUpdateShares, number = share % kUpdateShares;
    int32_t& updated = shares_updated_[layer];
    if (layer < next_update_ || number < updated) continue;
    builder_.add_update(layer, {number, kUpdateShares}, kHostPlace, dense_place(layer));
    updated = number + 1;
  }
}

void LayerTasks::add_updates_of_stage(int32_t last) {
  if (is_rotated_) add_updates_through(std::min(last, static_cast<int32_t>(input_.spec.layers)));
}

/// If the schedule rotates. One layer more, so that the host updates that while devices compute this. Of
/// several ranks, all layers: weights of the later ones travel while the first compute, and the sooner
/// they are updated, the sooner they do.
void LayerTasks::add_updates_before(int32_t layer) {
  if (!is_rotated_) return;
  if (input_.shards.ranks > 1) return add_due_updates();
  add_updates_through(std::min(layer + 1, static_cast<int32_t>(input_.spec.layers)));
}

bool embedding_waits_for_heads(const PlanInput& input) {
  return input.spec.tied_head && input.table.tensor(input.table.head_weight()).trainable;
}

Schedule forward_schedule(const PlanInput& input, Pass pass, int64_t cache_rows) {
  LayerTasks tasks(input, pass, cache_rows);
  tasks.add_embed(Phase::forward, 0);
  for (int32_t layer = 0; layer < input.spec.layers; ++layer) {
    tasks.add_layer(layer, rows_of(0));
  }
  tasks.add_head(0);
  return tasks.finish();
}

Schedule drain_schedule(const PlanInput& input) {
  PlanInput of_none = input;
  of_none.micro_batches = 0;
  LayerTasks tasks(of_none, Pass::train);
  tasks.add_due_updates();
  return tasks.finish();
}

}  // namespace hearth
