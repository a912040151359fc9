#include "tools/option_table.h"

namespace hearth {
namespace {

using enum Command;

constexpr CommandSet kTraining{train, plan};
constexpr CommandSet kModel{train, plan, eval, generate};  // options of what a run reads and how
constexpr CommandSet kAll{train, eval, generate, plan, inspect, tokenize, verify, init};

constexpr int64_t kMaxSteps = 99'999'999;  // the directory of a saved state has eight digits

// A table is read by columns, so it is laid out by hand.
// clang-format off
void add_what(std::vector<Option>& table) {
  const std::string group = "what";
  table.insert(
      table.end(),
      {{.name = "model", .group = group, .commands = {train, plan, eval, generate, tokenize},
        .value = text_value(&Options::model, "DIR"),
        .help = "checkpoint in the Hugging Face layout, or a link to one",
        .aliases = {"model-name-or-path", "base-model"}},
       {.name = "data", .group = group, .commands = kModel,
        .value = list_value(&Options::data, "FILE"),
        .help = "rows to train on (JSON Lines, .json, .txt; - is stdin); repeatable",
        .aliases = {"dataset", "dataset-name", "datasets", "train-file", "data-path"}},
       {.name = "eval-data", .group = group, .commands = kTraining,
        .value = list_value(&Options::eval_data, "FILE"),
        .help = "rows for --eval-every; repeatable",
        .aliases = {"eval-dataset", "eval-file", "validation-file", "test-datasets"}},
       {.name = "out", .group = group, .commands = {train, plan, init},
        .value = text_value(&Options::out, "DIR"),
        .help = "run directory; of init: the new checkpoint",
        .aliases = {"output-dir"}},
       {.name = "method", .group = group, .commands = kTraining,
        .value = choice_value(&Options::method, NamedValues<std::string>{{"full", "full"}},
                              {"lora"}),
        .help = "which weights are trained", .aliases = {"finetuning-type"}},
       {.name = "trainable", .group = group, .commands = kTraining,
        .value = list_value(&Options::trainable, "GLOB"),
        .help = "train only tensors whose published name matches; repeatable",
        .default_text = "all"},
       {.name = "freeze", .group = group, .commands = kTraining,
        .value = list_value(&Options::freeze, "GLOB"),
        .help = "do not train tensors whose published name matches; repeatable",
        .default_text = "none"}});
}

void add_batch(std::vector<Option>& table) {
  const std::string group = "batch";
  table.insert(
      table.end(),
      {{.name = "seq-len", .group = group, .commands = kModel,
        .value = integer_value(&Options::seq_len, 1, 1 << 20), .unit = "tokens",
        .help = "length of a sequence",
        .aliases = {"max-length", "cutoff-len", "sequence-len", "max-seq-length", "max-seq-len",
                    "model-max-length"}},
       {.name = "micro-batch", .group = group, .commands = kModel,
        .value = integer_value(&Options::micro_batch, 1, 1 << 20), .unit = "sequences",
        .help = "sequences of a micro-batch",
        .aliases = {"per-device-train-batch-size", "micro-batch-size"}},
       {.name = "grad-accum", .group = group, .commands = kTraining,
        .value = integer_value(&Options::grad_accum, 1, 1 << 20), .unit = "micro-batches",
        .help = "micro-batches of a step",
        .aliases = {"gradient-accumulation-steps", "grad-accum-steps"}},
       {.name = "packing", .group = group, .commands = kModel,
        .value = switch_value(&Options::packing),
        .help = "put several documents into a sequence; they never see each other",
        .aliases = {"sample-packing", "neat-packing"}},
       {.name = "shuffle", .group = group, .commands = kTraining,
        .value = switch_value(&Options::shuffle),
        .help = "draw the rows of an epoch in random order"},
       {.name = "epochs", .group = group, .commands = kTraining,
        .value = number_value(&Options::epochs, {.most = 1e6, .open_least = true}),
        .unit = "passes over the data", .help = "length of the run",
        .aliases = {"num-train-epochs", "num-epochs"}},
       {.name = "steps", .group = group, .commands = kTraining,
        .value = integer_value(&Options::steps, 1, kMaxSteps), .unit = "steps",
        .help = "length of the run; wins over --epochs", .default_text = "by --epochs",
        .aliases = {"max-steps"}},
       {.name = "overflow", .group = group, .commands = kModel,
        .value = choice_value(&Options::overflow,
                              NamedValues<Overflow>{{"truncate", Overflow::truncate},
                                                    {"drop", Overflow::drop},
                                                    {"error", Overflow::error}}),
        .help = "what happens to rows longer than --seq-len"}});
}

void add_optimizer(std::vector<Option>& table) {
  const std::string group = "optimizer";
  table.insert(
      table.end(),
      {{.name = "lr", .group = group, .commands = kTraining,
        .value = number_value(&Options::lr, {.most = 1000}), .help = "learning rate",
        .aliases = {"learning-rate"}},
       {.name = "lr-schedule", .group = group, .commands = kTraining,
        .value = choice_value(&Options::lr_schedule,
                              NamedValues<LrSchedule>{{"constant", LrSchedule::constant},
                                                      {"linear", LrSchedule::linear},
                                                      {"cosine", LrSchedule::cosine}}),
        .help = "learning rate after the warm-up", .aliases = {"lr-scheduler-type",
                                                               "lr-scheduler"}},
       {.name = "warmup", .group = group, .commands = kTraining,
        .value = integer_value(&Options::warmup, 0, kMaxSteps), .unit = "steps",
        .help = "steps in which the rate rises from 0; wins over --warmup-ratio",
        .default_text = "by --warmup-ratio", .aliases = {"warmup-steps"}},
       {.name = "warmup-ratio", .group = group, .commands = kTraining,
        .value = number_value(&Options::warmup_ratio, {.most = 1}), .unit = "of the steps",
        .help = "the same as a part of the run"},
       {.name = "weight-decay", .group = group, .commands = kTraining,
        .value = number_value(&Options::weight_decay, {.most = 1000}),
        .help = "decoupled weight decay; not of norms and biases"},
       {.name = "beta1", .group = group, .commands = kTraining,
        .value = number_value(&Options::beta1, {.most = 1, .open_most = true}),
        .help = "AdamW: decay of the first moment", .aliases = {"adam-beta1"}},
       {.name = "beta2", .group = group, .commands = kTraining,
        .value = number_value(&Options::beta2, {.most = 1, .open_most = true}),
        .help = "AdamW: decay of the second moment", .aliases = {"adam-beta2"}},
       {.name = "eps", .group = group, .commands = kTraining,
        .value = number_value(&Options::eps, {.most = 1, .open_least = true}),
        .help = "AdamW: added to the root of the second moment",
        .aliases = {"adam-epsilon"}},
       {.name = "max-grad-norm", .group = group, .commands = kTraining,
        .value = number_value(&Options::max_grad_norm, {}),
        .help = "gradients are clipped to this norm; 0 = off"},
       {.name = "router-aux-loss", .group = group, .commands = kTraining,
        .value = number_value(&Options::router_aux_loss, {}),
        .help = "coefficient of the auxiliary load-balancing loss",
        .default_text = "that of config.json where the router trains, else 0",
        .aliases = {"router-aux-loss-coef", "moe-aux-loss-coef"}},
       {.name = "aux-loss-mode", .group = group, .commands = kModel,
        .value = choice_value(&Options::aux_mode,
                              NamedValues<AuxLossMode>{{"per-layer", AuxLossMode::per_layer},
                                                       {"hf", AuxLossMode::hf}}),
        .help = "auxiliary loss of each layer, averaged, or of all layers pooled (transformers)"},
       {.name = "decay-all", .group = group, .commands = kTraining,
        .value = flag_value(&Options::decay_all), .help = "decay norms and biases, too"},
       {.name = "seed", .group = group, .commands = {train, plan, eval, generate, init},
        .value = seed_value(&Options::seed), .help = "key of all random numbers"}});
}

void add_data(std::vector<Option>& table) {
  const std::string group = "data";
  table.insert(
      table.end(),
      {{.name = "format", .group = group, .commands = kModel,
        .value = choice_value(&Options::format,
                              NamedValues<RowFormat>{{"auto", RowFormat::automatic},
                                                     {"text", RowFormat::text},
                                                     {"messages", RowFormat::messages},
                                                     {"tokens", RowFormat::tokens}},
                              {"completion", "alpaca", "sharegpt"}),
        .help = "kind of the rows; auto: by their keys"},
       {.name = "chat-template", .group = group, .commands = kModel,
        .value = text_value(&Options::chat_template, "FILE|NAME"),
        .help = "how chats become text", .default_text = "that of the model"},
       {.name = "train-on", .group = group, .commands = kModel,
        .value = choice_value(&Options::train_on,
                              NamedValues<TrainOn>{{"assistant", TrainOn::assistant},
                                                   {"all", TrainOn::all}},
                              {"last", "completion"}),
        .help = "which tokens of a chat are trained; text is trained as a whole"},
       {.name = "skip-bad-rows", .group = group, .commands = kModel,
        .value = integer_value(&Options::skip_bad_rows, 0), .unit = "rows",
        .help = "bad rows to pass over, listed, before they are an error"}});
}

void add_run(std::vector<Option>& table) {
  const std::string group = "run";
  table.insert(
      table.end(),
      {{.name = "parallel", .group = group, .commands = kModel,
        .value = choice_value(&Options::parallel, NamedValues<std::string>{{"single", "single"}},
                              {"pipeline", "ep", "dp", "zebra", "hybrid-ep", "chunked",
                               "data-centric", "model-centric"}),
        .help = "planner of the step"},
       {.name = "devices", .group = group, .commands = kModel,
        .value = choice_value(&Options::devices,
                              NamedValues<std::string>{{"auto", "auto"}, {"host", "host"}},
                              {"cuda", "virtual"}),
        .help = "where to run"},
       {.name = "cpu-memory", .group = group, .commands = kModel,
        .value = size_value(&Options::cpu_memory), .unit = "bytes, or with k M G Ki Mi Gi",
        .help = "memory that the process may use", .default_text = "what the machine has"},
       {.name = "threads", .group = group, .commands = kModel,
        .value = integer_value(&Options::threads, 0, 4096), .unit = "threads",
        .help = "workers of an op; results do not depend on it; 0 = one a physical core",
        .may_change = true},
       {.name = "compute-dtype", .group = group, .commands = kModel,
        .value = choice_value(&Options::compute,
                              NamedValues<ComputeChoice>{{"auto", ComputeChoice::automatic},
                                                         {"f32", ComputeChoice::f32},
                                                         {"bf16", ComputeChoice::bf16}}),
        .help = "operands of products; auto: bf16 where it is fast and the checkpoint is bf16"},
       {.name = "recompute", .group = group, .commands = kTraining,
        .value = choice_value(&Options::recompute,
                              NamedValues<Recompute>{{"none", Recompute::none},
                                                     {"blocks", Recompute::blocks},
                                                     {"auto", Recompute::automatic}}),
        .help = "compute blocks again in the backward pass instead of keeping their values"},
       {.name = "follow-links", .group = group,
        .commands = {train, plan, eval, generate, inspect, verify},
        .value = flag_value(&Options::follow_links),
        .help = "read links in a model directory that lead out of it"}});
}

void add_state(std::vector<Option>& table) {
  const std::string group = "state";
  table.insert(
      table.end(),
      {{.name = "save-every", .group = group, .commands = kTraining,
        .value = interval_value(&Options::save_every), .unit = "steps or time",
        .help = "save the state; 0 = at the end only", .may_change = true,
        .aliases = {"save-steps"}},
       {.name = "keep", .group = group, .commands = kTraining,
        .value = integer_value(&Options::keep, 1), .unit = "saved states",
        .help = "newest states that stay", .may_change = true, .aliases = {"save-total-limit"}},
       {.name = "final-state", .group = group, .commands = kTraining,
        .value = switch_value(&Options::final_state), .help = "save the state of the last step"},
       {.name = "resume", .group = group, .commands = kTraining, .value = resume_value(),
        .help = "go on from the newest saved state of --out, never, or from DIR",
        .may_change = true, .aliases = {"resume-from-checkpoint"}},
       {.name = "allow-change", .group = group, .commands = kTraining,
        .value = list_value(&Options::allow_change, "NAMES", true),
        .help = "options that a resume may change besides the usual; separated by commas",
        .default_text = "none", .may_change = true},
       {.name = "eval-every", .group = group, .commands = kTraining,
        .value = integer_or_off_value(&Options::eval_every), .unit = "steps",
        .help = "evaluate --eval-data; 0 = never", .may_change = true, .aliases = {"eval-steps"}},
       {.name = "eval-at-start", .group = group, .commands = kTraining,
        .value = flag_value(&Options::eval_at_start), .help = "evaluate before the first step",
        .aliases = {"eval-on-start"}},
       {.name = "log-every", .group = group, .commands = kTraining,
        .value = integer_value(&Options::log_every, 1), .unit = "steps",
        .help = "lines on the console; metrics.jsonl has every step", .may_change = true,
        .aliases = {"logging-steps"}},
       {.name = "trace", .group = group, .commands = kTraining,
        .value = text_value(&Options::trace, "FILE"),
        .help = "write the tasks of the last step as a Chrome trace", .default_text = "none",
        .may_change = true}});
}

void add_generation(std::vector<Option>& table) {
  const std::string group = "generation";
  table.insert(
      table.end(),
      {{.name = "prompt", .group = group, .commands = {generate},
        .value = text_value(&Options::prompt, "TEXT"), .help = "text to go on from"},
       {.name = "messages", .group = group, .commands = {generate},
        .value = text_value(&Options::messages_file, "FILE"),
        .help = "chat to answer: a JSON list of {role, content}, or an object with \"messages\""},
       {.name = "max-new-tokens", .group = group, .commands = {generate},
        .value = integer_value(&Options::max_new_tokens, 1, 1 << 20), .unit = "tokens",
        .help = "stop after as many"},
       {.name = "temperature", .group = group, .commands = {generate},
        .value = number_value(&Options::temperature, {.most = 100}), .help = "0 = greedy"},
       {.name = "top-p", .group = group, .commands = {generate},
        .value = number_value(&Options::top_p, {.most = 1, .open_least = true}),
        .help = "draw from the most likely tokens that have this probability together"},
       {.name = "kv-cache", .group = group, .commands = {generate},
        .value = switch_value(&Options::kv_cache),
        .help = "keep keys and values; off computes the same text from the start each time"}});
}

void add_other(std::vector<Option>& table) {
  table.insert(
      table.end(),
      {{.name = "config", .group = "what", .commands = {init},
        .value = text_value(&Options::model_config, "FILE"),
        .help = "config.json of the new checkpoint"},
       {.name = "tokenizer", .group = "what", .commands = {init},
        .value = text_value(&Options::tokenizer, "DIR"),
        .help = "directory whose tokenizer files are copied",
        .default_text = "a built-in one: 256 bytes and ChatML's specials"},
       {.name = "no-special", .group = "output", .commands = {tokenize},
        .value = flag_value(&Options::no_special),
        .help = "leave out the ids that the post-processor adds"},
       {.name = "digest", .group = "output", .commands = {inspect},
        .value = flag_value(&Options::digest), .help = "one hash a tensor, and one of all"},
       {.name = "json", .group = "output", .commands = {eval, plan, inspect, tokenize},
        .value = flag_value(&Options::json), .help = "print one JSON document"},
       {.name = "quiet", .group = "output", .commands = kAll,
        .value = flag_value(&Options::quiet), .help = "warnings and errors only",
        .may_change = true},
       {.name = "verbose", .group = "output", .commands = kAll,
        .value = flag_value(&Options::verbose), .help = "more on stderr", .may_change = true}});
}

// clang-format on

}  // namespace

const std::vector<Option>& option_table() {
  static const std::vector<Option> table = [] {
    std::vector<Option> t;
    add_what(t);
    add_batch(t);
    add_optimizer(t);
    add_data(t);
    add_run(t);
    add_state(t);
    add_generation(t);
    add_other(t);
    return t;
  }();
  return table;
}

}  // namespace hearth
