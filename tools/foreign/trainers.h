// Which trainer a configuration file was written for, and what that trainer does where the file is
// silent. Rules: LLaMA-Factory's hparams, axolotl's schemas, TRL's SFTConfig and ModelConfig with
// transformers' TrainingArguments, unsloth-cli.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hearth {

enum class Trainer : uint8_t { none, llama_factory, axolotl, trl, unsloth };

/// As people write it.
std::string name_of(Trainer trainer);

/// The trainer whose keys a file has, by its keys with hyphens. `none` for a native file: one without
/// keys of a trainer, or with at least as many keys that only Hearth has.
Trainer trainer_of(const std::vector<std::string>& keys);

/// What a file says of the parts that defaults depend on.
struct ForeignRun {
  bool lora = false;         // trains adapters
  bool new_adapter = false;  // and begins them
  int64_t rank = 0;          // 0: not given
  bool pretrains = false;    // LLaMA-Factory's `stage: pt`
  bool evaluates = false;    // has rows for evaluation
  bool completions = false;  // its rows have prompt and completion
};

/// Options, with hyphens, and the values that the trainer takes if no key sets them. Leaves out what
/// is Hearth's default, too.
std::vector<std::pair<std::string, std::string>> trainer_defaults(Trainer trainer,
                                                                  const ForeignRun& run);

/// --method that the trainer takes if no key sets it.
std::string default_method(Trainer trainer);

}  // namespace hearth
