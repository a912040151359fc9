#include "foreign/trainers.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "options/option_lookup.h"

namespace hearth {
namespace {

constexpr unsigned bit(Trainer trainer) { return 1u << static_cast<unsigned>(trainer); }
constexpr unsigned kFactory = bit(Trainer::llama_factory), kAxolotl = bit(Trainer::axolotl);
constexpr unsigned kTrl = bit(Trainer::trl), kUnsloth = bit(Trainer::unsloth);
/// Keys of transformers' TrainingArguments.
constexpr unsigned kArguments = kFactory | kTrl | kUnsloth;

// Keys that tell trainers apart. A trailing * matches any characters.
const std::map<std::string, unsigned>& telling_keys() {
  static const std::map<std::string, unsigned> keys = [] {
    std::map<std::string, unsigned> all;
    const auto add = [&](unsigned trainers, std::initializer_list<const char*> names) {
      for (const char* name : names) all[name] |= trainers;
    };
    add(kFactory, {"additional-target",
                   "cpu-infer",
                   "cutoff-len",
                   "dataset-dir",
                   "do-train",
                   "enable-thinking",
                   "eval-dataset",
                   "finetuning-type",
                   "freeze-trainable-layers",
                   "kt-optimize-rule",
                   "lora-rank",
                   "lora-target",
                   "mask-history",
                   "neat-packing",
                   "overwrite-cache",
                   "plot-loss",
                   "preprocessing-num-workers",
                   "pure-bf16",
                   "quantization-bit",
                   "stage",
                   "template",
                   "tokenized-path",
                   "train-on-prompt",
                   "use-kt"});
    add(kFactory | kTrl, {"model-name-or-path"});
    add(kFactory | kUnsloth, {"dataset"});
    add(kAxolotl, {"base-model",
                   "dataset-prepared-path",
                   "datasets",
                   "eval-sample-packing",
                   "evals-per-epoch",
                   "flash-attention",
                   "gptq",
                   "lora-mlp-kernel",
                   "lora-model-dir",
                   "lora-o-kernel",
                   "lora-qkv-kernel",
                   "lora-target-linear",
                   "lr-scheduler",
                   "micro-batch-size",
                   "model-type",
                   "num-epochs",
                   "optimizer",
                   "pad-to-sequence-len",
                   "plugins",
                   "sample-packing",
                   "saves-per-epoch",
                   "sequence-len",
                   "special-tokens",
                   "test-datasets",
                   "tokenizer-type",
                   "train-on-inputs",
                   "unfrozen-parameters",
                   "val-set-size",
                   "wandb-entity",
                   "wandb-log-model",
                   "wandb-name",
                   "wandb-project",
                   "wandb-watch"});
    add(kAxolotl | kTrl, {"attn-implementation", "load-in-8bit", "lora-target-modules",
                          "lora-target-parameters", "trust-remote-code"});
    add(kAxolotl | kTrl | kUnsloth, {"load-in-4bit"});
    add(kTrl, {"assistant-only-loss", "chat-template-path", "completion-only-loss",
               "dataset-config", "dataset-name", "dataset-num-proc", "dataset-test-split",
               "dataset-text-field", "dataset-train-split", "dtype", "eval-packing",
               "lora-task-type", "max-length", "model-init-kwargs", "model-revision",
               "packing-strategy", "padding-free", "torch-dtype", "use-peft"});
    add(kUnsloth,
        {"bias", "enable-wandb", "finetune-*", "format-type", "local-dataset", "random-seed",
         "train-on-completions", "training-type", "loftq-config", "max-seq-length", "model-name",
         "r", "random-state", "save-method", "target-modules", "use-gradient-checkpointing"});
    add(kArguments, {"adam-beta1", "logging-strategy", "lr-scheduler-type", "max-steps",
                     "num-train-epochs", "optim", "per-device-train-batch-size", "report-to"});
    add(kArguments | kAxolotl, {"gradient-accumulation-steps", "learning-rate", "output-dir"});
    return all;
  }();
  return keys;
}

unsigned trainers_with(const std::string& key) {
  if (const auto found = telling_keys().find(key); found != telling_keys().end()) {
    return found->second;
  }
  return key.starts_with("finetune-") ? kUnsloth : 0;
}

// Options whose name a trainer uses as well.
bool is_shared_name(const std::string& key) {
  constexpr std::array kShared{
      "adapter",  "chat-template", "dataset",      "deterministic", "eval-every",    "experts",
      "format",   "lora-alpha",    "lora-dropout", "lora-r",        "max-grad-norm", "max-samples",
      "neftune",  "packing",       "profile",      "seed",          "shuffle",       "strict",
      "val-size", "verbose",       "warmup-ratio", "weight-decay"};
  return std::find(kShared.begin(), kShared.end(), key) != kShared.end();
}

bool is_native(const std::string& key) {
  const Option* option = find_option(key, Command::train);
  return option && option->name == key && trainers_with(key) == 0 && !is_shared_name(key);
}

constexpr std::array kTrainers{Trainer::trl, Trainer::llama_factory, Trainer::axolotl,
                               Trainer::unsloth};

}  // namespace

std::string name_of(Trainer trainer) {
  switch (trainer) {
    case Trainer::none: return "hearth";
    case Trainer::llama_factory: return "LLaMA-Factory";
    case Trainer::axolotl: return "axolotl";
    case Trainer::trl: return "TRL";
    case Trainer::unsloth: return "unsloth";
  }
  HEARTH_CHECK(false, "a trainer without a name");
}

Trainer trainer_of(const std::vector<std::string>& keys) {
  int64_t native = 0;
  std::map<Trainer, int64_t> having, telling;  // keys that it has; that no other has
  for (const std::string& key : keys) {
    native += is_native(key) ? 1 : 0;
    const unsigned trainers = trainers_with(key);
    for (const Trainer trainer : kTrainers) {
      having[trainer] += (trainers & bit(trainer)) != 0 ? 1 : 0;
      telling[trainer] += trainers == bit(trainer) ? 1 : 0;
    }
  }
  Trainer best = Trainer::none;
  for (const Trainer trainer : kTrainers) {  // of equal ones the first
    if (having[trainer] > having[best]) best = trainer;
  }
  // A native file may use other names of some options: those leave its defaults alone.
  return native > 0 && telling[best] <= native ? Trainer::none : best;
}

std::string default_method(Trainer trainer) {
  return trainer == Trainer::llama_factory || trainer == Trainer::unsloth ? "lora" : "full";
}

std::vector<std::pair<std::string, std::string>> trainer_defaults(Trainer trainer,
                                                                  const ForeignRun& run) {
  std::vector<std::pair<std::string, std::string>> values;
  const auto add = [&](const char* option, const std::string& value) {
    values.emplace_back(option, value);
  };
  const auto add_lora = [&](int64_t rank, const std::string& alpha, const char* dropout,
                            const char* targets) {
    if (!run.lora) return;
    add("lora-dropout", dropout);
    if (!run.new_adapter) return;
    add("lora-r", std::to_string(rank));
    add("lora-alpha", alpha);
    add("lora-targets", targets);
  };
  const auto add_arguments = [&](const char* lr, const char* length) {
    add("lr", lr);
    add("lr-schedule", "linear");
    add("warmup-ratio", "0");
    add("epochs", "3");
    add("micro-batch", "8");
    add("grad-accum", "1");
    add("seq-len", length);
  };
  switch (trainer) {
    case Trainer::none: break;
    case Trainer::llama_factory: {
      add_arguments("5e-5", "2048");
      add("packing", run.pretrains ? "on" : "off");
      const int64_t rank = run.rank == 0 ? 8 : run.rank;
      add_lora(8, std::to_string(2 * rank), "0", "all");
      break;
    }
    case Trainer::trl:
      add_arguments("2e-5", "1024");
      add("packing", "off");
      if (!run.completions) add("train-on", "all");
      add_lora(16, "32", "0.05", "*.q_proj.weight,*.v_proj.weight");
      break;
    case Trainer::unsloth:
      add("lr", "2e-4");
      add("lr-schedule", "linear");
      add("warmup", "5");
      add("epochs", "3");
      add("micro-batch", "2");
      add("grad-accum", "4");
      add("seq-len", "2048");
      add("packing", "off");
      if (!run.completions) add("train-on", "all");
      add_lora(16, "16", "0", "all");
      break;
    case Trainer::axolotl:  // its schedule and warm-up are Hearth's: cosine, 3 %
      add("epochs", "1");
      add("micro-batch", "1");
      add("grad-accum", "1");
      add("seq-len", "512");
      add("packing", "off");
      if (run.evaluates) add("eval-every", "epoch");
      break;
  }
  return values;
}

}  // namespace hearth
