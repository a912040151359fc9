// The options of one call of the program. The option table fills them, the commands read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/gguf_types.h"
#include "setup/config.h"

namespace hearth {

enum class Command : uint8_t {
  train,
  eval,
  generate,
  chat,
  plan,
  inspect,
  tokenize,
  export_,  // `export` is a C++ keyword
  verify,
  init,
  report,
  simulate,
  doctor,
  profile,
  migrate
};

/// The options of all commands. Each command reads only its options in the table.
struct Options : TrainConfig, GenerateOptions {
  std::string operand;  // CONFIG.yaml, DIR or FILE

  // No effect in this version; recorded, and accepted from older configurations.
  bool deterministic = false;

  std::optional<int64_t> batch_tokens;               // sets grad_accum
  bool lr_given = false;                             // else the method decides
  bool packing_given = false, epochs_given = false;  // else the data decide

  std::string from_state;                   // export
  std::optional<GgufType> gguf;             // export: write this file, of this type
  bool layout_given = false;                // export: --adapter-layout was given; else the run's
  std::vector<std::string> compare;         // report: the two run directories
  std::vector<std::string> compared_plans;  // plan: modes or files, two

  // init
  std::string model_config;
  std::string tokenizer;

  // simulate
  std::optional<int64_t> simulated_experts;
  int64_t top_k = 2;
  std::optional<double> skew;
  int64_t simulated_tokens = 8192;
  int64_t layers = 1;
  double persistence = 0.73;
  std::optional<double> token_hit;
  // simulate step and figure
  std::string figure;  // its number
  std::string shape;
  int gpus = 4;
  std::optional<int64_t> roots;                       // unset: one for two GPUs
  uint64_t gpu_link = 10'500'000'000, root_link = 0;  // bytes per second; 0: no limit
  uint64_t study_gpu_memory = 40'000'000'000;
  bool study_updates = true;
  int cores_per_gpu = 14;
  std::string gpu_costs, host_costs;           // files; empty: estimated
  int64_t study_batch = 128;                   // sequences
  std::optional<int64_t> study_micro_batches;  // unset: as many as GPUs
  std::vector<std::string> study_policies = {"gpipe-offload", "mobius", "aptmoe", "auto"};

  double budget_s = 60;  // profile
  bool cluster = false;  // profile: also the links between ranks
  double tune_s = 0;     // plan: how long to try schedules; 0: not at all

  bool digest = false;      // inspect
  bool no_special = false;  // tokenize
  bool json = false;
  bool quiet = false;
  bool verbose = false;
};

}  // namespace hearth
