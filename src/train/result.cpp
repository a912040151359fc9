#include "train/result.h"

#include "base/file_ops.h"
#include "checkpoint/checkpoint_write.h"
#include "peft/readers.h"
#include "peft/write.h"
#include "setup/opened_model.h"

namespace hearth {

namespace {

void write_files(const ParameterTable& table, const Checkpoint& base, const TrainConfig& config,
                 const FileChanges& changes, const CardRows& card, const std::string& path) {
  const ModelName name = model_name(config);
  if (config.method == Method::full) {
    FileChanges all = changes;
    all["README.md"] =
        model_card(card_base(name.name, name.revision, base.directory(), config.follow_links),
                   "fine-tuned", training_table(card));
    return write_checkpoint(table, base, path, all);
  }
  AdapterFileOptions options;
  options.layout = config.adapter_layout;
  options.card = card;
  options.base_name = name.name;
  options.revision = name.revision;
  options.changes = changes;
  write_adapter(table, base, options, path);
}

}  // namespace

void write_result(const ParameterTable& table, const Checkpoint& base, const TrainConfig& config,
                  const FileChanges& changes, const CardRows& card, const RunDirectory& directory) {
  directory.require_there();
  const std::string result = directory.result();
  if (file_info(result).kind == FileKind::none) {
    return write_files(table, base, config, changes, card, result);
  }
  const std::string fresh = directory.path() + "/.tmp-new-result";
  const std::string replaced = directory.path() + "/.trash-result";
  remove_tree(fresh);
  remove_tree(replaced);
  write_files(table, base, config, changes, card, fresh);
  rename_no_replace(result, replaced);
  rename_no_replace(fresh, result);
  sync_directory(directory.path());
  remove_tree(replaced);
}

void tell_result(const ParameterTable& table, const TrainConfig& config,
                 const RunDirectory& directory, Reporter& reporter) {
  const std::string result = directory.result(), name = Json(result).dump();
  reporter.note("finished: " + result);
  if (file_info(result + "/tokenizer.json").kind == FileKind::regular) {
    reporter.note("  to talk with it: hearth chat " + directory.path());
  }
  reporter.note("  what happened, on one page: hearth report " + directory.path());
  const bool has_tokenizer = file_info(result + "/tokenizer.json").kind == FileKind::regular;
  reporter.detail(std::string("  from transformers import AutoModelForCausalLM") +
                  (has_tokenizer ? ", AutoTokenizer" : ""));
  if (config.method == Method::lora) {
    reporter.detail("  from peft import PeftModel");
    const ModelName base = model_name(config);
    const std::string revision =
        base.revision.empty() ? "" : ", revision=" + Json(base.revision).dump();
    reporter.detail("  base = AutoModelForCausalLM.from_pretrained(" + Json(base.name).dump() +
                    revision + ")");
    reporter.detail("  model = PeftModel.from_pretrained(base, " + name + ")");
  } else {
    reporter.detail("  model = AutoModelForCausalLM.from_pretrained(" + name + ")");
  }
  if (has_tokenizer) reporter.detail("  tokenizer = AutoTokenizer.from_pretrained(" + name + ")");
  if (config.method == Method::full) return;
  for (const std::string& line : reader_notes(table, config.adapter_layout)) {
    reporter.detail("  # " + line);
  }
}

}  // namespace hearth
