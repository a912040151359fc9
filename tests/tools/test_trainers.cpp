// Configurations of other trainers: whose file it is, what its silence means, and what is told.
#include "foreign/trainers.h"

#include <catch2/catch_test_macros.hpp>

#include "support/raises.h"
#include "tools/foreign_fixture.h"

using namespace hearth;
using test::one_says;
using test::parsed_yaml;
using test::problems_of;

namespace {

using Texts = std::vector<std::string>;

const char* const kFactoryLora = R"(### model
model_name_or_path: m
trust_remote_code: true
### method
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 8
lora_target: all
### dataset
dataset: rows.jsonl
template: qwen3_nothink
cutoff_len: 2048
max_samples: 1000
preprocessing_num_workers: 16
dataloader_num_workers: 4
### output
output_dir: saves
logging_steps: 10
save_steps: 500
plot_loss: true
overwrite_output_dir: true
save_only_model: false
report_to: none
### train
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
learning_rate: 1.0e-4
num_train_epochs: 3.0
lr_scheduler_type: cosine
warmup_ratio: 0.1
bf16: true
ddp_timeout: 180000000
resume_from_checkpoint: null
)";

}  // namespace

TEST_CASE("trainers: a file is of the trainer whose keys it has") {
  CHECK(trainer_of({"model-name-or-path", "finetuning-type", "cutoff-len", "output-dir"}) ==
        Trainer::llama_factory);
  CHECK(trainer_of({"base-model", "datasets", "output-dir", "learning-rate"}) == Trainer::axolotl);
  CHECK(trainer_of({"model-name-or-path", "dataset-name", "learning-rate"}) == Trainer::trl);
  CHECK(trainer_of({"model-name", "dataset", "max-seq-length", "r"}) == Trainer::unsloth);
  // Arguments of transformers alone; the recorded names of Hearth; a native file with one alias.
  CHECK(trainer_of({"output-dir", "num-train-epochs", "learning-rate"}) == Trainer::trl);
  CHECK(trainer_of({"model", "data", "out", "lr", "lora-r", "packing", "seed"}) == Trainer::none);
  CHECK(trainer_of({"model", "data", "out", "learning-rate", "cutoff-len"}) == Trainer::none);
  CHECK(trainer_of({"packing", "seed"}) == Trainer::none);
  // Model and data by Hearth's names in a file of LLaMA-Factory.
  CHECK(trainer_of({"model", "data", "finetuning-type", "lora-rank", "lora-target", "template"}) ==
        Trainer::llama_factory);
}

TEST_CASE("trainers: LLaMA-Factory's file starts with its author's values") {
  const CommandLine line = parsed_yaml(kFactoryLora);
  const Options& o = line.options;
  CHECK(o.method == Method::lora);
  CHECK(o.lora_rank == 8);
  CHECK(o.lora_alpha == 16);
  CHECK(o.lora_targets == Texts{"all"});
  CHECK_FALSE(o.packing);
  CHECK_FALSE(o.packing_by_data);
  CHECK_FALSE(o.epochs_by_data);
  CHECK(o.epochs == 3);
  CHECK(o.max_samples == 1000);
  CHECK(o.lr == 1e-4);
  CHECK(o.lr_schedule == LrSchedule::cosine);
  CHECK(o.warmup_ratio == 0.1);
  CHECK(one_says(line.notes, "c.yaml: read as a configuration of LLaMA-Factory"));
  CHECK(one_says(line.notes, "lora-alpha 16"));
  CHECK(one_says(line.notes, "packing off"));
  CHECK(line.notes.size() == 2);  // and the template

  // Where it is silent; `stage: pt` packs and trains every token.
  const Options silent =
      parsed_yaml("model_name_or_path: m\ndataset: rows.jsonl\noutput_dir: o\nstage: pt\n").options;
  CHECK(silent.method == Method::lora);
  CHECK(silent.lora_rank == 8);
  CHECK(silent.packing);
  CHECK(silent.train_on == TrainOn::all);
  CHECK(silent.lr == 5e-5);
  CHECK(silent.lr_schedule == LrSchedule::linear);
  CHECK(silent.warmup_ratio == 0);
  CHECK(silent.seq_len == 2048);
  CHECK(silent.micro_batch == 8);
  CHECK(silent.grad_accum == 1);
  // A flag beats the file and its silence.
  const Options flags =
      parsed_yaml(kFactoryLora, {"--lora-alpha", "5", "--packing", "on", "--epochs", "1"}).options;
  CHECK(flags.lora_alpha == 5);
  CHECK(flags.packing);
  CHECK(flags.epochs == 1);
  // Keys of adapters mean nothing to a full run.
  CHECK(parsed_yaml(kFactoryLora, {"--method", "full"}).options.method == Method::full);
}

