// Configurations written for other trainers: they run, or each key without counterpart is told.
#include <catch2/catch_test_macros.hpp>

#include "support/raises.h"
#include "tools/foreign_fixture.h"

using namespace hearth;
using test::one_says;
using test::parsed_yaml;
using test::problems_of;
using test::raised_by;

TEST_CASE("a LLaMA-Factory configuration runs") {
  const CommandLine line = parsed_yaml(R"(### model
model_name_or_path: models/qwen3-moe
trust_remote_code: true
### method
stage: sft
do_train: true
finetuning_type: full
deepspeed: examples/deepspeed/ds_z3_config.json
### dataset
dataset: rows.jsonl,more.jsonl
template: qwen3
cutoff_len: 2048
overwrite_cache: true
preprocessing_num_workers: 16
dataloader_num_workers: 4
### output
output_dir: saves/full/sft
logging_steps: 10
save_steps: 500
plot_loss: true
overwrite_output_dir: true
save_only_model: false
report_to: none
### train
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
learning_rate: 1.0e-5
num_train_epochs: 3.0
lr_scheduler_type: cosine
warmup_ratio: 0.1
bf16: true
ddp_timeout: 180000000
resume_from_checkpoint: null
### eval
eval_dataset: eval.jsonl
per_device_eval_batch_size: 1
eval_strategy: steps
eval_steps: 500
)");
  const Options& o = line.options;
  CHECK(o.model == "models/qwen3-moe");
  CHECK(o.data == std::vector<std::string>{"rows.jsonl", "more.jsonl"});
  CHECK(o.eval_data == std::vector<std::string>{"eval.jsonl"});
  CHECK(o.seq_len == 2048);
  CHECK(o.micro_batch == 2);
  CHECK(o.grad_accum == 4);
  CHECK(o.epochs == 3);
  CHECK(o.warmup_ratio == 0.1);
  CHECK(o.compute == ComputeChoice::bf16);
  CHECK(o.eval_every.steps == 500);
  CHECK(o.log_every == 10);
  CHECK(o.resume == ResumeMode::automatic);
  // What has no effect is told with --verbose; a template that may differ from the model's always.
  CHECK(one_says(line.notes, "template: no effect"));
  for (const char* key : {"deepspeed", "stage", "report_to", "resume_from_checkpoint"}) {
    INFO(key);
    CHECK(one_says(line.details, std::string(key) + ":"));
    CHECK_FALSE(one_says(line.notes, std::string(key) + ":"));
  }
}

TEST_CASE("an axolotl configuration runs") {
  const CommandLine line = parsed_yaml(R"(
base_model: models/mixtral
model_type: AutoModelForCausalLM
tokenizer_type: AutoTokenizer
load_in_8bit: false
load_in_4bit: false
strict: false
datasets:
  - path: a.jsonl
    type: chat_template
    field_messages: messages
  - path: json
    data_files: [b.jsonl]
    type: chat_template
    split: train
dataset_prepared_path: last_run_prepared
val_set_size: 0.0
output_dir: ./outputs/out
sequence_len: 4096
sample_packing: true
pad_to_sequence_len: true
wandb_project:
wandb_entity:
gradient_accumulation_steps: 2
micro_batch_size: 1
num_epochs: 1
optimizer: adamw_torch_fused
lr_scheduler: cosine
learning_rate: 0.0002
train_on_inputs: false
group_by_length: false
bf16: auto
fp16:
tf32: false
gradient_checkpointing: true
gradient_checkpointing_kwargs:
  use_reentrant: false
resume_from_checkpoint:
logging_steps: 1
flash_attention: true
warmup_steps: 10
weight_decay: 0.0
fsdp:
special_tokens:
  pad_token: "<|end|>"
)");
  const Options& o = line.options;
  CHECK(o.model == "models/mixtral");
  CHECK(o.data == std::vector<std::string>{"a.jsonl", "b.jsonl"});
  CHECK(o.format == RowFormat::messages);
  CHECK(o.seq_len == 4096);
  CHECK(o.packing);
  CHECK(o.recompute == Recompute::blocks);
  CHECK(o.compute == ComputeChoice::automatic);
  CHECK(o.warmup == 10);
}

