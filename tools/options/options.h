// What one call of the program was asked to do: the option table fills it, the commands read it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "setup/config.h"

namespace hearth {

enum class Command : uint8_t {
  train,
  eval,
  generate,
  plan,
  inspect,
  tokenize,
  export_,  // as export is a keyword
  verify,
  init,
  report
};

/// The options of all commands; each command reads those that the table gives it.
struct Options : TrainConfig, GenerateOptions {
  std::string operand;  // CONFIG.yaml, DIR or FILE

  // Without effect in this version: recorded, and accepted from older configurations.
  std::string parallel = "single";
  int64_t logical_shards = 1;
  bool deterministic = false;

  std::optional<int64_t> batch_tokens;  // sets grad_accum

  std::string from_state;            // export
  bool layout_given = false;         // export: else that of the run
  std::vector<std::string> compare;  // report: two run directories

  // init
  std::string model_config;
  std::string tokenizer;

  bool digest = false;      // inspect
  bool no_special = false;  // tokenize
  bool json = false;
  bool quiet = false;
  bool verbose = false;
};

}  // namespace hearth
