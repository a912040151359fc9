// Options: saved state, evaluation and logs of a run.
#include "options/groups.h"
#include "options/special_values.h"

namespace hearth {

using enum Command;

// A table is read by columns, so it is laid out by hand.
// clang-format off
void add_state(std::vector<Option>& table) {
  const std::string group = "state";
  table.insert(
      table.end(),
      {{.name = "save-every", .group = group, .commands = kTraining,
        .value = interval_value(&Options::save_every),
        .help = "save the state this often; epoch: at the last step of each epoch; 0 = after the last "
                "step only", .may_change = true,
        .aliases = {"save-steps"}},
       {.name = "keep", .group = group, .commands = kTraining,
        .value = integer_value(&Options::keep, 1), .unit = "saved states",
        .help = "keep this many of the newest saved states", .may_change = true,
        .aliases = {"save-total-limit"}},
       {.name = "keep-best", .group = group, .commands = kTraining,
        .value = integer_value(&Options::keep_best, 0), .unit = "saved states",
        .help = "keep this many of the best saved states beside the newest; an evaluation that is among "
                "the best saves the state of its step",
        .needs = {{"eval-data"}, {"val-size"}}, .may_change = true},
       {.name = "metric", .group = group, .commands = kTraining,
        .value = choice_value(&Options::metric,
                              NamedValues<BestMetric>{{"eval_loss", BestMetric::eval_loss}}),
        .help = "what makes a state the best: the lowest evaluation loss", .may_change = true},
       {.name = "early-stopping", .group = group, .commands = kTraining,
        .value = integer_value(&Options::early_stopping, 0), .unit = "evaluations",
        .help = "end the run at this many evaluations in a row without a new best; 0 = never",
        .needs = {{"eval-every"}}, .may_change = true,
        .aliases = {"early-stopping-patience", "early-stopping-steps"}},
       {.name = "load-best", .group = group, .commands = kTraining,
        .value = flag_value(&Options::load_best),
        .help = "make the result from the best saved state instead of the last one",
        .needs = {{"eval-data"}, {"val-size"}}, .aliases = {"load-best-model-at-end"}},
       {.name = "max-time", .group = group, .commands = kTraining,
        .value = duration_value(&Options::max_time),
        .help = "after this time end the step, save the state and exit with 75; the same command goes "
                "on from there", .default_text = "none", .may_change = true},
       {.name = "final-state", .group = group, .commands = kTraining,
        .value = switch_value(&Options::final_state), .help = "save the state of the last step"},
       {.name = "resume", .group = group, .commands = kTraining, .value = resume_value(),
        .help = "auto: continue from the newest saved state in --out; never: start at step 1; DIR: "
                "continue from that saved state or run directory",
        .may_change = true, .aliases = {"resume-from-checkpoint"}},
       {.name = "allow-change", .group = group, .commands = kTraining,
        .value = list_value(&Options::allow_change, "NAMES", true),
        .help = "options that may differ from the saved state on a resume; comma-separated or "
                "repeatable. A file whose path is unchanged must have unchanged content",
        .default_text = "none", .may_change = true},
       {.name = "eval-every", .group = group, .commands = kTraining,
        .value = interval_value(&Options::eval_every),
        .help = "evaluate this often; epoch: at the last step of each epoch; 0 = after the last step "
                "only",
        .needs = {{"eval-data"}, {"val-size"}}, .may_change = true,
        .aliases = {"eval-steps"}},
       {.name = "eval-at-start", .group = group, .commands = kTraining,
        .value = flag_value(&Options::eval_at_start), .help = "evaluate before the first step",
        .needs = {{"eval-data"}, {"val-size"}},
        .aliases = {"eval-on-start"}},
       {.name = "samples", .group = group, .commands = kTraining,
        .value = integer_value(&Options::samples, 0, 20), .unit = "prompts",
        .help = "let the model continue this many prompts before and after training, taken from the "
                "first rows of --eval-data, or of --data if there is none"},
       {.name = "strict", .group = group, .commands = kTraining,
        .value = flag_value(&Options::strict),
        .help = "exit with 5 if the verdict is an alarm; the result stays"},
       {.name = "log-every", .group = group, .commands = kTraining,
        .value = integer_value(&Options::log_every, 1), .unit = "steps",
        .help = "print a line this often; metrics.jsonl has every step", .may_change = true,
        .aliases = {"logging-steps"}},
       {.name = "tokens-by-expert", .group = group, .commands = kTraining,
        .value = switch_value(&Options::tokens_by_expert),
        .help = "write the tokens of every expert to metrics.jsonl, by MoE layer", .may_change = true},
       {.name = "journal-decisions", .group = group, .commands = kTraining,
        .value = journal_decisions_value(),
        .help = "what journal.jsonl has of the decisions of --policy aptmoe and auto: of each step a "
                "digest, or each decision with its tokens and reasons",
        .may_change = true},
       {.name = "replay-decisions", .group = group, .commands = kTraining,
        .value = text_value(&Options::replay_decisions, "FILE"),
        .help = "divide experts as an earlier run of these options did: its journal.jsonl, written with "
                "--journal-decisions full",
        .default_text = "none", .needs = {{"policy", "aptmoe"}, {"policy", "auto"}}, .may_change = true},
       {.name = "digest-every", .group = group, .commands = kTraining,
        .value = integer_or_off_value(&Options::digest_every), .unit = "steps",
        .help = "record the digest of the whole state in metrics.jsonl this often; 0 = never",
        .may_change = true},
       {.name = "trace", .group = group, .commands = {train, plan, simulate},
        .value = text_value(&Options::trace, "FILE"),
        .help = "write the tasks of the last step as a Chrome trace", .default_text = "none",
        .help_for = {{{plan}, "write the predicted tasks of a step as a Chrome trace"},
                     {{simulate}, "write a Chrome trace: of routing the tokens of each expert, step by step; of step the tasks of the last step of the last policy"}},
        .may_change = true}});
}
// clang-format on

}  // namespace hearth
