// A planned run in memory: arenas reserved and touched, weights bound, executors ready. Training,
// evaluation and generation use it. The only files that it reads are the model and its adapter.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/state_registry.h"
#include "budget/placed_model.h"
#include "data/samples/sampler.h"
#include "device/device_memory.h"
#include "plan/bound.h"
#include "plan/decisions/split_decider.h"
#include "plan/step_use.h"
#include "runtime/executor.h"
#include "runtime/shared_parameters.h"
#include "state/parameter_state.h"
#include "train/step_parts.h"

namespace hearth {

/// The result of a training step.
struct StepResult {
  double loss_sum = 0;  // cross-entropy, summed over trained tokens
  double aux_loss = 0;  // mean over micro-batches, weighted by tokens
  double z_loss = 0;    // router z-loss, the same mean; 0 if not computed
  double grad_norm = 0;
  bool finite = true;  // if false, no weight changed
  int64_t tokens = 0;
  int64_t trained_tokens = 0;
  std::vector<std::vector<double>> expert_tokens;  // [MoE layer][expert]: tokens
  std::vector<BatchWork> work;                     // per micro-batch
  StepUse use;                                     // of devices, links and workers
  double late_load_s = 0;  // work waited for loads that were to be there by then
  /// Of the routed tokens whose expert was loaded to a device: the share whose expert was there or under
  /// way when its task began. None: no expert was loaded.
  std::optional<double> expert_hit_rate;
  std::vector<SplitDecision> decisions;  // about experts, layer by layer; empty: none were made
  std::optional<PredictionScore> prediction;  // of these decisions; none: no rule decides
  std::vector<double> residency;              // StepMetrics::residency
  double save_wait_s = 0;                     // updates waited for a save
  std::vector<RankStep> ranks;                // by rank; empty: one rank
  std::vector<WiredStep> wired;               // StepMetrics::wire
  int signal = 0;                             // StepPart::signal, of any rank
  std::map<std::string, PacedTasks> paced;    // by place; only places with cost tables
};

/// Per MoE layer: tokens of the busiest expert divided by the mean.
std::vector<double> expert_load(const std::vector<std::vector<double>>& expert_tokens);

/// `step` counts all steps; `update` counts steps that changed weights. Both start at 1.
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

/// A device whose budget has fallen.
struct ShrunkDevice {
  std::string device;
  uint64_t budget = 0;  // bytes, from now on
  /// Bytes that the run takes there with the fewest slots. Above the budget: nothing is left to drop,
  /// and the run cannot go on.
  uint64_t needed = 0;
  int64_t slots = 0;  // given up
  ShrinkReport dropped;
};

/// Callbacks of the training loop.
struct StepHooks {
  /// Called before tasks, until the step's updates begin. If it returns true, the step is abandoned.
  std::function<bool()> abandon = {};
  /// Called before an update changes any of the first `views` views of the state's components. May
  /// block.
  std::function<void(size_t views)> before_update = {};
};

class Session {
 public:
  /// Reserves all memory of the plan. `model` must outlive the session, and so must `team`: of a plan
  /// for several ranks, else null. Weights are zero until read or restored. `repeated`: the decisions
  /// that training makes about experts; null: as the policy says.
  explicit Session(const PlacedModel& model, RankTeam* team = nullptr,
                   std::shared_ptr<const RecordedSplits> repeated = nullptr);
  ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Loads the weights of the model and its adapters. New adapters are drawn from the seed.
  void read_weights();
  /// Loads the initial weights of all trained tensors into their gradient buffers. Call it only
  /// after the last step.
  void read_start();

  /// One optimizer step over all of its micro-batches, of which each rank computes its own; the result
  /// is that of all ranks. nullopt if it was abandoned; with several ranks it never is. If the plan's
  /// schedule rotates, its updates are due when it returns: the next step makes them, or `drain`, also
  /// if that step is abandoned. Until then weights and moments are those of the step before, and
  /// nothing but the next step may use them.
  std::optional<StepResult> train_step(const std::vector<MicroBatch>& batches,
                                       const StepNumbers& numbers, const StepHooks& hooks = {});
  /// Makes the updates that are due, if there are any. Comes before anything else that reads weights or
  /// state.
  void drain(const StepHooks& hooks = {});
  bool updates_are_due() const { return due_.has_value(); }
  /// Before a step: devices drop copies of weights and gradients until they are within a new budget.
  /// That is shrink= of --devices, if it takes effect at this step or did at an earlier one; each device
  /// once. And a GPU gives memory back if other programs have left too little of it free. No result
  /// changes.
  std::vector<ShrunkDevice> shrink_devices(int64_t step);
  /// Between steps, with no updates due and no save in flight: experts exchange their memory and places.
  /// `replan` then gives the model of this session the schedules for the new places, which need no more
  /// memory than those before. No result changes.
  void swap_experts(std::span<const ExpertSwap> swaps, const std::function<void()>& replan);
  /// Null: one rank with one logical shard.
  SharedParameters* shared() { return shared_.get(); }
  /// The timeline of the last step, and the copies of blocks in it.
  const Trace& trace() const { return trace_; }
  const std::vector<BlockCopy>& block_copies() const { return block_copies_; }

  EvalResult evaluate(EvalBatches& batches, const std::function<bool()>& stop = {});
  /// Evaluates batches from `next` until it returns nullopt.
  EvalResult evaluate(const std::function<std::optional<MicroBatch>()>& next,
                      const std::function<bool()>& stop);

  /// Logits of the last token of `ids`. The ids follow `past` cached tokens; at most decode_tokens
  /// ids.
  const float* decode(std::span<const int32_t> ids, int64_t past);