TEST_CASE("trainers: KTransformers' keys place, and freeze trains something else") {
  const std::string kt = std::string(kFactoryLora) +
                         "use_kt: true\nkt_optimize_rule: rules/Qwen3Moe-sft-amx.yaml\n"
                         "cpu_infer: 32\nchunk_size: 8192\n";
  const CommandLine line = parsed_yaml(kt);
  for (const char* key : {"use_kt", "kt_optimize_rule", "cpu_infer", "chunk_size"}) {
    INFO(key);
    CHECK(one_says(line.details, std::string(": ") + key + ": no effect"));
  }
  // What a saved state holds is no question of training.
  CHECK(
      one_says(parsed_yaml("model_name_or_path: m\ndataset: r.jsonl\noutput_dir: o\nstage: sft\n"
                           "save_only_model: true\n")
                   .details,
               "c.yaml:5: save_only_model: no effect; a saved state has all that a resume needs"));
  const auto freeze = problems_of(
      "model_name_or_path: m\ndataset: rows.jsonl\noutput_dir: o\nfinetuning_type: freeze\n");
  REQUIRE(freeze.size() == 1);
  CHECK(one_says(freeze, "c.yaml:4: finetuning_type: 'freeze': use lora, or full with trainable"));
}

TEST_CASE("trainers: axolotl's files, and the columns of their data sets") {
  const std::string head =
      "base_model: m\noutput_dir: o\nadapter: lora\nlora_r: 16\nlora_alpha: 32\nlora_dropout: 0\n"
      "lora_target_modules:\n  - q_proj\n  - k_proj\nlora_target_parameters:\n"
      "  - experts.gate_up_proj\n  - experts.down_proj\nlora_mlp_kernel: true\n"
      "gradient_checkpointing: offload\noptimizer: adamw_bnb_8bit\nsaves_per_epoch: 1\n"
      "evals_per_epoch: 1\nval_set_size: 0\nwandb_project:\n";
  const CommandLine line = parsed_yaml(
      head +
      "datasets:\n  - path: rows.jsonl\n    type: chat_template\n    split: train[:50]\n"
      "    field_messages: dialogue\n    message_property_mappings:\n      role: from\n"
      "      content: value\n    field_system: persona\n");
  const Options& o = line.options;
  CHECK(o.method == Method::lora);
  CHECK(o.lora_targets == Texts{"*.q_proj.weight", "*.k_proj.weight", "experts"});
  CHECK(o.recompute == Recompute::blocks);
  CHECK(o.save_every.epoch);
  CHECK_FALSE(o.eval_every.is_set());  // without rows to evaluate on
  CHECK(one_says(line.details, "evals_per_epoch: no effect"));
  CHECK(one_says(line.notes, "optimizer: no effect; the optimizer is AdamW with both moments"));
  CHECK(o.format == RowFormat::sharegpt);
  CHECK(o.columns == Texts{"system=persona", "conversations=dialogue"});
  CHECK(o.max_samples == 50);
  CHECK(o.epochs == 1);
  CHECK(o.seq_len == 512);
  CHECK_FALSE(o.packing);
  CHECK(o.lr_schedule == LrSchedule::cosine);
  CHECK_FALSE(o.warmup_ratio);  // 3 %

  const auto columns = [&](const std::string& fields) {
    return parsed_yaml(head + "datasets:\n  - path: rows.jsonl\n" + fields).options;
  };
  CHECK(columns("    type: completion\n    field: body\n").columns == Texts{"text=body"});
  CHECK(columns("    type: chat_template\n    field_messages: chat\n").columns ==
        Texts{"messages=chat"});
  const Options alpaca =
      columns("    type:\n      field_instruction: question\n      field_output: answer\n");
  CHECK(alpaca.format == RowFormat::alpaca);
  CHECK(alpaca.columns == Texts{"instruction=question", "output=answer"});
  CHECK(columns("    type: alpaca\n    field_output: answer\n").columns == Texts{"output=answer"});
  CHECK(one_says(problems_of(head + "datasets:\n  - {path: a.jsonl, type: completion, field: x}\n"
                                    "  - {path: b.jsonl, type: completion, field: y}\n"),
                 "columns holds for all files"));
  CHECK(one_says(problems_of(head + "datasets:\n  - path: a.jsonl\n    split: train[:2%]\n"),
                 "c.yaml:22: split: 'train[:2%]': expected 'train'; use max_samples"));
  // An evaluation per epoch, as axolotl has it with rows for it.
  CHECK(parsed_yaml("base_model: m\noutput_dir: o\nval_set_size: 0.1\n"
                    "datasets: [{path: rows.jsonl, type: alpaca}]\n")
            .options.eval_every.epoch);
}