TEST_CASE("TRL's names, in a file and as flags") {
  const std::string yaml =
      "model_name_or_path: m\ndataset_name: d.jsonl\noutput_dir: o\nmax_length: 1024\n"
      "packing: true\nassistant_only_loss: true\noptim: adamw_torch\nlr_scheduler_type: "
      "constant_with_warmup\nmax_steps: -1\nnum_train_epochs: 2\nsave_strategy: 'no'\n"
      "eval_strategy: 'no'\nlogging_first_step: true\ngradient_checkpointing: false\n"
      "use_cpu: true\ndtype: bfloat16\nattn_implementation: sdpa\nseed: 7\n";
  const Options o = parsed_yaml(yaml, {"--bf16", "True", "--report_to", "none"}).options;
  CHECK(o.seq_len == 1024);
  CHECK(o.lr_schedule == LrSchedule::constant);
  CHECK_FALSE(o.steps);
  CHECK(o.epochs == 2);
  CHECK_FALSE(o.save_every.steps);
  CHECK(o.recompute == Recompute::none);
  CHECK(o.compute == ComputeChoice::bf16);
  CHECK(o.seed == 7);
  CHECK(parsed_yaml(yaml, {"--bf16"}).options.compute == ComputeChoice::bf16);
  CHECK(parsed_yaml(yaml, {"--bf16=false"}).options.compute == ComputeChoice::f32);
}

TEST_CASE("axolotl's names for the fields of messages") {
  const auto format = [](const std::string& fields) {
    return parsed_yaml(
               "base_model: m\noutput_dir: o\ndatasets:\n  - path: rows.jsonl\n"
               "    type: chat_template\n" +
               fields)
        .options.format;
  };
  CHECK(format("    field_messages: messages\n    message_property_mappings:\n"
               "      role: role\n      content: content\n") == RowFormat::messages);
  CHECK(format("    field_messages: conversations\n    message_property_mappings: "
               "{role: from, content: value}\n    roles_to_train: [gpt]\n") == RowFormat::sharegpt);
  const auto problems = problems_of(
      "base_model: m\noutput_dir: o\ndatasets:\n  - path: rows.jsonl\n    type: chat_template\n"
      "    message_property_mappings:\n      role: speaker\n");
  CHECK(one_says(problems, "c.yaml:7: role: 'speaker': expected 'role'"));
}

TEST_CASE("adapters as other trainers ask for them") {
  const char* head = "base_model: m\noutput_dir: o\ndatasets: [{path: rows.jsonl, type: alpaca}]\n";
  const auto parsed = [&](const std::string& more) { return parsed_yaml(head + more).options; };
  const Options axolotl = parsed(
      "adapter: lora\nlora_r: 8\nlora_alpha: 16\nlora_dropout: 0.05\npeft_use_rslora: true\n"
      "lora_target_modules: [q_proj, w1, experts]\n");
  CHECK(axolotl.method == Method::lora);
  CHECK(axolotl.lora_rank == 8);
  CHECK(axolotl.lora_alpha == 16);
  CHECK(axolotl.lora_dropout == 0.05);
  CHECK(axolotl.rslora);
  CHECK(axolotl.lora_targets ==
        std::vector<std::string>{"*.q_proj.weight", "*.w1.weight", "experts"});
  CHECK(parsed("adapter: lora\nlora_model_dir: old\n").adapter == "old");
  const Options factory = parsed("finetuning_type: lora\nlora_rank: 8\nlora_target: q_proj\n");
  CHECK(factory.method == Method::lora);
  CHECK(factory.lora_rank == 8);
  CHECK(factory.lora_targets == std::vector<std::string>{"*.q_proj.weight"});
  CHECK(parsed("use_peft: true\nlora_target_modules: q_proj,v_proj\n").lora_targets ==
        std::vector<std::string>{"*.q_proj.weight", "*.v_proj.weight"});
  CHECK(parsed("use_peft: false\n").method == Method::full);
  for (const char* refused : {"peft_use_dora: true", "adapter: qlora", "pissa_init: true",
                              "lora_modules_to_save: [embed_tokens]", "use_dora: true"}) {
    INFO(refused);
    CHECK_FALSE(problems_of(std::string(head) + refused + "\n").empty());
  }
}

