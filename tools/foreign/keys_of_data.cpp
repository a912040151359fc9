// Data: how keys of other trainers are read (docs/configuration.md): the model, what is trained, rows.
#include "foreign/key_tables.h"

namespace hearth {
namespace {

using enum OtherValue;

const std::string kNoQuantised =
    "quantized weights are not supported, master weights are f32; set it to "
    "false";
const std::string kPlainLora = "adapters are plain LoRA (lora_r, lora_alpha, rslora)";
const std::string kNoDora =
    "DoRA is not supported: adapters are plain LoRA, with rslora or lora_plus_ratio; set it to "
    "false";
const std::string kTargets =
    "use lora_targets: groups (attention, experts, shared-experts, dense, router, head) or globs "
    "on "
    "tensor names";
const std::string kBeside =
    "use trainable: globs on whole tensor names, trained in addition to the adapters";
const std::string kOneTask = "the only training task is supervised fine-tuning (sft)";
const std::string kByHub = "use model: ORG/NAME@REVISION";
const std::string kTokenizer = "the model's tokenizer files are used unchanged";
const std::string kFast = "hearth always uses its fastest kernel for the machine";
const std::string kArchitecture = "the model's config.json decides";

// Names of modules, as lists of targets have them, and a glob on the names of their weights.
ForeignValues module_globs() {
  ForeignValues values;
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj",
                           "down_proj", "w1", "w2", "w3", "lm_head"}) {
    const std::string module(name);
    values.emplace_back(module, module == "lm_head" ? "head" : "*." + module + ".weight");
  }
  values.emplace_back("all", "all");
  values.emplace_back("all-linear", "all");
  return values;
}

// Stacked parameters of experts, as transformers 5 names them.
ForeignValues expert_parameters() {
  ForeignValues values;
  for (const char* before : {"", "mlp.", "block_sparse_moe."}) {
    for (const char* matrix : {"experts.gate_up_proj", "experts.down_proj"}) {
      values.emplace_back(std::string(before) + matrix, "experts");
    }
  }
  return values;
}

// Names of axolotl's own templates. The model's own is used, as for LLaMA-Factory's `template`.
ForeignValues named_templates() {
  ForeignValues values{{"tokenizer_default", ""}, {"tokenizer_default_fallback_chatml", ""}};
  for (const char* name : {"alpaca",
                           "aya",
                           "cohere",
                           "command_a",
                           "command_a_rag",
                           "command_a_tool_use",
                           "deepseek_v2",
                           "deepseek_v3",
                           "exaone",
                           "exaone4",
                           "falcon_h1",
                           "gemma",
                           "gemma3",
                           "gemma3n",
                           "inst",
                           "jamba",
                           "llama3",
                           "llama3_2_vision",
                           "llama4",
                           "llava",
                           "metharme",
                           "mistral_v1",
                           "mistral_v2v3",
                           "mistral_v3_tekken",
                           "mistral_v7_tekken",
                           "phi_3",
                           "phi_35",
                           "phi_4",
                           "qwen2_vl",
                           "qwen3",
                           "qwen3_5",
                           "qwen_25"}) {
    values.emplace_back(name, "!the model's chat template is used");
  }
  return values;
}

}  // namespace

