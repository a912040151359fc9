#include "options/setting_names.h"

#include "base/error.h"

namespace hearth {

std::string option_of(Setting setting) {
  switch (setting) {
    case Setting::accept_other_base: return "accept-other-base";
    case Setting::adapter: return "adapter";
    case Setting::adapter_layout: return "adapter-layout";
    case Setting::chat_template: return "chat-template";
    case Setting::columns: return "columns";
    case Setting::compute_dtype: return "compute-dtype";
    case Setting::cpu_memory: return "cpu-memory";
    case Setting::data: return "data";
    case Setting::devices: return "devices";
    case Setting::divide_experts: return "divide-experts";
    case Setting::epochs: return "epochs";
    case Setting::eval_at_start: return "eval-at-start";
    case Setting::eval_data: return "eval-data";
    case Setting::expert_r: return "expert-r";
    case Setting::experts: return "experts";
    case Setting::format: return "format";
    case Setting::freeze: return "freeze";
    case Setting::follow_links: return "follow-links";
    case Setting::gpu_memory: return "gpu-memory";
    case Setting::grad_accum: return "grad-accum";
    case Setting::json: return "json";
    case Setting::logical_shards: return "logical-shards";
    case Setting::lora_alpha: return "lora-alpha";
    case Setting::lora_r: return "lora-r";
    case Setting::lora_targets: return "lora-targets";
    case Setting::lr: return "lr";
    case Setting::machine: return "machine";
    case Setting::max_new_tokens: return "max-new-tokens";
    case Setting::method: return "method";
    case Setting::micro_batch: return "micro-batch";
    case Setting::model: return "model";
    case Setting::no_special_in_content: return "no-special-in-content";
    case Setting::out: return "out";
    case Setting::packing: return "packing";
    case Setting::parallel: return "parallel";
    case Setting::plan: return "plan";
    case Setting::predictor: return "predictor";
    case Setting::prompt: return "prompt";
    case Setting::rank_devices: return "rank-devices";
    case Setting::rank_links: return "rank-links";
    case Setting::recompute: return "recompute";
    case Setting::replay_decisions: return "replay-decisions";
    case Setting::resume: return "resume";
    case Setting::seed: return "seed";
    case Setting::seq_len: return "seq-len";
    case Setting::steps: return "steps";
    case Setting::system: return "system";
    case Setting::template_args: return "template-args";
    case Setting::template_date: return "template-date";
    case Setting::thread_ranks: return "thread-ranks";
    case Setting::expert_ranks: return "expert-ranks";
    case Setting::attention_ranks: return "attention-ranks";
    case Setting::expert_shift: return "expert-shift";
    case Setting::levels: return "levels";
    case Setting::domains: return "domains";
    case Setting::kept_layers: return "kept-layers";
    case Setting::tokenizer: return "tokenizer";
    case Setting::trace: return "trace";
    case Setting::train_on: return "train-on";
    case Setting::trainable: return "trainable";
    case Setting::val_size: return "val-size";
    case Setting::warmup: return "warmup";
    case Setting::wire: return "wire";
  }
  HEARTH_CHECK(false, "a setting without an option");
}

std::string flag_of(Setting setting) { return "--" + option_of(setting); }

}  // namespace hearth
