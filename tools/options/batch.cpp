// Options: the shape of a batch, and the length of the run.
#include "options/groups.h"
#include "options/special_values.h"

namespace hearth {

using enum Command;

// A table is read by columns, so it is laid out by hand.
// clang-format off
void add_batch(std::vector<Option>& table) {
  const std::string group = "batch";
  table.insert(
      table.end(),
      {{.name = "seq-len", .group = group, .commands = kRows, .idle = {generate},
        .value = integer_value(&Options::seq_len, 1, 1 << 20), .unit = "tokens",
        .help = "length of a sequence",
        .help_for = {{{tokenize}, "cut the rows of --data to this length", "no limit"}},
        .aliases = {"max-length", "cutoff-len", "sequence-len", "max-seq-length", "max-seq-len",
                    "model-max-length"}},
       {.name = "micro-batch", .group = group, .commands = kOnData, .idle = {generate},
        .value = integer_value(&Options::micro_batch, 1, 1 << 20), .unit = "sequences",
        .help = "size of a micro-batch",
        .aliases = {"per-device-train-batch-size", "micro-batch-size"}},
       {.name = "grad-accum", .group = group, .commands = kTraining, .idle = kIdleOutsideTraining,
        .value = integer_value(&Options::grad_accum, 1, 1 << 20), .unit = "micro-batches",
        .help = "micro-batches per step",
        .aliases = {"gradient-accumulation-steps", "grad-accum-steps"}},
       {.name = "batch-tokens", .group = group, .commands = kTraining, .idle = kIdleOutsideTraining,
        .value = integer_value(&Options::batch_tokens, 1, int64_t{1} << 40), .unit = "tokens",
        .help = "set the tokens per step instead of --grad-accum; rounds up to whole micro-batches",
        .default_text = "from --grad-accum"},
       {.name = "packing", .group = group, .commands = kOnData, .idle = {generate},
        .value = given_value(switch_value(&Options::packing), &Options::packing_given),
        .help = "put several documents into one sequence; documents never see each other",
        .default_text = "on if the run has at least 100 steps with it, else off",
        .help_for = {{{eval}, "put several documents into one sequence; the loss is the same", "on"}},
        .aliases = {"sample-packing", "neat-packing"}},
       {.name = "shuffle", .group = group, .commands = kTraining, .idle = kIdleOutsideTraining,
        .value = switch_value(&Options::shuffle),
        .help = "draw the rows of an epoch in random order"},
       {.name = "epochs", .group = group, .commands = kTraining,
        .value = given_value(number_value(&Options::epochs, {.most = 1e6, .open_least = true}),
                             &Options::epochs_given),
        .unit = "passes over the data", .help = "length of the run",
        .default_text = "3 for data of fewer than 10,000 rows, else 1",
        .aliases = {"num-train-epochs", "num-epochs"}},
       {.name = "steps", .group = group, .commands = {train, plan, simulate},
        .value = integer_value(&Options::steps, 1, kMaxSteps), .unit = "steps",
        .help = "length of the run; wins over --epochs", .default_text = "from --epochs",
        .help_for = {{{simulate}, "steps to simulate", "1"}}, .aliases = {"max-steps"}},
       {.name = "overflow", .group = group, .commands = kRows, .idle = {generate},
        .value = choice_value(&Options::overflow,
                              NamedValues<Overflow>{{"truncate", Overflow::truncate},
                                                    {"drop", Overflow::drop},
                                                    {"error", Overflow::error}}),
        .help = "cut rows that are longer than --seq-len, drop them, or stop with an error"}});
}
// clang-format on

}  // namespace hearth
