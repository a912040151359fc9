#include "base/setting.h"

namespace hearth {
namespace {

std::string in_words(Setting setting) {
  switch (setting) {
    case Setting::accept_other_base: return "accepting another base";
    case Setting::adapter: return "the adapter";
    case Setting::adapter_layout: return "the adapter layout";
    case Setting::chat_template: return "the chat template";
    case Setting::columns: return "the columns";
    case Setting::compute_dtype: return "the compute type";
    case Setting::cpu_memory: return "the memory of the process";
    case Setting::data: return "the data";
    case Setting::devices: return "the devices";
    case Setting::epochs: return "the number of epochs";
    case Setting::eval_at_start: return "evaluating at the start";
    case Setting::eval_data: return "the evaluation data";
    case Setting::divide_experts: return "dividing experts along their width";
    case Setting::expert_r: return "the rank of the experts";
    case Setting::experts: return "the chosen experts";
    case Setting::format: return "the row format";
    case Setting::freeze: return "the frozen tensors";
    case Setting::follow_links: return "following links";
    case Setting::gpu_memory: return "the memory of a GPU";
    case Setting::grad_accum: return "the micro-batches per step";
    case Setting::json: return "as JSON";
    case Setting::logical_shards: return "the number of logical shards";
    case Setting::lora_alpha: return "the scale of the adapters, alpha";
    case Setting::lora_r: return "the adapter rank";
    case Setting::lora_targets: return "the adapter targets";
    case Setting::lr: return "the learning rate";
    case Setting::machine: return "the described machine";
    case Setting::max_new_tokens: return "the number of new tokens";
    case Setting::method: return "the training method";
    case Setting::micro_batch: return "the micro-batch size";
    case Setting::model: return "the model";
    case Setting::no_special_in_content: return "plain special tokens";
    case Setting::out: return "the output directory";
    case Setting::packing: return "the packing";
    case Setting::parallel: return "the mode";
    case Setting::plan: return "the plan file";
    case Setting::predictor: return "the predictor";
    case Setting::prompt: return "the prompt";
    case Setting::rank_devices: return "the devices of ranks";
    case Setting::rank_links: return "the links of ranks";
    case Setting::recompute: return "the recomputation";
    case Setting::replay_decisions: return "the decisions to replay";
    case Setting::resume: return "the state to resume";
    case Setting::seed: return "the seed";
    case Setting::seq_len: return "the sequence length";
    case Setting::steps: return "the number of steps";
    case Setting::system: return "the system message";
    case Setting::template_args: return "the template variables";
    case Setting::template_date: return "the template date";
    case Setting::thread_ranks: return "the number of thread ranks";
    case Setting::expert_ranks: return "the number of expert ranks";
    case Setting::attention_ranks: return "the number of attention ranks";
    case Setting::expert_shift: return "the experts that move";
    case Setting::levels: return "the levels of ranks";
    case Setting::domains: return "the expert domains";
    case Setting::kept_layers: return "the layers whose experts are kept";
    case Setting::tokenizer: return "the tokenizer directory";
    case Setting::trace: return "the trace file";
    case Setting::train_on: return "the trained turns";
    case Setting::trainable: return "the trainable tensors";
    case Setting::val_size: return "the validation size";
    case Setting::warmup: return "the warm-up";
    case Setting::wire: return "the weights on their way";
  }
  return "?";
}

std::string (*&speller())(Setting) {
  static std::string (*spell)(Setting) = in_words;
  return spell;
}

}  // namespace

std::string spelled(Setting setting) { return speller()(setting); }

std::string spelled(Setting setting, std::string_view value) {
  return spelled(setting).append(" ").append(value);
}

void spell_settings_by(std::string (*spell)(Setting)) {
  speller() = spell != nullptr ? spell : in_words;
}

}  // namespace hearth
