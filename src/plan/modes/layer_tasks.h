// The tasks of a model's layers, added to a schedule at the places of their blocks. Planners decide
// the order; which tasks a layer has is the same in every mode.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "plan/layers_together.h"
#include "plan/schedule_builder.h"

namespace hearth {

/// Rows of an expert in a full micro-batch, evenly routed, from which on a group of micro-batches no
/// longer passes the host's experts in one task.
inline constexpr int64_t kManyExpertRows = 256;

/// The routed experts of a layer may be divided among places: each has an experts task of its own.
/// Dispatch and combine have no blocks. Tokens are spread to rows where the experts are, so that they
/// cross a link once and not once for each choice. Rows are summed to tokens where the dense parts are,
/// or, if all experts of the layer are at one other place, there, where that moves less. With partial
/// sums each place sums the rows of its own experts, and the dense parts' place adds the sums.
class LayerTasks {
 public:
  LayerTasks(const PlanInput& input, Pass pass, int64_t cache_rows = 0);

  void add_embed(Phase phase, int32_t micro_batch);
  void add_head(int32_t micro_batch);
  /// The forward tasks of a layer for some micro-batches, one after the other. But some experts compute
  /// all of them in one task: those that are loaded to a device, so that they are loaded once; and those
  /// that are not at devices, so that their weights are read once, if an expert has fewer than
  /// kManyExpertRows rows of each.
  /// If ranks fetch its experts, these are fetched before, and those of the next layer meanwhile.
  void add_layer(int32_t layer, RowRange rows);
  /// The same of backward. With `recompute`, first the forward tasks whose values backward reads; the
  /// layer's output is not among them.
  void add_layer_backward(int32_t layer, RowRange rows, bool recompute);
  // Of ranks of which some have the tokens and others the experts: the tasks of one micro-batch, as far as
  // this rank has them, between which a planner puts others.
  /// Up to where rows have left; then the experts, until they are back; then the layer's output.
  void begin_layer(int32_t layer, int32_t micro_batch);
  void compute_experts(Phase phase, int32_t layer, int32_t micro_batch, bool recompute);
  void end_layer(int32_t layer, int32_t micro_batch);
  /// The same of backward.
  void begin_layer_backward(int32_t layer, int32_t micro_batch, bool recompute);
  void end_layer_backward(int32_t layer, int32_t micro_batch);
  bool has_tokens() const { return ranks_.has_tokens(); }

  /// Behind the last backward of a logical shard, which are counted from 0 on this rank: a task for
  /// every place with trained tensors. With one shard nothing is to be done, unless ranks share the
  /// experts and have them at a device, where the last shard joins their gradients.
  void end_shard(int32_t shard);
  /// Of several ranks, when the gradients of a layer, or of the head, are whole: they go to their owners
  /// while the layers before it compute, as soon as those of all that they travel with are whole
  /// (layers_together). Layers come from the head down, on all ranks alike. Does nothing if end_shard has
  /// a task, for which they must wait; add_updates has those that were not added.
  void add_reduce(int32_t layer);
  /// Of several ranks, first the gradients to the owners, in the end the weights to all. Between them
  /// a norm task for every place with trained tensors, the clip task, and for each layer an update
  /// task for every place with blocks of that layer that this rank owns.
  /// If the schedule rotates, no updates: those of the step before are added before the forward tasks of
  /// the layer ahead of theirs; of several ranks before all forward tasks.
  void add_updates();
  /// If the schedule rotates: the updates of all layers up to this one that are not there yet. For a stage
  /// behind the first, before its first pass: its cores of the host have nothing else to do until then.
  void add_updates_of_stage(int32_t last);
  /// If the schedule rotates and a rule decides: the updates of all layers up to this one, one layer
  /// after the other, each by all cores of the host. Before the first task, for the first stage of each
  /// device: the first device waits for its first layer alone, and the others for those before theirs.
  void add_first_updates(int32_t last);
  /// If the schedule rotates and a rule decides: this part of the updates of these layers, as far as
  /// they are not there yet, in small tasks. Between the tasks of another stage at the same device, whose
  /// experts on the host would wait for a whole layer's updates.
  void add_updates_ahead(int32_t first, int32_t last, double part);
  /// All updates that are not there yet, and what they wrote to the ranks that compute with it.
  void add_due_updates();