TEST_CASE("trainers: the sections of unsloth's own program") {
  const std::string file =
      "model: m\ndata:\n  dataset: rows.jsonl\n  format_type: auto\ntraining:\n"
      "  training_type: lora\n  max_seq_length: 1024\n  load_in_4bit: false\n  output_dir: o\n"
      "  num_epochs: 2\n  learning_rate: 0.0003\n  batch_size: 3\n"
      "  gradient_accumulation_steps: 5\n  warmup_steps: 5\n  max_steps: 0\n  save_steps: 0\n"
      "  random_seed: 17\n  packing: false\n  train_on_completions: true\n"
      "  gradient_checkpointing: unsloth\nlora:\n  lora_r: 64\n  lora_alpha: 16\n"
      "  target_modules: \"q_proj,v_proj\"\n  vision_all_linear: false\n  use_loftq: false\n"
      "  finetune_mlp_modules: true\nlogging:\n  enable_wandb: false\n  wandb_project: x\n"
      "  enable_tensorboard: false\n  tensorboard_dir: runs\n";
  const CommandLine line = parsed_yaml(file);
  CHECK(one_says(line.notes, "read as a configuration of unsloth"));
  const Options& o = line.options;
  CHECK(o.model == "m");
  CHECK(o.data == Texts{"rows.jsonl"});
  CHECK(o.method == Method::lora);
  CHECK(o.seq_len == 1024);
  CHECK(o.epochs == 2);
  CHECK(o.lr == 0.0003);
  CHECK(o.micro_batch == 3);
  CHECK(o.grad_accum == 5);
  CHECK(o.warmup == 5);
  CHECK_FALSE(o.steps);
  CHECK_FALSE(o.save_every.is_set());
  CHECK(o.seed == 17);
  CHECK(o.train_on == TrainOn::automatic);
  CHECK(o.recompute == Recompute::blocks);
  CHECK(o.lora_rank == 64);
  CHECK(o.lora_alpha == 16);
  CHECK(o.lora_targets == Texts{"*.q_proj.weight", "*.v_proj.weight"});
  // A problem in a section has the line and the key as written.
  const auto told = problems_of(file + "  batch_size: 0\n");
  CHECK(one_says(told, "c.yaml:12: batch_size and "));
  const auto quantised = problems_of(
      "model: m\ntraining:\n  load_in_4bit: true\n  output_dir: o\n  batch_size: 0\n"
      "data:\n  local_dataset: [rows.jsonl]\n");
  CHECK(one_says(quantised, "c.yaml:3: load_in_4bit: 'true'"));
  CHECK(one_says(quantised, "c.yaml:5: batch_size: "));
  REQUIRE(quantised.size() == 2);
  // Without sections nobody knows whose batch it is.
  CHECK(one_says(problems_of("model: m\ndata: r.jsonl\nout: o\nbatch_size: 3\n"),
                 "c.yaml:4: batch_size: '3': use micro_batch and grad_accum"));
}

TEST_CASE("trainers: a file without the keys that are told starts") {
  const std::string quantized = "load_in_4bit: true\nadapter: qlora\n";
  const std::string rest =
      "base_model: m\noutput_dir: o\nlora_r: 16\nlora_alpha: 32\nlora_target_linear: true\n"
      "datasets: [{path: rows.jsonl, type: alpaca}]\nlearning_rate: 2e-4\n";
  const auto told = problems_of(quantized + rest);
  REQUIRE(told.size() == 2);
  CHECK(one_says(told, "c.yaml:1: load_in_4bit: 'true'"));
  CHECK(one_says(told, "c.yaml:2: adapter: 'qlora'"));
  const CommandLine line = parsed_yaml(rest);
  CHECK(line.options.method == Method::full);  // as axolotl without `adapter`
  for (const char* key : {"lora_r", "lora_alpha", "lora_target_linear"}) {
    CHECK(one_says(line.details, std::string(key) + ": no effect; no adapters are trained"));
  }
  CHECK(parsed_yaml(rest + "adapter: lora\n").options.lora_targets == Texts{"all"});
  // What one option needs of others is told at the place of its key.
  CHECK(one_says(problems_of("base_model: m\noutput_dir: o\nval_set_size: 0.1\nnum_epochs: 1\n"
                             "datasets: [{path: r.jsonl}]\nlora_dropout: 2\nadapter: lora\n"),
                 "c.yaml:6: lora_dropout: "));
}

