// Options: what is trained on what, and where it goes.
#include "options/groups.h"

namespace hearth {

using enum Command;

// A table is read by columns, so it is laid out by hand.
// clang-format off
void add_what(std::vector<Option>& table) {
  const std::string group = "what";
  table.insert(
      table.end(),
      {{.name = "model", .group = group, .commands = {train, plan, eval, generate, tokenize, export_},
        .value = text_value(&Options::model, "DIR|ORG/NAME"),
        .help = "checkpoint in the Hugging Face layout, or org/name (@revision) of the local hub "
                "cache; of export: default the one that was trained",
        .aliases = {"model-name-or-path", "base-model"}},
       {.name = "data", .group = group, .commands = kRows, .idle = {generate},
        .value = list_value(&Options::data, "FILE[:WEIGHT]"),
        .help = "rows: JSON Lines, a .json array, or .txt as one document, plain, .gz or .zst; - is "
                "stdin; repeatable; in training a weight is the passes over the file an epoch",
        .aliases = {"dataset", "dataset-name", "datasets", "train-file", "data-path"}},
       {.name = "eval-data", .group = group, .commands = kTraining,
        .value = list_value(&Options::eval_data, "FILE"),
        .help = "rows to evaluate on, by --eval-every, --eval-at-start and at the end; repeatable",
        .default_text = "none",
        .aliases = {"eval-dataset", "eval-file", "validation-file", "test-datasets"}},
       {.name = "out", .group = group, .commands = {train, plan, init, export_, report},
        .value = text_value(&Options::out, "DIR"),
        .help = "run directory; of init and export: the new checkpoint; of report: the file, default "
                "report.html in RUN_DIR",
        .aliases = {"output-dir"}},
       {.name = "method", .group = group, .commands = kTraining,
        .value = choice_value(&Options::method, NamedValues<Method>{{"full", Method::full},
                                                                   {"lora", Method::lora}}),
        .help = "train the weights, or adapters of them (low-rank pairs, LoRA)",
        .aliases = {"finetuning-type"}},
       {.name = "trainable", .group = group, .commands = {train, plan, inspect},
        .value = list_value(&Options::trainable, "GLOB"),
        .help = "train only tensors whose published name matches; beside --freeze: train them "
                "though a glob there matches; with --method lora: train them beside the adapters; "
                "repeatable",
        .default_text = "all; with lora none"},
       {.name = "freeze", .group = group, .commands = {train, plan, inspect},
        .value = list_value(&Options::freeze, "GLOB"),
        .help = "train all tensors but those whose published name matches; with --method lora: they get "
                "no adapter; repeatable",
        .default_text = "none"},
       {.name = "from-state", .group = group, .commands = {export_},
        .value = text_value(&Options::from_state, "DIR"),
        .help = "saved state (RUN/state/step-N), or a run directory: its newest whole state"},
       {.name = "config", .group = group, .commands = {init},
        .value = text_value(&Options::model_config, "FILE"),
        .help = "config.json of the new checkpoint"},
       {.name = "tokenizer", .group = group, .commands = {init},
        .value = text_value(&Options::tokenizer, "DIR"),
        .help = "directory whose tokenizer files are copied",
        .default_text = "a built-in one: 256 bytes and ChatML's specials"}});
}
// clang-format on

}  // namespace hearth
