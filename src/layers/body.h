// What each kind of task computes: the contract between a schedule and the mathematics.
//
// A step is a schedule of tasks. A task has a kind, a layer, a micro-batch and a phase. Each kind
// has a body. The body declares the values that the task reads and writes, its blocks, its scratch
// and its floating-point operations, and it runs the task. Planners turn the values into buffers
// with addresses. One file per kind of task; together they are the model.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <string_view>
#include <vector>

#include "layers/rank_work.h"
#include "layers/settings.h"
#include "layers/split.h"
#include "layers/values.h"
#include "model/parameter_table.h"
#include "ops/op_set.h"

namespace hearth {

enum class TaskKind : uint8_t {
  embed,        // embedding of the tokens
  attention,    // A: input norm, attention, residual, post norm, router
  mlp,          // S: dense MLP or shared expert
  dispatch,     // D: tokens to their experts
  experts,      // E: the routed experts of a layer
  combine,      // C: weighted sum of the experts' outputs, and residual
  head,         // final norm and loss; its gradient is computed in the same task
  norm,         // sums of squares of the gradients at one place
  clip,         // gradient norm of all places, clip factor
  update,       // AdamW
  sample,       // a few rows of what enters a layer, for predictors of its router
  foretell,     // hands them to who decides, before attention of the layer
  decide,       // which place computes which experts of a layer: the split
  pack,         // the columns of a divided expert's maps that the device computes
  divided,      // these columns of the expert, at the device
  join,         // their gradients to the expert's home
  shard,        // ends a logical shard: adds its gradients by the tree
  reduce,       // gradients of a layer to the ranks that own its blocks
  send_counts,  // how many rows each expert of another rank gets, to that rank
  send_rows,    // rows to the rank that computes them, and another rank's rows here
  return_rows,  // what became of these rows, back to where they came from
  gather,       // sums of squares of the gradients, to all ranks
  give,         // what updates of a layer wrote, to all ranks
  fetch,        // weights of a layer's experts, from their owners to ranks that keep none
  copy          // one value from place to place; has no body
};
std::string_view name_of(TaskKind kind);

enum class Phase : uint8_t { forward, recompute, backward };
std::string_view name_of(Phase phase);

/// What a schedule is for. It decides which values backward needs, and what the head computes: the
/// loss and its gradient (train), the loss (eval), or the last token's logits (decode).
enum class Pass : uint8_t { train, eval, decode };

/// `update`: read and written in place. `temporary`: lives within one task.
enum class Access : uint8_t { read, write, update, temporary };

/// A value that a body touches. Its shape is [rows_per_token * tokens + extra_rows, cols].
struct Port {
  Value value;
  Access access = Access::read;
  DType dtype = DType::f32;
  int64_t rows_per_token = 0;
  int64_t extra_rows = 0;
  int64_t cols = 1;
  int32_t layer_offset = 0;  // the value belongs to the task's layer + layer_offset

