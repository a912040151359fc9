// Makes a schedule from tasks in order. A planner decides the order of the tasks and their places.
// The builder asks the bodies which values they touch, makes the buffers with their lifetimes and
// addresses, and inserts copies between places.
#pragma once

#include <map>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "comm/shard_tree.h"
#include "plan/layers_together.h"
#include "plan/schedule.h"
#include "plan/zebra/zebra_order.h"

namespace hearth {

/// Whether all products of a layer's experts round its tokens to bf16, so that they may cross a link in
/// bf16. Dropout of adapters, which comes before the rounding, needs them as they are.
bool rounds_tokens(const ModelSpec& spec, const RunSettings& settings, const ParameterTable& table,
                   int32_t layer, Pass pass);

/// Inputs that all schedules of a run share. Does not own the objects that it refers to.
struct PlanInput {
  const ModelSpec& spec;
  const RunSettings& settings;
  const ParameterTable& table;
  std::vector<const OpSet*> ops;  // by place
  int64_t tokens = 0;             // upper bound per micro-batch
  int64_t longest = 0;            // upper bound per sequence
  int64_t micro_batches = 1;      // per step, those of this rank
  std::vector<SchedulePlace> places = {};
  /// By block: where the tasks run that read it, if that is not where it lives. Empty: where it lives.
  std::vector<Place> compute = {};
  /// Whether a split of each group, made while the step runs (SplitRule), divides a layer's experts
  /// between the host, where they live, and the device of the layer's dense parts, to which they
  /// travel. `compute` then has the split that the plan expects.
  bool decides = false;
  /// Whether the updates of a step come in the schedule of the next, each before the first use of what
  /// it updates, so that the host's run under the forward of devices. Who runs it gives them `due_clip`
  /// and `due_finite`, and the rate and the number of the update, of the step before.
  bool rotates = false;
  RankShards shards = {};  // of this rank; their number divides `micro_batches`
  /// What of decided layers is handed to the rule (SplitRule::entered, SplitRule::sampled).
  SampledRows samples = SampledRows::none;
  /// Whether the inputs of a device's layers wait on the host between forward and backward.
  bool inputs_on_host = false;
  /// `compute` of the tasks of backward and recompute, if stages are cut apart for them. Empty: the
  /// same as of forward.
  std::vector<Place> compute_backward = {};
  /// Of zebra: the order of groups of as many micro-batches as it has. Empty: Theorem 1's.
  ZebraOrder zebra_order = {};
  /// Whether, in training, the rule may also divide one expert of a decided layer along its width, so that
  /// the host and the device compute it (SplitRule::divided).
  bool divides_experts = false;

  int64_t micro_batches_of_shard() const { return micro_batches / shards.count(); }
  /// Where the tasks of a phase read the block.
  Place compute_place(BlockId block, Phase phase = Phase::forward) const {
    if (phase != Phase::forward && !compute_backward.empty()) {
      return compute_backward[static_cast<size_t>(block)];
    }
    return compute.empty() ? table.block(block).place : compute[static_cast<size_t>(block)];
  }
  /// Whether the places that compute a layer's experts are decided while the step runs: the layer has
  /// experts, and its dense parts are at a device.
  bool decided(int32_t layer) const {
    if (!decides || layer < 0 || layer >= spec.layers || !spec.has_experts(layer)) return false;
    return places[static_cast<size_t>(compute_place(table.find_block(BlockKind::attention, layer)))]
        .device;
  }
  bool divides(int32_t layer, Pass pass) const {
    return divides_experts && pass == Pass::train && decided(layer);
  }
  /// Whether some of a layer's experts are, or may be, computed at another place than its dense parts.
  bool experts_apart(int32_t layer) const;
  /// Whether such places return one sum per token (RunSettings::partial_sums).
  bool sums(int32_t layer) const { return settings.partial_sums && experts_apart(layer); }
  /// Whether such places get a layer's tokens in bf16 (rounds_tokens).
  bool rounds(int32_t layer, Pass pass) const {
    return experts_apart(layer) && rounds_tokens(spec, settings, table, layer, pass);
  }
  /// Whether the block is copied to where it is read.
  bool travels(BlockId block) const { return compute_place(block) != table.block(block).place; }
};

class ScheduleBuilder {
 public:
  ScheduleBuilder(const PlanInput& input, Pass pass, int64_t cache_rows = 0);