TEST_CASE("trainers: TRL trains whole chats, and prompts not") {
  const std::string head = "model_name_or_path: m\noutput_dir: o\nuse_peft: true\n";
  const Options o = parsed_yaml(head + "dataset_name: rows.jsonl\nwarmup_steps: 0.1\n").options;
  CHECK(o.train_on == TrainOn::all);
  CHECK(o.seq_len == 1024);
  CHECK(o.lora_rank == 16);
  CHECK(o.lora_alpha == 32);
  CHECK(o.lora_dropout == 0.05);
  CHECK(o.lora_targets == Texts{"*.q_proj.weight", "*.v_proj.weight"});
  CHECK(o.lr == 2e-5);
  CHECK(o.epochs == 3);
  CHECK(o.warmup_ratio == 0.1);
  CHECK(parsed_yaml(head + "dataset_name: rows.jsonl\nassistant_only_loss: true\n")
            .options.train_on == TrainOn::automatic);
  const test::TemporaryDirectory d;
  std::ofstream(d / "pairs.jsonl") << R"({"prompt": "a", "completion": "b"})"
                                   << "\n";
  CHECK(parsed_yaml(head + "dataset_name: " + (d / "pairs.jsonl") + "\n").options.train_on ==
        TrainOn::automatic);
  CHECK(parsed_yaml(head + "dataset_name: r.jsonl\ndataset_text_field: body\n").options.columns ==
        Texts{"text=body"});
  // The strategy beats the number.
  const std::string often = head + "dataset_name: r.jsonl\nval_size: 5\neval_steps: 7\n";
  CHECK(parsed_yaml(often + "eval_strategy: epoch\n").options.eval_every.epoch);
  CHECK(parsed_yaml(often + "eval_strategy: steps\n").options.eval_every.steps == 7);
  CHECK_FALSE(parsed_yaml(often + "eval_strategy: 'no'\n").options.eval_every.is_set());
}

TEST_CASE("trainers: every key of a file is a flag") {
  const Texts train{"train", "--model", "m", "--data", "d.jsonl", "--out", "o"};
  const auto parsed = [&](const Texts& more) {
    Texts words = train;
    words.insert(words.end(), more.begin(), more.end());
    return parse_command_line(words);
  };
  for (const Texts& flags : std::vector<Texts>{{"--wandb_project", "x"},
                                               {"--dataloader_num_workers", "4"},
                                               {"--kt_optimize_rule=r.yaml"},
                                               {"--lora_mlp_kernel"},
                                               {"--deepspeed", "ds.json"}}) {
    INFO(flags[0]);
    CHECK(one_says(parsed(flags).details, flags[0].substr(0, flags[0].find('=')) + ": no effect"));
  }
  const Options o = parsed({"--adapter", "lora", "--loraplus_lr_ratio", "16", "--lora_target",
                            "q_proj,v_proj", "--chat_template_kwargs", "{enable_thinking: false}"})
                        .options;
  CHECK(o.method == Method::lora);
  CHECK(o.lora_plus_ratio == 16);
  CHECK(o.lora_targets == Texts{"*.q_proj.weight", "*.v_proj.weight"});
  CHECK(o.template_args == Texts{"enable_thinking=false"});
  const auto raised = test::raised_by([&] { parsed({"--load_in_4bit", "true"}); });
  CHECK(raised.code == ExitCode::usage);
  CHECK(raised.says("--load_in_4bit: 'true': quantized weights"));  // as written
  // A family of keys has any end; the parser below must not see a list of names.
  const auto odd = test::raised_by([&] { parsed({"--lora-al,ha", "1"}); });
  CHECK(odd.code == ExitCode::usage);
  CHECK(odd.says("--lora-al,ha: unknown option"));
}