  int64_t rows(int64_t tokens) const { return rows_per_token * tokens + extra_rows; }
  size_t bytes(int64_t tokens) const {
    return static_cast<size_t>(rows(tokens) * cols) * size_of(dtype);
  }
};

/// What a task does with blocks [begin, end) of the parameter table.
enum class BlockAccess : uint8_t { read_weights, add_gradient, read_gradient, update };
struct BlockUse {
  BlockId begin = 0;
  BlockId end = 0;
  BlockAccess access = BlockAccess::read_weights;
};

/// Floating-point operations of a task's products; a multiply-add counts as two.
struct Work {
  double per_token = 0;
  double per_pair = 0;     // a pair: a query and a key that the query sees
  double per_trained = 0;  // per trained token
  int64_t window = 0;      // most keys that a query sees; 0: all keys before it
};

/// The experts of a layer that one place computes: a part of the layer's split (layers/split.h). Or, if
/// ranks share the experts, the rows of another rank that this one computes.
///
/// Copies of rows that ranks send each other have such a part, too: guests' rows, or those of this rank
/// that other ranks compute (kAway).
struct ExpertPart {
  static constexpr Place kAll = -1, kAway = -2;
  Place place =
      kAll;  // kAll: the layer is not divided. Of guests: that rank's position in the group
  int32_t experts = 0;  // that the plan expects there
  bool guests = false;
  bool all() const { return place == kAll; }
  bool away() const { return place == kAway; }
  friend bool operator==(const ExpertPart& a, const ExpertPart& b) {
    return a.place == b.place && a.guests == b.guests;
  }
};

/// Experts [begin, end) of those of a task, in their order, which are there at one time; all, if empty.
struct ExpertWave {
  int32_t begin = 0;
  int32_t end = 0;
  bool all() const { return begin == end; }
};

/// Micro-batches [begin, end) of the step.
struct RowRange {
  int32_t begin = -1;  // -1: of no micro-batch
  int32_t end = -1;
  int32_t count() const { return end - begin; }
  bool none() const { return begin < 0; }
  friend bool operator==(const RowRange&, const RowRange&) = default;
};
/// One micro-batch; -1: none.
inline RowRange rows_of(int32_t micro_batch) {
  return {micro_batch, micro_batch < 0 ? -1 : micro_batch + 1};
}

/// Of norm and update: which of so many tasks that divide the tensors of a place, or the blocks of a
/// layer there, among them.
struct TaskShare {
  int32_t number = 0, count = 1;
};
/// The number of a norm task, which is its layer: that of the place if the place has one.
int32_t norm_number(Place place, int32_t share);

/// Everything that a body's declarations depend on.
struct TaskShape {
  const ModelSpec& spec;
  const RunSettings& settings;
  const ParameterTable& table;
  Pass pass = Pass::train;
  Phase phase = Phase::forward;
  int32_t layer = -1;
  int64_t tokens = 0;          // most tokens of a micro-batch
  int64_t longest = 0;         // most tokens of a sequence, cached keys included
  int64_t cache_rows = 0;      // rows of the key-value cache; 0: no cache
  Place place = kHostPlace;    // where the task runs
  ExpertPart part = {};        // of E
  int32_t split_places = 0;    // of the split of the layer's experts; 0: they are not divided
  int32_t segments = 1;        // micro-batches of the task; of all but E and decide one at most
  bool decided = false;        // a rule divides the layer's experts while the step runs
  bool divides = false;        // and one of them along its width, if it likes (Value::divided)
  bool first_of_group = true;  // of `divided`: it begins the group's divided_gradient
  bool rotates = false;        // updates are those of the step before
  bool rounds = false;         // experts elsewhere get tokens in bf16 (Value::normed_sent)
  bool away = false;           // the task is at another place than the dense parts of its layer
  bool sums = false;  // places with experts of the layer return sums (RunSettings::partial_sums)
  ExpertRanks ranks = {};  // that share the experts
  bool fetches = false;    // ranks fetch experts of the layer (layers/fetched_experts.h)
  TaskShare norm = {};     // of clip and gather the count alone: that of the host's places
  TaskShare update = {};
  int32_t layers = 1;  // of reduce and give: how many, from `layer` on
  /// What forward hands to the rule that decides.
  SampledRows samples = SampledRows::none;
  /// Whether tokens and their gradients are copied into expert order, from where ranks send them. Else
  /// experts read them through the routing.
  bool copies_rows() const { return ranks.divided(); }
  bool moe() const { return spec.has_experts(layer); }
  bool shared() const { return spec.has_shared_expert(layer); }
};

/// The actual size of a micro-batch.
struct BatchShape {
  int64_t tokens = 0;
  int64_t sequences = 0;
  int64_t past = 0;  // rows of the cache that earlier calls filled
};

/// A port with its buffer, which has room for the largest micro-batch. Of a task over several
/// micro-batches: the buffer of the first; the next begins `stride` bytes behind it, and so on. A value
/// of a group has one buffer for all (ValueInfo::of_group).
struct BoundPort {
  Port port;
  std::byte* data = nullptr;
  size_t stride = 0;
};

/// The rows of a value from the beginning of a micro-batch to that of the next, where a task has
/// several: so many that buffers of any width begin at aligned addresses.
inline int64_t rows_apart(int64_t rows) { return (rows + 15) / 16 * 16; }

/// The inputs of a body's run. Views have the rows of the actual micro-batch. If the task has several
/// (segments), they reach from the first row of the first to the last row of the last.
class BodyContext {
 public:
  const OpSet& ops;
  Stream& stream;
  const ModelSpec& spec;
  const RunSettings& settings;
  ParameterTable& table;
  Pass pass;
  Phase phase;
  int32_t layer;
  BatchShape batch;  // of the first micro-batch
  std::span<const BoundPort> ports;
  std::span<const BlockUse> blocks;
  Place place = kHostPlace;
  ExpertPart part = {};
  std::span<const BatchShape> batches = {};  // of all micro-batches; empty: of `batch` alone
  ExpertWave wave = {};                      // of E
  SplitRule* rule = nullptr;                 // of decide, if splits are made while the step runs
  RankWork* ranks = nullptr;                 // of what only several shards or ranks have
  /// For lists that live as long as the call: Body::lists bytes, and the heap for more.
  std::pmr::memory_resource* lists = std::pmr::get_default_resource();

  bool has(Value value) const;  // whether the task declares it
  int64_t segments() const { return batches.empty() ? 1 : std::ssize(batches); }
  /// From a segment's first row of a value to that of the next.
  int64_t stride(Value value, int32_t layer_offset = 0) const;
  /// The view of a declared value. It is a bug to ask for an undeclared value, or to ask with `out`
  /// for a value that was declared as read.
  ConstView in(Value value, int32_t layer_offset = 0) const;
  View out(Value value, int32_t layer_offset = 0) const;
  /// A single f64 that is always on the host (ValueInfo::host). A body must not access the memory
  /// of other values, which may be on a device.
  double scalar(Value value, int64_t segment = 0) const {
    return in(value).as<double>()[segment == 0 ? 0 : segment * stride(value)];
  }
  void set_scalar(Value value, double x) const { out(value).as<double>()[0] = x; }
  bool moe() const { return spec.has_experts(layer); }
  bool shared() const { return spec.has_shared_expert(layer); }
};

/// One kind of task. Has no state.
class Body {
 public:
  virtual ~Body() = default;
  virtual std::vector<Port> ports(const TaskShape& shape) const = 0;
  virtual std::vector<BlockUse> blocks(const TaskShape& shape) const = 0;
  virtual ScratchNeed scratch(const TaskShape& shape, const OpSet& ops) const = 0;
  virtual Work work(const TaskShape&) const { return {}; }
  virtual size_t lists(const TaskShape&) const { return 0; }  // bytes of the lists that `run` makes
  virtual void run(const BodyContext& c) const = 0;
};

/// The body of every task of this kind. A copy has none.
const Body& body_of(TaskKind kind);
/// Makes every task of this kind run `body`, and returns the previous body, so that tests can
/// decorate it. Do not call while a schedule runs. `body` must outlive all schedules.
const Body& replace_body(TaskKind kind, const Body& body);

/// An [n, 1] value as the vector [1, n] that ops take.
inline View row_vector(View v) { return v.reshape(1, v.rows * v.cols); }
inline ConstView row_vector(ConstView v) { return v.reshape(1, v.rows * v.cols); }

}  // namespace hearth
