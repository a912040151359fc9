// The resolved options of a run. The option table in tools/ fills it; nothing here parses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/expert_wire.h"
#include "data/rows/rows.h"
#include "device/link_rate.h"
#include "device/rank_devices.h"
#include "layers/settings.h"
#include "peft/adapter.h"
#include "plan/decisions/foresight.h"
#include "plan/zebra/zebra_order.h"
#include "setup/cpu_share.h"

namespace hearth {

enum class LrSchedule : uint8_t { constant, linear, cosine, cosine_with_min_lr, inverse_sqrt, wsd };
enum class ComputeChoice : uint8_t { automatic, f32, bf16 };
enum class Recompute : uint8_t { none, blocks, automatic };
enum class ResumeMode : uint8_t { automatic, never, from_directory };

enum class Method : uint8_t { full, lora };

/// What makes a state the best: the lowest evaluation loss.
enum class BestMetric : uint8_t { eval_loss };

/// Which adapters are trained; see AdapterOptions.
struct LoraConfig {
  int64_t lora_rank = 16;
  std::optional<int64_t> expert_rank;  // unset: lora_rank
  double lora_alpha = 32;
  double lora_dropout = 0;
  bool rslora = false;
  double lora_plus_ratio = 1;  // learning rate of B over that of A
  std::vector<std::string> lora_targets = {"attention", "experts"};
  double experts_top = 0;  // percent of a layer's experts that get adapters; 0: all
};

/// Every `steps` steps or `seconds` seconds, or at the last step of each epoch; none of them: never.
struct Interval {
  std::optional<int64_t> steps;
  std::optional<double> seconds;
  bool epoch = false;
  bool is_set() const { return steps || seconds || epoch; }
};

/// Options that model and data commands share. `--help` shows the same defaults.
struct RunConfig {
  std::string model;               // directory
  std::string model_name = {};     // as the user gave it: a path, org/name, org/name@revision
  std::string adapter;             // directory of an adapter to add to the model; empty: none
  bool accept_other_base = false;  // accept a base that the adapter was not trained on
  AdapterLayout adapter_layout = AdapterLayout::per_expert;
  std::vector<std::string> data;
  RowFormat format = RowFormat::automatic;
  std::string chat_template;                    // file or name; empty: the model's
  std::string template_date;                    // today's date for templates; empty: today
  std::vector<std::string> template_args = {};  // NAME=VALUE, variables of templates
  TrainOn train_on = TrainOn::automatic;        // for chats; every token of a text is trained
  bool no_special_in_content = false;           // read special tokens in messages as text
  Overflow overflow = Overflow::truncate;
  std::vector<std::string> columns = {};  // FIELD=COLUMN of rows
  int64_t max_samples = 0;                // first rows of each file; 0: all
  int64_t skip_bad_rows = 0;
  uint64_t data_cache = uint64_t{20} << 30;  // limit for cached rows of all runs, in bytes

  int64_t seq_len = 2048;
  int64_t micro_batch = 1;  // sequences
  bool packing = true;

  int threads = 0;          // 0: one per physical core
  CpuShare cpu_share = {};  // not an option
  ComputeChoice compute = ComputeChoice::automatic;
  std::string devices = "auto";      // a list; device/device_list.h parses it
  std::string topology;              // hwloc XML file of the machine; empty: this machine
  std::vector<std::string> machine;  // files that describe another machine to plan for
  int32_t named_rank = -1;           // not an option: the rank that `devices` are of, if not of all
  bool planned_only = false;         // not an option: a plan, whose GPUs may be of another machine
  std::string parallel;              // single, pipeline or dp; empty: by policy, number of devices
  std::string policy;                // empty: auto
  bool printed_equation = false;     // of aptmoe: Equation 1 as the paper prints it, not corrected
  bool partial_sums = false;         // RunSettings::partial_sums
  bool divide_experts = false;       // of auto: ModelPlaces::may_divide
  Foresight foresight = {};          // of aptmoe: what loads ahead of decisions follow
  uint64_t cpu_memory = 0;           // bytes of the process; 0: memory of the machine
  uint64_t gpu_memory = 0;           // bytes per GPU; 0: default_gpu_budget (device/cuda_device.h)
  AuxLossMode aux_mode = AuxLossMode::per_layer;
  uint64_t seed = 42;
  bool follow_links = false;
};

struct TrainConfig : RunConfig, LoraConfig {
  std::string out;
  std::vector<std::string> eval_data;
  double val_size = 0;  // rows for evaluation: a share below 1, or a number; 0: none
  Method method = Method::full;
  std::vector<std::string> trainable;  // globs on published tensor names
  std::vector<std::string> freeze;

