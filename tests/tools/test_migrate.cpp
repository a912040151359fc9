// hearth migrate, by the built program. foreign_fixture.h migrates every sample of the other tests.
#include "tools/workplace.h"

#include "support/has.h"
#include "tools/foreign_fixture.h"

namespace hearth::test {
namespace {

const char* const kUnsloth = R"(model_name: m
max_seq_length: 1024
load_in_4bit: false
r: 16
lora_alpha: 16
lora_dropout: 0
bias: none
target_modules: [q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj]
use_gradient_checkpointing: unsloth
random_state: 3407
use_rslora: false
dataset: rows.jsonl
dataset_text_field: text
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
warmup_steps: 5
max_steps: 60
learning_rate: 2.0e-4
optim: adamw_8bit
weight_decay: 0.001
lr_scheduler_type: linear
seed: 3407
output_dir: outputs
report_to: none
)";

const char* const kTrl = R"(model_name_or_path: m
dataset_name: rows.jsonl
report_to: none
learning_rate: 1.0e-4
lr_scheduler_type: cosine
per_device_train_batch_size: 4
num_train_epochs: 2
use_peft: true
lora_r: 8
lora_target_modules: all-linear
max_length: 512
output_dir: o
)";

TEST_CASE("migrate: unsloth's and TRL's examples, and flags beside a file") {
  const CommandLine unsloth = parsed_yaml(kUnsloth);  // which migrates it
  CHECK(unsloth.options.lora_rank == 16);
  CHECK(unsloth.options.steps == 60);
  CHECK(unsloth.options.warmup == 5);
  CHECK(parsed_yaml(kTrl).options.lora_alpha == 32);
  // A native file comes out as it went in.
  CHECK(parsed_yaml("model: m\ndata: [a.jsonl, 'b c.jsonl:2.5']\nout: o\nlr: 3e-4\nsteps: 9\n")
            .options.steps == 9);
}

TEST_CASE("migrate: the printed file makes the same run") {
  const Workplace place;
  const std::string factory = place.d / "factory.yaml", native = place.d / "native.yaml";
  write(factory, "model_name_or_path: " + (place.d / "model") + "\ndataset: " +
                     (place.d / "rows.jsonl") + "\noutput_dir: " + (place.d / "out") +
                     "\nfinetuning_type: lora\nlora_target: all\nlora_rank: 2\ncutoff_len: 64\n"
                     "per_device_train_batch_size: 2\nsave_strategy: epoch\n"
                     "chat_template_kwargs: {enable_thinking: false}\nnum_train_epochs: 1.0\n");
  const ProgramResult migrated = place.run({"migrate", factory});
  REQUIRE(migrated.exit_code == 0);
  write(native, migrated.out);
  std::map<std::string, std::string> recorded, adapters;
  for (const std::string& file : {factory, native}) {
    const ProgramResult run = place.run({"train", file, "--threads", "1"});
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    CHECK(has(run.err, "read as a configuration of LLaMA-Factory") == (file == factory));
    recorded[file] = content(place.d / "out/config.yaml");
    adapters[file] = content(place.d / "out/adapter/adapter_model.safetensors");
    std::filesystem::remove_all(place.d / "out");
  }
  CHECK_FALSE(recorded[factory].empty());
  CHECK(recorded[factory] == recorded[native]);
  CHECK_FALSE(adapters[factory].empty());
  CHECK(adapters[factory] == adapters[native]);
}

TEST_CASE("migrate: what train would refuse is refused with the same lines") {
  const Workplace place;
  const std::string file = place.d / "bad.yaml";
  write(file,
        "base_model: m\noutput_dir: o\ndatasets: [{path: r.jsonl}]\nload_in_4bit: true\n"
        "adapter: qlora\ncutof_len: 8\n");
  const ProgramResult migrated = place.run({"migrate", file}), train = place.run({"train", file});
  CHECK(migrated.exit_code == 2);
  CHECK(migrated.out.empty());
  CHECK(has(migrated.err, "bad.yaml:6: cutof_len: unknown key"));
  CHECK(migrated.err == train.err);
}

}  // namespace
}  // namespace hearth::test
