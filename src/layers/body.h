// What each kind of task computes: the contract between a schedule and the mathematics.
//
// A step is a list of tasks. A task has a kind, a layer, a micro-batch and a phase; the body of its
// kind declares the values it reads and writes (planners turn them into buffers with addresses),
// the blocks it uses, its scratch and its floating-point operations, and runs it. This is where a
// reader finds the model: one file a kind.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "layers/settings.h"
#include "layers/values.h"
#include "model/parameter_table.h"
#include "ops/op_set.h"

namespace hearth {

/// A: input norm, attention, residual, post norm, gate. S: dense MLP or shared expert. D, C: dispatch
/// and combine. E: the routed experts of a layer. The head is forward and backward of the loss in one.
/// A copy brings one value from the place of one task to that of another; it has no body.
enum class TaskKind : uint8_t {
  embed,
  attention,
  mlp,
  dispatch,
  experts,
  combine,
  head,
  norm,
  clip,
  update,
  copy
};
std::string_view name_of(TaskKind kind);

enum class Phase : uint8_t { forward, recompute, backward };
std::string_view name_of(Phase phase);

/// What a list is for: decides what is kept and what the head does (loss with gradient, loss alone,
/// logits of the last token).
enum class Pass : uint8_t { train, eval, decode };

/// `update` reads and writes. A `temporary` lives within the task.
enum class Access : uint8_t { read, write, update, temporary };

/// A value that a body touches, of [rows_per_token * tokens + extra_rows, cols].
struct Port {
  Value value;
  Access access = Access::read;
  DType dtype = DType::f32;
  int64_t rows_per_token = 0;
  int64_t extra_rows = 0;
  int64_t cols = 1;
  int32_t layer_offset = 0;  // of values that belong to a layer: task's layer + offset

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

/// Floating-point operations of a task's products (2 a multiply-add), by what they grow with: tokens,
/// pairs of a query and a key that it sees, and trained tokens.
struct Work {
  double per_token = 0;
  double per_pair = 0;
  double per_trained = 0;
  int64_t window = 0;  // keys that a query sees at most, 0: all before it
};

/// Everything a declaration depends on.
struct TaskShape {
  const ModelSpec& spec;
  const RunSettings& settings;
  const ParameterTable& table;
  Pass pass = Pass::train;
  Phase phase = Phase::forward;
  int32_t layer = -1;
  int64_t tokens = 0;        // bound of a micro-batch
  int64_t longest = 0;       // bound of a sequence, cached keys included
  int64_t cache_rows = 0;    // rows of the key-value cache, 0 = no cache
  Place place = kHostPlace;  // where the task runs
  bool moe() const { return spec.has_experts(layer); }
  bool shared() const { return spec.has_shared_expert(layer); }
};

/// A micro-batch as a step sees it. `past`: rows of the cache that were filled before.
struct BatchShape {
  int64_t tokens = 0;
  int64_t sequences = 0;
  int64_t past = 0;
};

/// A port with the buffer that the plan gave it, of the bound's size.
struct BoundPort {
  Port port;
  std::byte* data = nullptr;
};

/// What a body runs with. Views have the rows of the actual micro-batch.
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
  BatchShape batch;
  std::span<const BoundPort> ports;
  std::span<const BlockUse> blocks;
  Place place = kHostPlace;

  /// The value as declared; a bug if it was not declared, or not for writing (`out`).
  ConstView in(Value value, int32_t layer_offset = 0) const;
  View out(Value value, int32_t layer_offset = 0) const;
  /// A value of one f64 that is on the host (ValueInfo::host); others a body must not look at.
  double scalar(Value value) const { return in(value).as<double>()[0]; }
  void set_scalar(Value value, double x) const { out(value).as<double>()[0] = x; }
  bool moe() const { return spec.has_experts(layer); }
  bool shared() const { return spec.has_shared_expert(layer); }
};

/// One kind of task. Stateless.
class Body {
 public:
  virtual ~Body() = default;
  virtual std::vector<Port> ports(const TaskShape& shape) const = 0;
  virtual std::vector<BlockUse> blocks(const TaskShape& shape) const = 0;
  virtual ScratchNeed scratch(const TaskShape& shape, const OpSet& ops) const = 0;
  virtual Work work(const TaskShape&) const { return {}; }
  virtual void run(const BodyContext& c) const = 0;
};

/// Of any kind but copy.
const Body& body_of(TaskKind kind);

/// A [n, 1] value as the vector [1, n] that ops take.
inline View row_vector(View v) { return v.reshape(1, v.rows * v.cols); }
inline ConstView row_vector(ConstView v) { return v.reshape(1, v.rows * v.cols); }

}  // namespace hearth