  int64_t grad_accum = 8;  // of all ranks
  int64_t thread_ranks = 1;
  double rank_limit = 20;  // seconds without a sign of life after which a rank has failed
  std::vector<RankDevices> rank_devices = {};  // ranks whose devices are not `devices`
  LinkRate rank_links;        // of each thread rank to the others; without a rate: no limit
  int64_t process_ranks = 1;  // that a launcher started; not an option
  std::vector<std::string> rank_hosts = {};  // of these, by rank
  /// Not an option: whether each rank has one device, whose memory messages reach (RankShards); if each has
  /// a GPU, why they do not.
  bool direct = false;
  std::string why_not_direct;
  int64_t ranks() const { return std::max(thread_ranks, process_ranks); }
  int64_t expert_ranks = 0;  // of `ep` and `zebra`; 0: all ranks, or all that compute no attention
  /// Of `zebra`: groups that have each expert once. At least 1.
  int64_t zebra_groups() const {
    const int64_t left = ranks() - attention_ranks;
    return expert_ranks > 0 && expert_ranks < left ? left / expert_ranks : 1;
  }
  /// Ranks that share the experts; 1: each computes all. Of `hybrid-ep`: before domains are known.
  int64_t shared_experts() const {
    if (parallel == "zebra") return ranks() / zebra_groups();
    if (parallel == "hybrid-ep") return ranks();
    if (parallel != "ep") return 1;
    return expert_ranks > 0 ? expert_ranks : ranks();
  }
  /// Of `hybrid-ep`: ranks by level, the slowest links first. Empty: hosts, then ranks of a host.
  std::vector<int32_t> levels = {};
  /// Of `hybrid-ep`, by level: the size of expert domains. Unset: what the plan chooses.
  std::optional<std::vector<int32_t>> domains = {};
  /// Of `hybrid-ep`: the first layers, whose experts every rank keeps that computes with them; those of the
  /// others are fetched (RankShards::fetched_from). Unset: what the plan chooses.
  std::optional<int64_t> kept_layers = {};
  /// Of `hybrid-ep`: how weights of experts travel, without the other two options.
  ExpertWire wire = {};
  double wire_threshold = 0.1;
  bool wire_consistent = false;
  ExpertWire expert_wire() const {
    return {wire.kind, wire.ratio, wire_threshold, wire_consistent};
  }
  int64_t attention_ranks = 0;  // of `zebra`
  /// Of `zebra`, by layer with experts: experts that each expert rank gives to the attention ranks.
  /// Empty: none. Unset: what the plan chooses.
  std::optional<std::vector<int32_t>> expert_shift = {};
  /// Of `zebra`, from the plan file: its order; empty: that of Theorem 1. Unset: what the plan chooses.
  std::optional<ZebraOrder> zebra_order = {};
  /// Not an option. Of `zebra` in a launch, by rank: how fast it computes (budget/rank_speed.h); empty:
  /// as rank 0. Empty: not asked.
  std::vector<std::string> rank_speeds = {};
  /// Ranks that compute micro-batches, the first ones.
  int64_t computing_ranks() const { return attention_ranks > 0 ? attention_ranks : ranks(); }
  std::optional<int64_t> logical_shards;  // unset: the ranks of the first start
  int64_t shards() const { return logical_shards.value_or(computing_ranks()); }
  bool shuffle = true;
  double epochs = 1;
  /// Options that the user left to the data (train/run_length.h).
  bool packing_by_data = false, epochs_by_data = false;
  std::optional<int64_t> steps;  // overrides epochs