  /// Appends a task at a place. A write creates a buffer there. A read uses the latest version of
  /// the value; if that version is only at another place, a copy task is inserted first. Input
  /// values are allocated on the host of the place on first use.
  void add(TaskKind kind, Phase phase, int32_t layer, int32_t micro_batch,
           Place place = kHostPlace) {
    add(kind, phase, layer, micro_batch, place, place);
  }
  /// The same, where a task at a host works for the device at `for_place`.
  void add(TaskKind kind, Phase phase, int32_t layer, int32_t micro_batch, Place place,
           Place for_place);
  /// The same of the part of a layer's experts that `part.place` computes; it runs at `place`.
  void add_part(TaskKind kind, Phase phase, int32_t layer, int32_t micro_batch,
                const ExpertPart& part, Place place, Place for_place);
  /// The norms of a place's gradients. A host with a stream for each device divides them among these
  /// streams, since all cores are free then.
  void add_norms(Place place);
  /// A share of the updates of a layer at a place. Nothing, if it has no blocks.
  void add_update(int32_t layer, TaskShare share, Place place, Place for_place);
  /// The update of a layer, by all compute streams of a place of the host together: a share for each.
  void add_update_by_lanes(int32_t layer, Place place);
  /// Before the tasks of a layer whose experts are divided, of a decided one behind attention: a task
  /// at the host that makes the split which dispatch, experts and copies of these micro-batches use
  /// from here on.
  void add_decide(int32_t layer, RowRange rows, Place dense);
  /// Before attention of a decided layer, with SampledRows::layer: tasks that hand samples of what
  /// enters it to the rule.
  void add_foretell(int32_t layer, RowRange rows, Place dense);
  /// If ranks share the experts (PlanInput::shards), in training: a task of these micro-batches that
  /// exchanges rows with the other ranks, or their counts, on a stream of its way at the host; of
  /// direct rows at the device. `guest`: the position in the group whose rows come, or are computed here; of
  /// counts none.
  void add_exchange(TaskKind kind, Phase phase, int32_t layer, RowRange rows, int32_t guest = -1);
  /// Of several ranks: gradients or weights of neighbouring layers between them. Nothing if none of these
  /// layers is trained.
  void add_collective(TaskKind kind, const LayersTogether& layers);
  /// Of several ranks: weights of a layer's experts, from their owners to ranks that keep none.
  void add_fetch(Phase phase, int32_t layer);
  /// The experts of this rank for the rows of a rank of the group, where these experts are.
  void add_guests(Phase phase, int32_t layer, RowRange rows, int32_t guest);
  /// Appends experts tasks for every part, one a place, which together must have every expert once: at
  /// devices where they live one for each micro-batch, elsewhere one for all of `rows`, so that
  /// weights are read, or loaded, once. The routed values are whole at
  /// `dense`: each part's rows are copied to its place, and its results back. A single part is the
  /// whole layer, whatever its place, and needs no split.
  void add_experts(Phase phase, int32_t layer, RowRange rows, Place dense,
                   std::span<const ExpertPart> parts);
  /// If an expert of the layer may be divided: for the micro-batches of a group, packs the device's columns
  /// of its weights, computes them, or joins their gradients with those at home. `pack` comes before
  /// `divided`, which follows the experts tasks of its phase; `join` is behind backward.
  void add_pack(Phase phase, int32_t layer, RowRange rows, Place dense);
  void add_divided(Phase phase, int32_t layer, RowRange rows, Place dense);
  /// A value of a layer waits on the host until it is read again: what devices have of it is copied out,
  /// and given up when as many tasks more were added as `stays`, so that these need not wait for the
  /// copy.
  void keep_on_host(Value value, int32_t layer, int32_t micro_batch, TaskId stays);
  /// Copies such a value to a device, ahead of its readers.
  void bring_back(Value value, int32_t layer, int32_t micro_batch, Place device);
  TaskId tasks() const { return static_cast<TaskId>(schedule_.tasks.size()); }
  /// Whether a task of this kind would write anything.
  bool writes(TaskKind kind, Phase phase, int32_t layer, const ExpertPart& part, Place place) const;