TEST_CASE("what asks for something else is refused, each with what to do, in one go") {
  const auto problems = problems_of(R"(
base_model: m
output_dir: o
datasets:
  - path: tatsu-lab/alpaca
    type: alpaca
    shards: 4
load_in_4bit: true
optimizer: muon
val_set_size: 0.05
evals_per_epoch: 2
saves_per_epoch: 3
special_tokens:
  eos_token: x
model_config: {rope_theta: 1}
stage: dpo
fp16: true
learning_rate: [1, 2]
seq_len: {a: 1}
sequnce_len: 9
)");
  for (const char* part :
       {"datasets: 'tatsu-lab/alpaca': no such file",
        "c.yaml:7: shards: '4': this field has no counterpart",
        "load_in_4bit: 'true': quantized weights are not supported",
        "optimizer: 'muon': the optimizer is AdamW", "evals_per_epoch: '2': use eval_every",
        "saves_per_epoch: '3': use save_every", "special_tokens: the model's tokenizer files",
        "model_config: change the model's config.json", "stage: 'dpo'",
        "fp16: 'true': matrix products", "learning_rate: expected one value, found a list",
        "seq_len: expected a value",
        "sequnce_len: unknown key; the nearest is sequence_len (seq_len)"}) {
    INFO(part);
    CHECK(one_says(problems, part));
  }
  for (const std::string& problem : problems) {
    INFO(problem);
    CHECK(problem.find("c.yaml:") != std::string::npos);  // file and line
  }
  // Two ways to say one thing.
  CHECK(one_says(problems_of("model: m\ndata: d\nout: o\nbf16: true\ncompute_dtype: f32\n"),
                 "are the same option (compute-dtype)"));
}

TEST_CASE("foreign keys: the best model, noise, LoRA+, template variables") {
  const Options o = parsed_yaml(R"(
model: m
data: rows.jsonl
output_dir: out
finetuning_type: lora
eval_dataset: eval.jsonl
eval_strategy: steps
eval_steps: 50
load_best_model_at_end: true
metric_for_best_model: loss
greater_is_better: false
early_stopping_patience: 3
early_stopping_threshold: 0.0
save_total_limit: 4
neftune_noise_alpha: 5
loraplus_lr_ratio: 16
use_dora: false
chat_template_kwargs: {enable_thinking: false, name: x}
)")
                        .options;
  CHECK(o.load_best);
  CHECK(o.metric == BestMetric::eval_loss);
  CHECK(o.early_stopping == 3);
  CHECK(o.keep == 4);
  CHECK(o.neftune == 5);
  CHECK(o.lora_plus_ratio == 16);
  CHECK(o.template_args == std::vector<std::string>{"enable_thinking=false", "name=x"});
  CHECK(parsed_yaml("model: m\ndata: a\nout: o\nenable_thinking: false\nnoisy_embedding_alpha: 3\n"
                    "val_size: 5\neval_every: 9\nearly_stopping_steps: 2\n")
            .options.early_stopping == 2);

  const auto told = problems_of(R"(
model: m
data: a.jsonl
out: out
use_dora: true
metric_for_best_model: accuracy
greater_is_better: true
early_stopping_threshold: 0.1
chat_template_kwargs: {a: [1, 2]}
)");
  CHECK(told.size() == 5);
  CHECK(one_says(told, "use_dora: 'true': DoRA is not supported"));
  CHECK(one_says(told, "metric_for_best_model: 'accuracy'"));
  CHECK(one_says(told, "greater_is_better"));
  CHECK(one_says(told, "early_stopping_threshold"));
  CHECK(one_says(told, "chat_template_kwargs: expected a map of variables"));
}