  double lr = 1e-5;
  LrSchedule lr_schedule = LrSchedule::cosine;
  std::optional<int64_t> warmup;       // steps; overrides the ratio
  std::optional<double> warmup_ratio;  // unset: 0.03, but at most a tenth of the steps
  std::optional<double> min_lr_ratio;  // unset: 0.1, of wsd 0
  double weight_decay = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double max_grad_norm = 1;
  double neftune = 0;  // alpha of the noise on embeddings in training; 0: none
  bool decay_all = false;
  std::optional<double> router_aux_loss;  // unset: config.json's value if the router is trained
  double router_z_loss = 0;
  Recompute recompute = Recompute::automatic;
  std::string plan_file;               // plan to run exactly; empty: plan at the start
  std::string profile;                 // directory of cost tables to plan by; empty: none given
  std::optional<int64_t> group;        // micro-batches per group; from the plan file
  std::optional<bool> inputs_on_host;  // PlanInput::inputs_on_host, from the plan file
  /// The last layer of each stage but the last, from the plan file; empty: the planner cuts.
  std::vector<int32_t> stage_ends;
  std::vector<int32_t> backward_ends = {};  // PlanRequest::backward_ends, from the plan file
  std::string planned_policy = {};  // what `auto` became in the plan file; empty: nothing yet

  Interval save_every{std::nullopt, 30 * 60};
  std::optional<double>
      max_time;  // seconds of one start, after which the run stops and resumes later
  int64_t keep = 2;
  int64_t keep_best = 0;  // states of the best evaluations, beside the newest `keep`
  BestMetric metric = BestMetric::eval_loss;
  int64_t early_stopping = 0;  // evaluations in a row without a new best that end the run; 0: never
  bool load_best = false;      // the result is the best state, not the last one
  bool final_state = true;
  ResumeMode resume = ResumeMode::automatic;
  std::string resume_from;
  std::vector<std::string> allow_change;
  Interval eval_every;
  bool eval_at_start = false;
  int64_t samples = 0;  // number of prompts that the model continues before and after training
  bool strict = false;  // an alarm of the verdict sets the exit code
  int64_t log_every = 1;
  bool tokens_by_expert = false;  // in metrics.jsonl
  bool all_decisions = false;     // of splits of experts, in journal.jsonl; else a digest
  std::string replay_decisions;   // a full journal whose splits of experts the run repeats
  std::optional<int64_t> digest_every = 100;  // steps; none: never
  std::string trace;                          // file for a Chrome trace of the last step

  /// How many of the best states stay on disk.
  int64_t best_states() const { return load_best && keep_best == 0 ? 1 : keep_best; }

  /// The options in table order, for config.yaml and for the comparison at a resume. `value`: YAML
  /// on one line ("null" if unset). `may_change`: a resume may change the option.
  struct Recorded {
    std::string name;
    std::string value;
    bool may_change = false;
    bool is_default = false;  // also for an option that an older version did not record
    bool one_start = false;   // applies to one start only: not in config.yaml
    bool of_rank = false;     // ranks of one run may have different values
  };
  std::vector<Recorded> recorded;
};

/// The options that only `generate` and `chat` have.
struct GenerateOptions {
  std::string prompt;         // or messages_file, or the rows of `data`
  std::string messages_file;  // a chat: JSON list of messages, or an object with "messages"
  std::string system;         // first message of a chat; empty: none
  int64_t max_new_tokens = 128;
  double temperature = 0;    // 0: greedy
  int64_t sample_top_k = 0;  // 0: all tokens
  double top_p = 1;
  double min_p = 0;
  double repetition_penalty = 1;
  std::vector<std::string> stop = {};  // texts that end the answer
  bool kv_cache = true;
};
struct GenerateConfig : RunConfig, GenerateOptions {};

}  // namespace hearth