std::vector<ForeignKey> foreign_keys_of_data() {
  // clang-format off
  return {
      // The model.
      {"model-name", "model", {}, pass, ""},
      {"env", "", {}, ignore, "set the variables in the environment"},
      {"nvfp4-*", "", kIfFalse, refuse, kNoQuantised},
      {"fast-inference", "", {}, ignore, ""},
      {"gpu-memory-utilization", "", {}, ignore, ""},
      {"trust-remote-code", "", kIfFalse, ignore, "code that comes with a model is never run"},
      {"model-type", "", {}, ignore, ""},
      {"tokenizer-type", "", {}, ignore, ""},
      {"tokenizer-use-fast", "", {}, ignore, ""},
      {"use-fast-tokenizer", "", {}, ignore, ""},
      {"tokenizer-use-mistral-common", "", kIfFalse, refuse, kTokenizer + "; set it to false"},
      {"tokenizer-legacy", "", {}, ignore, ""},
      {"tokenizer-save-jinja-files", "", {}, ignore, ""},
      {"processor-type", "", {}, ignore, ""},
      {"is-*", "", {}, ignore, kArchitecture},
      {"base-model-config", "", {}, ignore, kArchitecture},
      {"model-config", "", {}, refuse, "change the model's config.json; remove the key", false, {"output_router_logits"}},
      {"base-model-ignore-patterns", "", {}, ignore, ""},
      {"tokenizer-config", "", {}, refuse, kTokenizer + "; remove the key"},
      {"tokenizer-name-or-path", "", {}, refuse, kTokenizer + "; remove the key"},
      {"tokenizer-name", "", {}, refuse, kTokenizer + "; remove the key"},
      {"revision-of-model", "", {{"main", ""}}, refuse, kByHub},
      {"model-revision", "", {{"main", ""}}, refuse, kByHub},
      {"cache-dir", "", {}, refuse, "set HF_HUB_CACHE in the environment; remove the key"},
      {"dtype", "", {}, ignore, "master weights are f32; compute_dtype chooses the type of matrix products"},
      {"torch-dtype", "", {}, ignore, "master weights are f32; compute_dtype chooses the type of matrix products"},
      {"infer-dtype", "", {}, ignore, ""},
      {"infer-backend", "", {}, ignore, ""},
      {"use-kv-cache", "", {}, ignore, ""},
      {"hf-use-auth-token", "", {}, ignore, ""},
      {"hf-hub-token", "", {}, ignore, ""},
      {"ms-hub-token", "", {}, ignore, ""},
      {"om-hub-token", "", {}, ignore, ""},
      {"low-cpu-mem-usage", "", {}, ignore, ""},
      {"experimental-skip-move-to-device", "", {}, ignore, ""},
      {"offload-folder", "", {}, ignore, ""},
      {"output-router-logits", "", kIfTrue, ignore, "router_aux_loss sets the auxiliary loss (0 = off)"},
      {"model-init-kwargs", "", {}, refuse, "use model; remove the key", false, {"output_router_logits"}},
      {"overrides-of-model-*", "", {}, refuse, "change the model's config.json; remove the key"},
      {"rope-scaling", "", {{"none", ""}}, refuse, "change the model's config.json; remove the key"},
      {"resize-*", "", kIfFalse, refuse, "the vocabulary is never resized; set it to false"},
      {"mean-resizing-embeddings", "", {}, ignore, ""},
      {"shrink-embeddings", "", kIfFalse, refuse, "the vocabulary is never resized; set it to false"},
      {"load-in-8bit", "", kIfFalse, refuse, kNoQuantised},
      {"load-in-4bit", "", kIfFalse, refuse, kNoQuantised},
      {"gptq", "", kIfFalse, refuse, kNoQuantised},
      {"model-quantization-config", "", {}, refuse, kNoQuantised},
      {"quantize-*", "", kIfFalse, refuse, kNoQuantised},
      {"double-quantization", "", {}, ignore, ""},
      {"bnb-*", "", {}, ignore, ""},
      {"use-bnb-*", "", {}, ignore, ""},
      {"qat", "", kIfFalse, refuse, kNoQuantised},
      {"quantization-*", "", {}, refuse, kNoQuantised},
      {"quantization", "", {}, refuse, kNoQuantised},
      {"special-tokens", "", {}, refuse, kTokenizer + "; remove the key", false, {"pad_token"}},
      {"tokens", "", {}, refuse, kTokenizer + "; remove the key"},
      {"added-tokens-overrides", "", {}, refuse, kTokenizer + "; remove the key"},
      {"add-tokens", "", {}, refuse, kTokenizer + "; remove the key"},
      {"add-special-tokens", "", {}, refuse, kTokenizer + "; remove the key"},
      {"new-special-tokens-config", "", {}, refuse, kTokenizer + "; remove the key"},
      {"init-special-tokens", "", {}, ignore, ""},
      {"split-special-tokens", "", kIfFalse, refuse, "use no_special_in_content: special tokens in messages become text"},
      {"eot-tokens", "", {}, refuse, kTokenizer + "; remove the key"},
      {"new-special-tokens", "", {}, refuse, kTokenizer + "; remove the key"},
      {"eos-token", "", {}, refuse, kTokenizer + "; remove the key"},
      {"pad-token", "", {}, ignore, ""},
      {"padding-side", "", {}, ignore, ""},
      // What is trained.
      {"stage", "train-on", {{"sft", ""}, {"pt", "all"}}, refuse, kOneTask},
      {"rl", "", kIfFalse, refuse, kOneTask},
      {"reward-model", "", kIfFalse, refuse, kOneTask},
      {"process-reward-model", "", kIfFalse, refuse, kOneTask},
      {"trl", "", {}, refuse, kOneTask + "; remove the key"},
      {"vllm", "", {}, refuse, kOneTask + "; remove the key"},
      {"pref-*", "", {}, refuse, kOneTask + "; remove the key"},
      {"loss-type", "", {{"nll", ""}, {"chunked_nll", ""}}, refuse, "the only loss is cross-entropy; remove the key"},
      {"use-dft-loss", "", kIfFalse, refuse, "the only loss is cross-entropy; set it to false"},
      {"use-asft-loss", "", kIfFalse, refuse, "the only loss is cross-entropy; set it to false"},
      {"use-eaft-loss", "", kIfFalse, refuse, "the only loss is cross-entropy; set it to false"},
      {"do-train", "", kIfTrue, refuse, "'hearth train' always trains; use 'hearth eval' to evaluate"},
      {"do-eval", "", {}, ignore, "use eval_data and eval_every to evaluate"},
      {"do-predict", "", kIfFalse, refuse, "use 'hearth generate' or 'hearth eval'"},
      {"predict-with-generate", "", kIfFalse, refuse, "use 'hearth generate'"},
      {"finetuning-type", "method", {{"full", "full"}, {"lora", "lora"}}, refuse, "use lora, or full with trainable and freeze: globs on whole tensor names"},
      {"full-finetuning", "method", {{"true", "full"}, {"false", ""}}, refuse, "expected true or false"},
      {"use-peft", "method", {{"true", "lora"}, {"false", ""}}, refuse, "expected true or false"},
      {"lora-target", "lora-targets", module_globs(), pass, "", true},
      {"lora-target-modules", "lora-targets", module_globs(), pass, "", true},
      {"target-modules", "lora-targets", module_globs(), pass, "", true},
      {"lora-target-linear", "lora-targets", {{"true", "all"}, {"false", ""}}, refuse, "expected true or false"},
      {"lora-target-parameters", "lora-targets", expert_parameters(), pass, "", true},
      {"lora-mlp-kernel", "", {}, ignore, kFast},
      {"lora-qkv-kernel", "", {}, ignore, kFast},
      {"lora-o-kernel", "", {}, ignore, kFast},
      {"lora-embedding-kernel", "", {}, ignore, kFast},
      {"r", "lora-r", {}, pass, ""},
      {"training-type", "method", {{"full", "full"}, {"lora", "lora"}}, refuse, "expected full or lora"},
      {"use-loftq", "", kIfFalse, refuse, kPlainLora + "; set it to false"},
      {"vision-all-linear", "", {}, ignore, ""},
      {"bias", "", {{"none", ""}}, refuse, kPlainLora + "; remove the key"},
      {"loftq-config", "", {}, refuse, kPlainLora + "; remove the key"},
      {"modules-to-save", "", {}, refuse, kBeside},
      {"finetune-*", "", kIfTrue, refuse, kTargets},
      {"lora-modules-to-save", "", {}, refuse, kBeside},
      {"additional-target", "", {}, refuse, kBeside},
      {"lora-on-cpu", "", {}, ignore, ""},
      {"lora-fan-in-fan-out", "", {}, ignore, ""},
      {"lora-task-type", "", {}, ignore, ""},
      {"lora-*", "", {{"false", ""}}, refuse, kPlainLora + "; remove the key"},
      {"peft-use-rslora", "rslora", {}, pass, ""},
      {"peft-*", "", {{"false", ""}}, refuse, kPlainLora + "; remove the key"},
      {"qlora-*", "", {{"false", ""}}, refuse, kNoQuantised},
      {"use-dora", "", kIfFalse, refuse, kNoDora},
      {"dora", "", kIfFalse, refuse, kNoDora},
      {"peft-use-dora", "", kIfFalse, refuse, kNoDora},
      {"adapter-name-or-path", "adapter", {}, pass, ""},
      {"lora-model-dir", "adapter", {}, pass, ""},
      {"adapter-folder", "", {}, refuse, "adapter takes the path of the directory; remove the key"},
      {"create-new-adapter", "", kIfFalse, refuse, "merge the old adapter with 'hearth export' first; set it to false"},
      {"loraplus-lr-embedding", "", {}, ignore, "embeddings get no adapters"},
      {"relora*", "", kIfFalse, refuse, kPlainLora + "; remove the key"},
      {"pissa-*", "", kIfFalse, refuse, kPlainLora + "; set it to false"},
      {"peft", "", {}, refuse, kPlainLora + "; remove the key"},
      {"unfrozen-parameters", "", {}, refuse, "use trainable: globs on whole tensor names"},
      {"freeze-trainable-*", "", {}, refuse, "use trainable and freeze: globs on whole tensor names"},
      {"freeze-extra-modules", "", {}, refuse, "use trainable and freeze: globs on whole tensor names"},
      {"freeze-vision-tower", "", {}, ignore, ""},
      {"freeze-multi-modal-projector", "", {}, ignore, ""},
      {"freeze-language-model", "", kIfFalse, refuse, "use trainable and freeze: globs on whole tensor names"},
      {"use-llama-pro", "", kIfFalse, refuse, "use trainable and freeze: globs on whole tensor names"},
      {"mixture-of-depths", "", kIfFalse, refuse, "the architecture is never changed; remove the key"},
      {"train-from-scratch", "", kIfFalse, refuse, "use 'hearth init' to make a random checkpoint; set it to false"},
      // Rows.
      {"dataset", "data", {}, pass, "", true},
      {"eval-dataset", "eval-data", {}, pass, "", true},
      {"local-dataset", "data", {}, pass, "", true},
      {"format-type", "", {{"auto", ""}}, refuse, "use format, or remove the key: a row's keys tell its kind"},
      {"dataset-dir", "", {}, ignore, "data takes paths of files"},
      {"max-train-samples", "max-samples", {}, pass, ""},
      {"media-dir", "", {}, ignore, ""},
      {"image-*", "", {}, ignore, ""},
      {"video-*", "", {}, ignore, ""},
      {"dataset-config", "", {}, refuse, "data takes paths of files; remove the key"},
      {"dataset-train-split", "", {{"train", ""}}, refuse, "data takes paths of files; remove the key"},
      {"dataset-test-split", "", {{"test", ""}, {"validation", ""}}, refuse, "eval_data takes paths of files; remove the key"},
      {"dataset-text-field", "columns", {{"text", ""}}, column, "text="},
      {"dataset-kwargs", "", {}, ignore, kReading},
      {"dataset-num-proc", "", {}, ignore, kReading},
      {"dataset-processes", "", {}, ignore, kReading},
      {"dataset-batch-size", "", {}, ignore, ""},
      {"dataset-shard-*", "", {}, refuse, "all rows are read; shorten the file"},
      {"dataset-streaming", "", kIfFalse, refuse, "all rows are read before step 1; set it to false"},
      {"data-shared-file-system", "", {}, ignore, ""},
      {"dataset-prepared-path", "", {}, ignore, kReading},
      {"dataset-keep-in-memory", "", {}, ignore, kReading},
      {"dataset-exact-deduplication", "", kIfFalse, refuse, "duplicate rows are kept; set it to false"},
      {"overwrite-cache", "", {}, ignore, kReading},
      {"preprocessing-*", "", {}, ignore, kReading},
      {"tokenized-path", "", {}, ignore, kReading},
      {"skip-prepare-dataset", "", kIfFalse, refuse, "rows with input_ids need no preparation; remove the key"},
      {"push-dataset-to-hub", "", {}, refuse, kNoUpload},
      {"streaming", "", kIfFalse, refuse, "all rows are read before step 1; set it to false"},
      {"buffer-size", "", {}, ignore, ""},
      {"min-sample-len", "", {}, refuse, "rows of every length are trained; remove short rows from the file"},
      {"pretraining-sample-concatenation", "", {}, ignore, ""},
      {"mix-strategy", "", {{"concat", ""}}, refuse, "rows of all files are shuffled together; a weight behind the file (a.jsonl:2) is its number of passes per epoch; remove the key"},
      {"interleave-probs", "", {}, refuse, "a weight behind the file is its number of passes per epoch: data: [a.jsonl:2, b.jsonl:0.5]"},
      {"pretraining-dataset", "", {}, refuse, "use data: all tokens of text rows are trained"},
      {"template", "chat-template", {{"chatml", "chatml"}, {"default", ""}}, ignore, "the model's chat template is used", false, {}, true},
      {"chat-template", "chat-template", named_templates(), pass, ""},
      {"chat-template-jinja", "", {}, refuse, "write the template to a file, and use chat_template"},
      {"chat-template-path", "chat-template", {}, pass, ""},
      {"default-system-message", "", {}, refuse, "put the system message into the rows; remove the key"},
      {"default-system", "", {}, refuse, "put the system message into the rows; remove the key"},
      {"tool-format", "", {}, refuse, "the model's chat template formats tools; remove the key"},
      {"enable-thinking", "template-args", {{"true", "enable_thinking=true"}, {"false", "enable_thinking=false"}}, refuse, "expected true or false"},
      {"preserve-thinking", "", {}, refuse, "the model's chat template decides; remove the key"},
      {"chat-template-kwargs", "template-args", {}, refuse, "expected a map of variables, such as {enable_thinking: false}"},
      {"train-on-inputs", "train-on", {{"false", ""}, {"true", "all"}}, refuse, "expected true or false"},
      {"train-on-prompt", "train-on", {{"false", ""}, {"true", "all"}}, refuse, "expected true or false"},
      {"assistant-only-loss", "train-on", {{"true", "auto"}, {"false", "all"}}, refuse, "expected true or false"},
      {"completion-only-loss", "train-on", {{"true", "auto"}, {"false", "all"}}, refuse, "expected true or false"},
      {"train-on-completions", "train-on", {{"true", "auto"}, {"false", "all"}}, refuse, "expected true or false"},
      {"mask-history", "train-on", {{"false", ""}, {"true", "last"}}, refuse, "expected true or false"},
      {"roles-to-train", "", {{"assistant", ""}, {"gpt", ""}}, refuse, "only the assistant's turns are trained (train_on); remove the key"},
      {"train-on-eos", "", {{"turn", ""}}, refuse, "the end of each trained turn is trained; remove the key"},
      {"train-on-eot", "", {{"turn", ""}}, refuse, "the end of each trained turn is trained; remove the key"},
      {"ignore-pad-token-for-loss", "", {}, ignore, ""},
      {"group-by-length", "", kIfFalse, refuse, "rows are drawn at random (shuffle) and packed; set it to false"},
      {"curriculum-sampling", "", kIfFalse, refuse, "shuffle: off keeps the order of the file; set it to false"},
      {"shuffle-merged-datasets", "shuffle", {}, pass, ""},
      {"shuffle-before-merging-datasets", "", {}, ignore, ""},
      {"shuffle-dataset", "shuffle", {}, pass, ""},
      {"train-sampling-strategy", "shuffle", {{"random", "on"}, {"sequential", "off"}}, refuse, "expected random or sequential"},
      {"disable-shuffling", "shuffle", {{"true", "off"}, {"false", "on"}}, refuse, "expected true or false"},
      {"excess-length-strategy", "overflow", {}, pass, ""},
      {"truncation-mode", "overflow", {{"keep_start", "truncate"}}, refuse, "rows are cut at the end; use keep_start"},
      {"pad-to-*", "", {}, ignore, ""},  // no padding is ever computed
      {"padding-free", "", {}, ignore, ""},
      {"packing-strategy", "", {}, ignore, "packing takes the longest documents first and never cuts one"},
      {"sample-packing-*", "", {}, ignore, ""},
      {"eval-sample-packing", "", {}, ignore, "evaluation packs as training does; its loss is the same with and without"},
      {"eval-packing", "", {}, ignore, "evaluation packs as training does; its loss is the same with and without"},
      {"multipack-*", "", {}, ignore, ""},
      {"remove-unused-columns", "", {}, ignore, ""},
      {"label-names", "", {}, ignore, ""},
      {"length-column-name", "", {}, ignore, ""},
      {"num-labels", "", {}, ignore, ""},
  };
  // clang-format on
}

}  // namespace hearth
