// A small checkpoint with data, and runs over it in this process.
#pragma once

#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/file_ops.h"
#include "budget/run_rates.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_init.h"
#include "data/tokenizer/builtin_tokenizer.h"
#include "state/state_search.h"
#include "support/all_op_sets.h"
#include "support/raises.h"
#include "support/temporary_directory.h"
#include "train/evaluate.h"
#include "train/generate.h"
#include "train/report_plan.h"
#include "train/trainer.h"

namespace hearth::test {

/// Keeps what a run reports; `on_step` is called after each step.
class RecordingReporter : public Reporter {
 public:
  std::vector<StepMetrics> steps;
  std::vector<std::string> notes, warnings;
  std::function<void(const StepMetrics&)> on_step;

  void note(const std::string& line) override { notes.push_back(line); }
  void warn(const std::string& line) override { warnings.push_back(line); }
  void step(const StepMetrics& metrics, int64_t) override {
    steps.push_back(metrics);
    if (on_step) on_step(metrics);
  }
};

inline PlanReport plan_of(const TrainConfig& config, PlanDetail detail = PlanDetail::summary) {
  RecordingReporter reporter;
  return report_plan(config, reporter, detail);
}

/// Model and data in a temporary directory.
class TrainingFixture {
 public:
  TemporaryDirectory dir;
  /// Nothing is measured, which would take a second of each run. Tests of what is measured reset it.
  std::optional<AssumedRates> assumed{std::in_place};

  TrainingFixture() {
    register_all_op_sets();
    write(dir / "config.json", R"({"architectures":["Qwen3MoeForCausalLM"],
      "model_type":"qwen3_moe","vocab_size":259,"hidden_size":32,"num_hidden_layers":2,
      "num_attention_heads":2,"num_key_value_heads":1,"head_dim":16,"intermediate_size":40,
      "moe_intermediate_size":16,"num_experts":6,"num_experts_per_tok":2,"norm_topk_prob":true,
      "decoder_sparse_step":1,"mlp_only_layers":[0],"hidden_act":"silu",
      "max_position_embeddings":128,"rms_norm_eps":1e-6,"rope_theta":10000.0,
      "tie_word_embeddings":false,"torch_dtype":"bfloat16","router_aux_loss_coef":0.01})");
    make_directory(dir / "tokenizer");
    write_builtin_tokenizer(dir / "tokenizer");
    init_checkpoint(dir / "config.json", dir / "base", 5, dir / "tokenizer");
    std::string rows;
    for (int i = 0; i < 12; ++i) {
      rows += R"({"text": "row )" + std::to_string(i) +
              std::string(static_cast<size_t>(3 * i), 'x') + "\"}\n";
      rows += R"({"messages": [{"role": "user", "content": "What is )" + std::to_string(i) +
              R"(?"}, {"role": "assistant", "content": "It is a number."}]})" + "\n";
    }
    write(dir / "rows.jsonl", rows);
  }

  static void write(const std::string& path, const std::string& text) {
    write_file_atomically(path, text);
  }

  /// Eight steps with packing, shuffling, accumulation and several epochs.
  TrainConfig config(const std::string& out) const {
    TrainConfig c;
    c.model = dir / "base";
    c.data = {dir / "rows.jsonl"};
    c.out = dir / out;
    c.steps = 8;
    c.seq_len = 96;
    c.micro_batch = 2;
    c.grad_accum = 3;
    c.lr = 1e-2;
    c.warmup = 2;
    c.weight_decay = 0.1;
    c.threads = 2;
    c.save_every = {};
    c.data_cache = 0;
    c.recorded = {{"lr", "0.01", false}, {"seq-len", "96", false}, {"threads", "2", true}};
    return c;
  }

  ExitCode run(const TrainConfig& config) {
    RecordingReporter reporter;
    return train(config, reporter);
  }
  /// Runs and sends this process a SIGTERM after the step.
  ExitCode run_until(const TrainConfig& config, int64_t step) {
    RecordingReporter reporter;
    reporter.on_step = [step](const StepMetrics& m) {
      if (m.step == step) std::raise(SIGTERM);
    };
    return train(config, reporter);
  }

  std::string root(const std::string& out) const {
    const auto state = find_newest_state(dir / out, [](const RejectedState&) {});
    return state ? std::to_string(state->step) + " " + state->digest.root.hex() : "none";
  }
  std::string result(const std::string& out) const {
    const std::string adapter = dir / (out + "/adapter/adapter_model.safetensors");
    if (file_info(adapter).kind != FileKind::none) return read_file(adapter);
    return read_file(dir / (out + "/model/model.safetensors"));
  }
  std::vector<std::string> lines(const std::string& file) const {
    std::vector<std::string> all{""};
    for (const char c : read_file(dir / file)) {
      if (c == '\n') {
        all.emplace_back();
      } else {
        all.back() += c;
      }
    }
    all.pop_back();
    return all;
  }
};

}  // namespace hearth::test