  /// Between steps: what decisions of training know of earlier steps. Empty: nothing is decided.
  std::vector<DecidedPast> decided_past() const;
  /// Decisions go on as in the run that had this past.
  void restore_decided_past(std::span<const DecidedPast> past);

  /// Bytes of memory that the session uses on each device, by name.
  const std::map<std::string, uint64_t>& device_bytes() const { return device_bytes_; }
  /// Workers on the cores of the host, of all places that compute.
  int workers() const;
  /// The memory of the session, as the system counts it.
  MeasuredMemory measured_memory() const;

  /// Registers masters and moments of what this rank owns; with `elsewhere` of all that is trained
  /// (state/parameter_state.h).
  void register_state(StateRegistry& registry, const TensorsElsewhere* elsewhere = nullptr);
  /// Registers the trained weights in memory here, to replace them by those of a state.
  void register_weights(StateRegistry& registry) { register_masters(registry, table_); }
  const Pool& pool() const { return *pool_; }
  /// The model's table, bound to the memory of the session.
  const ParameterTable& table() const { return table_; }

 private:
  /// Schedules share memory, so switching to another schedule refills the rope tables.
  void fill_rope(const Executor& executor);
  std::vector<std::vector<double>> expert_tokens(const Executor& executor,
                                                 int32_t micro_batches) const;
  /// Number of views that this rank owns of a component, up to the last tensor that the task updates.
  size_t views_through(const Task& update) const;

  struct PlacedArena {
    Place place;
    CopyRole role;
    std::unique_ptr<Arena> arena;
  };

  /// The memory of sums over logical shards and ranks, if there are any.
  void make_shared(std::span<Device* const> devices, std::span<const PlaceArenas> arenas);
  /// Slots of the devices to which weights travel. Tells the places.
  void make_residencies();
  void make_residency(const DeviceLoads& loads);
  std::vector<LinkRates> link_rates() const;
  RunOptions options_of(const StepHooks& hooks, double& save_wait_s) const;
  /// Gives a schedule that rotates the updates that are due.
  void give_due(const Schedule& schedule, const Executor& executor) const;
  /// For the places as they are now. Replaces those that are there.
  void make_executors();
  ShrunkDevice shrink(Place at, uint64_t budget, std::string why);
  /// The budget with which a device has free again what the run began with, up to kFreeBytes; nullopt: it
  /// has, or nothing is left to drop.
  std::optional<uint64_t> budget_beside_others(Place at);
  /// Slots lie in one piece of memory, so a GPU gives some back by reserving a smaller one.
  void make_smaller(Place at, const std::vector<SlotClass>& classes);
  /// Null: splits are not decided while the schedule runs.
  SplitRule* split_rule(const Schedule& schedule);
  void make_predictor();
  void start_predictor();
  /// Of training; null: nothing is decided there.
  SplitDecider* training_rule() const {
    return plan_.train && !splits_.empty() ? splits_.front().get() : nullptr;
  }
  /// Seconds that leases waited for loads that were asked for ahead; since the start.
  double late_loads() const;
  double busiest_place_s(const StepUse& use) const;
  /// Of each layer the share of its parameters that were on devices, mean over the last `seconds`, in
  /// which nobody else took the stays. Empty: StepMetrics::residency.
  std::vector<double> take_shares(double seconds);
  /// The copies of blocks since the last call, from `start` of the clock on.
  std::vector<BlockCopy> take_block_copies(double start);
  /// Those between devices and the host for other ranks, too.
  void add_rank_copies(double start);
  /// Runs one micro-batch outside of training; its copies of blocks are in no timeline.
  void run_alone(Executor& executor, const BatchShape& shape);
  /// Loads the initial adapters. Does nothing if there are none.
  void read_adapters();

  const PlacedModel& model_;  // its devices must outlive the arenas below
  const OpenedModel& opened_;
  const Plan& plan_;
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<DeviceMemory> memory_;  // of the table
  ParameterTable table_;
  RankTeam* const team_;
  std::vector<PlacedArena> parameters_, sums_;  // sums_: gradients aside, and from other ranks
  std::vector<std::shared_ptr<void>> pinned_;   // what goes between ranks
  std::unique_ptr<World> between_devices_;      // of direct messages, else null
  std::unique_ptr<SharedParameters> shared_;
  Workspace workspace_;
  std::vector<PlaceParts> parts_;
  std::unique_ptr<PinnedHomes> homes_;                   // of what travels; null: nothing does
  std::vector<std::unique_ptr<Residency>> residencies_;  // by place; null: nothing travels there
  const std::shared_ptr<const RecordedSplits> repeated_;
  std::unique_ptr<RouterPredictor> predictor_;         // null: history foretells
  std::unique_ptr<RouterForesight> routers_;           // with it
  std::vector<std::unique_ptr<SplitDecider>> splits_;  // of the executors that decide
  std::vector<std::vector<SlotClass>> slots_;  // by place: those that are left of the plan's
  std::set<Place> shrunk_;
  std::map<Place, uint64_t> free_at_start_;  // of devices whose memory other programs may take
  std::unique_ptr<Executor> train_, drain_, eval_, decode_;
  struct DueUpdates {
    StepNumbers numbers;
    double clip = 0, finite = 0;
  };
  std::optional<DueUpdates> due_;
  const Executor* rope_of_ = nullptr;  // executor whose rope tables are in memory
  Trace trace_;
  std::vector<BlockCopy> block_copies_;
  std::map<std::string, uint64_t> device_bytes_;
  uint64_t schedules_bytes_ = 0;             // measured, or as planned of ranks that are threads
  std::optional<uint64_t> read_bytes_ = {};  // measured, if it could be
};

}  // namespace hearth
