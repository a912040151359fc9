// Options: what is trained on what, and where it goes.
#include "options/groups.h"

namespace hearth {

using enum Command;

// A table is read by columns, so it is laid out by hand.
// clang-format off
void add_what(std::vector<Option>& table) {
  const std::string group = "what";
  const std::string rows = "JSON Lines, a .json array, .csv, .parquet or .txt (one document), also as .gz, "
                           ".zst or .xz; a directory, a glob or an org/name of the hub cache; - is "
                           "stdin; repeatable";
  table.insert(
      table.end(),
      {{.name = "model", .group = group, .commands = {train, plan, eval, generate, chat, tokenize, export_, profile},
        .value = text_value(&Options::model, "DIR|ORG/NAME"),
        .help = "checkpoint in the Hugging Face layout: a directory, or org/name (or "
                "org/name@revision) in the local hub cache",
        .help_for = {{{chat}, "checkpoint to talk with, as for generate, or a run directory", "RUN"},
                     {{eval, generate}, "checkpoint in the Hugging Face layout: a directory, or org/name "
                                        "(or org/name@revision) in the local hub cache; or a run "
                                        "directory, for its result; not needed with --adapter, which "
                                        "names its base"},
                     {{export_}, "a run directory, whose adapter is merged into its base; or the base "
                                 "of --adapter: a directory, or org/name in the local hub cache; "
                                 "with --gguf any checkpoint",
                      "the base that the adapter or the run names"},
                     {{profile}, "take the shapes of this model: a directory, or org/name in the "
                                 "local hub cache; weights may be absent",
                      "shapes of a common size"}},
        .aliases = {"model-name-or-path", "base-model"}},
       {.name = "data", .group = group, .commands = kPrompts,
        .value = list_value(&Options::data, "FILE[:WEIGHT]"), .unit = "WEIGHT: passes per epoch, above 0",
        .help = "rows to train on: " + rows,
        .help_for = {{{plan}, "rows to plan for: " + rows, "none: assume full sequences of --seq-len"},
                     {{eval}, "rows to evaluate on: " + rows, "", "FILE"},
                     {{generate}, "rows to answer, instead of --prompt; prints {\"row\", \"text\"} for each: " + rows,
                      "none", "FILE"},
                     {{tokenize}, "rows to print as the trainer sees them: " + rows, "none", "FILE"}},
        .aliases = {"dataset", "dataset-name", "datasets", "train-file", "data-path"}},
       {.name = "eval-data", .group = group, .commands = kTraining,
        .value = list_value(&Options::eval_data, "FILE"),
        .help = "rows to evaluate on: with --eval-every, with --eval-at-start and after the last "
                "step; repeatable",
        .default_text = "none",
        .aliases = {"eval-dataset", "eval-file", "validation-file", "test-datasets"}},
       {.name = "out", .group = group, .commands = {train, plan, init, export_, report, profile},
        .value = text_value(&Options::out, "DIR"),
        .help = "run directory: logs, saved states and the result",
        .help_for = {{{plan}, "run directory; if given, its disk space is checked", "none"},
                     {{init}, "directory of the new checkpoint; must not exist yet"},
                     {{export_}, "directory of the new checkpoint or adapter, or with --gguf the file; must "
                                 "not exist yet"},
                     {{report}, "HTML file to write", "report.html in RUN_DIR", "FILE"},
                     {{profile}, "also write the tables here: a directory gets a file per place, a "
                                 "name that ends in .json is the file of the only place; a page "
                                 "with curves lies beside them",
                      "the user's cache alone", "DIR|FILE"}},
        .aliases = {"output-dir"}},
       {.name = "method", .group = group, .commands = kTraining,
        .value = choice_value(&Options::method, NamedValues<Method>{{"full", Method::full},
                                                                   {"lora", Method::lora}}),
        .help = "train the weights themselves (full) or low-rank adapters of them (lora)",
        .aliases = {"finetuning-type"}},
       {.name = "trainable", .group = group, .commands = {train, plan, inspect},
        .value = list_value(&Options::trainable, "GLOB"),
        .help = "train only matching tensors. With --freeze: exceptions to it. With --method lora: "
                "train these in addition to the adapters. A glob matches a whole published tensor "
                "name; repeatable",
        .default_text = "all; none with --method lora",
        .help_for = {{{inspect}, "count tensors as trained as train would with this option; a glob "
                                 "matches a whole published tensor name; repeatable", "all"}}},
       {.name = "freeze", .group = group, .commands = {train, plan, inspect},
        .value = list_value(&Options::freeze, "GLOB"),
        .help = "do not train matching tensors. With --method lora: give them no adapter. A glob "
                "matches a whole published tensor name; repeatable",
        .default_text = "none",
        .help_for = {{{inspect}, "count tensors as frozen as train would with this option; a glob "
                                 "matches a whole published tensor name; repeatable"}}},
       {.name = "from-state", .group = group, .commands = {export_},
        .value = text_value(&Options::from_state, "DIR"),
        .help = "saved state to convert (RUN/state/step-N), or a run directory: its newest valid "
                "state",
        .default_text = "none"},
       {.name = "gguf", .group = group, .commands = {export_},
        .value = choice_value(&Options::gguf,
                              NamedValues<std::optional<GgufType>>{{"f32", GgufType::f32},
                                                                   {"f16", GgufType::f16},
                                                                   {"bf16", GgufType::bf16},
                                                                   {"q8_0", GgufType::q8_0}}),
        .help = "write one GGUF file for llama.cpp with matrices of this type: of --model, of --model "
                "with --adapter merged, or of --from-state",
        .default_text = "none"},
       {.name = "config", .group = group, .commands = {init},
        .value = text_value(&Options::model_config, "FILE"),
        .help = "config.json of the new checkpoint"},
       {.name = "tokenizer", .group = group, .commands = {init},
        .value = text_value(&Options::tokenizer, "DIR"),
        .help = "directory to copy the tokenizer files from",
        .default_text = "a built-in one: 256 bytes and ChatML's special tokens"}});
}
// clang-format on

}  // namespace hearth