  /// Where the dense parts of a layer are in a phase. Layer -1 is the embedding, the number of layers
  /// the head.
  Place dense_place(int32_t layer, Phase phase = Phase::forward) const;
  Schedule finish() { return builder_.finish(); }

 private:
  void add(TaskKind kind, Phase phase, int32_t layer, int32_t micro_batch);
  void add_layer_of(int32_t layer, RowRange rows);
  /// If ranks fetch the experts of these layers, and they are not there: they come, first those of `layer`.
  void fetch_experts(Phase phase, int32_t layer, int32_t next);
  void add_updates_through(int32_t layer);
  void add_updates_before(int32_t layer);
  void add_dispatch(Phase phase, int32_t layer, int32_t micro_batch);
  void add_combine(Phase phase, int32_t layer, int32_t micro_batch);
  void add_sums(TaskKind kind, Phase phase, int32_t layer, int32_t micro_batch);
  void add_rows_of_parts(TaskKind kind, Phase phase, int32_t layer, int32_t micro_batch);
  void add_experts(Phase phase, int32_t layer, RowRange rows);
  void add_layer_backward_at_once(int32_t layer, RowRange rows, bool recompute);
  /// If the inputs of layers wait on the host: whether those of this layer do, which end there when its
  /// forward tasks, from `first` on, are there, and come back ahead of its backward tasks.
  bool input_waits(int32_t layer) const;
  void keep_inputs(int32_t layer, RowRange rows, TaskId first);
  void bring_inputs(int32_t layer, RowRange rows);
  /// If ranks share the experts: rounds, in each of which this rank computes its experts for the rows of
  /// one rank of the group, while the rows of the next come. Phase backward with `recompute`: each
  /// round first computes again what its backward reads.
  void add_shared_experts(Phase phase, int32_t layer, RowRange rows, bool recompute);
  void send_counts(int32_t layer, RowRange rows);
  void send_round(Phase phase, int32_t layer, RowRange rows, int32_t round, bool recompute);
  void compute_round(Phase phase, int32_t layer, RowRange rows, int32_t round, bool recompute);
  Place sum_place(Phase phase, int32_t layer, int64_t vectors_moved) const;
  const std::vector<ExpertPart>& parts(Phase phase, int32_t layer) const;
  bool together(int32_t layer, RowRange rows) const;
  void add_reduces_from(int32_t layer);
  bool shards_have_tasks() const;

  const PlanInput& input_;
  ScheduleBuilder builder_;
  // By layer; empty for layers without experts. Of forward; of backward and recompute.
  std::vector<std::vector<ExpertPart>> parts_, parts_backward_;
  const bool is_training_, is_rotated_;
  const ExpertRanks ranks_;                     // that share the experts
  int32_t next_update_ = -1;                    // the layer
  const std::vector<LayersTogether> together_;  // from the head down
  size_t next_reduce_ = 0;                      // of these
  size_t next_give_ = together_.size();         // one behind, from the embedding up
  std::set<int32_t> fetched_;                   // layers whose experts are there
  static constexpr int32_t kUpdateShares = 8;   // of a layer whose updates are added ahead
  std::map<int32_t, int32_t> shares_updated_;   // of such layers
};

/// Whether the head reads the embedding's table and the table is trained. Then all heads of a step
/// add to its gradient before any embedding does, so that the order of these additions, and with it
/// the gradient's bits, is the same for every group and mode.
bool embedding_waits_for_heads(const PlanInput& input);

/// Updates alone, of the step before: what a schedule that rotates leaves to do.
Schedule drain_schedule(const PlanInput& input);

/// Forward of one micro-batch through all layers.
Schedule forward_schedule(const PlanInput& input, Pass pass, int64_t cache_rows);

}  // namespace hearth
