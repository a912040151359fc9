// A planned run in memory: arenas reserved and touched, weights bound, executors ready. The trainer,
// evaluation and generation drive it; it knows no files but the checkpoint.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/state_registry.h"
#include "budget/placed_model.h"
#include "data/samples/sampler.h"
#include "device/device_memory.h"
#include "plan/bound.h"
#include "runtime/executor.h"

namespace hearth {

/// What a training step gives back.
struct StepResult {
  double loss_sum = 0;  // cross-entropies of the trained tokens
  double aux_loss = 0;  // mean over micro-batches by tokens
  double z_loss = 0;    // the same of the router's z-loss; 0 where none is computed
  double grad_norm = 0;
  bool finite = true;  // else no weight changed
  int64_t tokens = 0;
  int64_t trained_tokens = 0;
  std::vector<std::vector<double>> expert_tokens;  // tokens by expert, a MoE layer
  std::vector<BatchWork> work;                     // of the micro-batches
  double busy_s = 0;                               // of compute, summed over the workers
  std::map<std::string, uint64_t> link_bytes;      // copied, by "FROM->TO" of places
};

/// The largest number of tokens that an expert got over the mean, a MoE layer.
std::vector<double> expert_load(const std::vector<std::vector<double>>& expert_tokens);

/// Which step it is: from 1, counting all, and counting those that changed weights.
struct StepNumbers {
  int64_t step = 1, update = 1;
  double lr = 0;
};

struct EvalResult {
  double loss_sum = 0;
  double aux_loss = 0;
  int64_t tokens = 0;
  int64_t trained_tokens = 0;
  std::vector<double> expert_load;
  /// Tokens that each expert got, by layer; empty for layers without experts.
  std::vector<std::vector<double>> expert_tokens;
  double loss() const { return loss_sum / static_cast<double>(trained_tokens); }
};

/// What the one who drives training steps has a say in.
struct StepHooks {
  /// Asked before every task until the first update; true abandons the step.
  std::function<bool()> abandon = {};
  /// Called before an update changes any of the first `views` views of the state's components; may
  /// wait.
  std::function<void(size_t views)> before_update = {};
};

class Session {
 public:
  /// Reserves all memory of the plan. `model` must outlive the session. Weights are zero until read
  /// or restored.
  explicit Session(const PlacedModel& model);
  ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// The model's, and those of its adapters: read, or drawn where training begins.
  void read_weights();
  /// Fills the gradients of all that is trained with the weights that training began with, read or
  /// drawn again; for after the last step.
  void read_start();

  /// One optimizer step; nothing if it was abandoned.
  std::optional<StepResult> train_step(const std::vector<MicroBatch>& batches,
                                       const StepNumbers& numbers, const StepHooks& hooks = {});
  /// The timeline of the last step.
  const Trace& trace() const { return trace_; }

  EvalResult evaluate(EvalBatches& batches, const std::function<bool()>& stop = {});
  /// Of the batches that `next` gives, until it gives none.
  EvalResult evaluate(const std::function<std::optional<MicroBatch>()>& next,
                      const std::function<bool()>& stop);

  /// Logits of the last of `ids`, which stand behind `past` cached tokens. At most decode_tokens.
  const float* decode(std::span<const int32_t> ids, int64_t past);

  /// Bytes that it holds of the devices' memories, from its start to its end.
  uint64_t device_bytes() const { return device_bytes_; }
  /// What its memory takes, as the system counts it.
  MeasuredMemory measured_memory() const;

  /// Registers masters and moments: views in the order of the table, which is that of the updates.
  void register_state(StateRegistry& registry);
  const Pool& pool() const { return *pool_; }
  /// The model's table, bound to the memory of the session.
  const ParameterTable& table() const { return table_; }

 private:
  /// Schedules share memory, so the tables are made again when another schedule takes its turn.
  void fill_rope(const Executor& executor);
  std::vector<std::vector<double>> expert_tokens(const Executor& executor,
                                                 int32_t micro_batches) const;
  double busy_seconds() const;
  /// Of a component, those of tensors up to the last one that the task's blocks hold.
  size_t views_through(const Task& update) const;

  struct PlacedArena {
    Place place;
    CopyRole role;
    std::unique_ptr<Arena> arena;
  };

  /// The pairs as training begins with them; of a model alone, nothing.
  void read_adapters();

  const PlacedModel& model_;  // whose devices outlive what was made with them
  const OpenedModel& opened_;
  const Plan& plan_;
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<DeviceMemory> memory_;  // of the table
  ParameterTable table_;
  std::vector<PlacedArena> parameters_;
  Workspace workspace_;
  std::unique_ptr<Executor> train_, eval_, decode_;
  const Executor* rope_of_ = nullptr;  // whose tables are in place
  Trace trace_;
  uint64_t device_bytes_ = 0;
  uint64_t schedules_bytes_ = 0, read_bytes_ = 0;  // measured
};

}  // namespace hearth