  /// Inserts the copies of results to the hosts, assigns lifetimes, classes and addresses, and
  /// returns the validated schedule.
  Schedule finish();

 private:
  /// A value of a layer and a micro-batch; of a part of a routed value, and of a value of a part, its
  /// place (else kAll).
  using Key = std::tuple<Value, int32_t, int32_t, Place>;
  static constexpr Place kWhole = ExpertPart::kAll;
  /// Of a routed value that ranks send: its rows that other ranks compute, on the host.
  static constexpr Place kAway = ExpertPart::kAway;

  TaskShape shape_of(Phase phase, int32_t layer, Place place, ExpertPart part = {},
                     int32_t segments = 1) const;
  bool divided(int32_t layer) const;
  /// Whether the key is of a part of a routed value.
  static bool is_part(const Key& key) {
    return std::get<3>(key) >= 0 && info_of(std::get<0>(key)).routed;
  }
  /// Where gradients and weights of ranks come and go: the host, or the device if they go directly.
  Place messages_place() const;
  Place place_of_own_experts(int32_t layer, Phase phase) const;
  bool sends_from_device(const Task& task) const;
  ExpertPart exchanged_part(const Key& key, const Task& task) const;
  Key key_of(const Port& port, const Task& task, int32_t micro_batch) const;
  void append(TaskKind kind, const TaskShape& shape, RowRange rows, Place for_place);
  /// Puts the buffers of a port of a task of several micro-batches side by side.
  void join(std::span<const BufferUse> uses);
  BufferId buffer_of(const Port& port, const Key& key, Place place);
  BufferId new_buffer(const Port& port, const Key& key, BufferClass use, Place place);
  /// Of a value that a task reads, at its place. Where the host works for a device, a value of another
  /// device comes by way of that device: a copy from the other device would wait in its stream behind
  /// copies for which it is not time yet.
  void bring_for(const Port& port, const Key& key, const Task& task, Place for_place);
  /// Of a value that a task reads: makes sure that its latest version is at the place. It comes from
  /// `rather_from` if it is there.
  void bring(const Port& port, const Key& key, const Task& task, Place place,
             Place rather_from = ExpertPart::kAll);
  void bring_part(const Key& key, const Task& task, Place place);
  void bring_away(const Port& port, const Key& key, const Task& task, Place place);
  void take_returned(const Key& key, const Task& task, Place place);
  void gather_parts(const Key& key, const Task& task, Place place);
  /// For copies of parts: the offsets on the host, which say where their rows are.
  void bring_offsets(const Key& of, const Task& task, Place place);
  void forget_versions(const Key& key);
  /// `micro_batch`: of who reads it, if the value is one of a group.
  void add_copy(BufferId from, BufferId to, Phase phase, ExpertPart part = {},
                int32_t micro_batch = -1);
  void begin_early();
  void let_copies_be_idle();
  void set_lifetimes();

  Place place_of_value(Value value, Place task) const {
    return info_of(value).host ? schedule_.host_of(task) : task;
  }
  int32_t lanes_of_host() const { return schedule_.places[kHostPlace].lanes; }
  int32_t stream_of(Place place, StreamUse use, Place for_place) const;
  int32_t carrier_of(Place from, Place to, Place& carrier) const;
  /// At the host.
  int32_t exchange_stream(RowsGo go) const {
    const int32_t first = stream_of(kHostPlace, StreamUse::exchange, kHostPlace);
    return input_.shards.group().ways_apart() && go == RowsGo::back ? first + 1 : first;
  }

  const PlanInput& input_;
  Schedule schedule_;
  std::map<Key, std::map<Place, BufferId>>
      newest_;                         // buffers with the latest version of a value, by place
  std::map<Key, ExpertPart> part_of_;  // of keys of parts
  std::set<Key> returned_;             // rows that came back to the host, and are read nowhere yet
  std::map<BufferId, TaskId> left_;    // of buffers given up later than their last use: when
  int32_t strips_ = 0;
};

}  // namespace hearth
