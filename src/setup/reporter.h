// Receives the progress of a run, for a console or for files in the run directory. The trainer
// calls it from one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "comm/expert_wire.h"

namespace hearth {

/// One optimizer step (the keys of metrics.jsonl).
/// The step of one of several ranks.
struct RankMetrics {
  int32_t rank = 0;
  std::string host;
  double time_s = 0, wait_s = 0;  // of the step; of these, waiting for other ranks
  int64_t tokens = 0;             // of its micro-batches
  std::string role = {};          // with zebra: "attention" or "experts"
};

/// Of a step: shares, 0 to 1; none: there was nothing to foretell, or nothing foretold it.
struct PredictionShares {
  std::optional<double> token_hit;      // of the choices of tokens
  std::optional<double> least_quarter;  // of the E/4 least popular experts
  std::optional<double> byte_hit;       // of the bytes of experts that computed on devices
};

struct StepMetrics {
  int64_t step = 0;
  std::string time;                 // when the step had ended, in UTC, as in journal.jsonl
  double epoch = 0;                 // passes over the data so far, fractions included
  std::optional<double> eval_loss;  // of an evaluation after the step
  double loss = 0;                  // mean cross-entropy per trained token
  double aux_loss = 0;              // without its coefficient
  std::optional<double> z_loss;     // without its coefficient; none if not used
  double grad_norm = 0;             // before clipping
  double lr = 0;
  int64_t tokens = 0;
  int64_t trained_tokens = 0;
  double time_s = 0;
  double tokens_per_s = 0;
  double bound_pct = 0;  // lower bound of the step's time over the measured time, in percent
  uint64_t peak_rss_bytes = 0;
  std::map<std::string, uint64_t> peak_device_bytes;  // by device
  std::map<std::string, uint64_t> bytes;              // per link
  std::map<std::string, double> busy;                 // per resource, seconds
  std::string limit;                                  // the resource that bounded the step
  std::map<std::string, double> stall_s;  // per resource: seconds in which its work waited
  double late_load_s = 0;                 // work waited for loads that the plan assumed had arrived
  std::map<std::string, double> cpu_s;    // workers' seconds: products, sweeps, waiting
  std::vector<double> expert_load;        // per MoE layer: busiest expert / mean
  std::vector<std::vector<double>> tokens_by_expert;  // [MoE layer][expert], if asked for
  /// Of the routed tokens whose expert was loaded to a device: the share whose expert was there or under
  /// way before its counts were known; none if none was loaded.
  std::optional<double> expert_hit_rate;
  /// How good it was what a rule foretold of its decisions; none: no rule decides.
  std::optional<PredictionShares> prediction;
  /// Of each layer: the share of its weights that was on devices, mean over the step; empty if weights
  /// neither travel nor are divided by heat.
  std::vector<double> residency;
  /// Tasks that took longer than the cost table of their place says; none without a table.
  std::optional<int64_t> paced_late;
  std::map<std::string, double> paced_late_s;  // by how much in all, by place
  std::vector<RankMetrics> ranks;              // empty: one rank
  std::vector<WiredStep> wire;                 // by layer with experts; empty: they travel dense
  bool skipped = false;                        // loss or gradient not finite: no update
  std::optional<std::string> state_digest;  // root digest of the state after the step, if computed
};

/// Counts of experts as whole numbers: a list by MoE layer of lists by expert. Leaves empty layers
/// out: they are dense.
Json counts_by_expert(const std::vector<std::vector<double>>& counts);
/// The step's object in metrics.jsonl.
Json to_json(const StepMetrics& metrics);

class Reporter {
 public:
  virtual ~Reporter() = default;
  /// A line for people (stderr).
  virtual void note(const std::string& line) = 0;
  virtual void warn(const std::string& line) = 0;
  /// A line for people who asked for more (--verbose).
  virtual void detail(const std::string& line) { note(line); }
  /// Progress of long work before step 1: `done` of `total` bytes (0: unknown). Called often, at
  /// the end with an empty `what`.
  virtual void progress(const std::string& what, uint64_t done, uint64_t total) {
    static_cast<void>(what), static_cast<void>(done), static_cast<void>(total);
  }
  /// Called after each step. `last`: number of steps of the run.
  virtual void step(const StepMetrics& metrics, int64_t last) = 0;
};

}  // namespace hearth
