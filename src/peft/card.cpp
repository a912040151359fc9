#include "peft/card.h"

#include "base/json.h"

namespace hearth {
namespace {

/// One line without what Markdown tables give a meaning.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' || c == '\r' ? ' ' : c;
  }
  return out;
}

}  // namespace

// No licence: it is the base's and the data's, which this program does not know.
std::string adapter_card(const AdapterPlan& plan, const CardBase& base,
                         const std::vector<std::pair<std::string, std::string>>& lines) {
  const std::string name = Json(base.name).dump();  // JSON strings are YAML's, too
  std::string text =
      "---\nbase_model: " + name + "\nlibrary_name: peft\n" +
      "pipeline_tag: text-generation\ntags:\n- lora\n- " +
      Json("base_model:adapter:" + base.name).dump() + "\n---\n\n# LoRA adapter\n\n" +
      "An adapter of `" + cell(base.name) + "`, trained with hearth. Load it with PEFT:\n\n" +
      "```python\nfrom peft import PeftModel\nfrom transformers import " +
      "AutoModelForCausalLM\n\nmodel = AutoModelForCausalLM.from_pretrained(" + name +
      (base.revision.empty() ? "" : ", revision=" + Json(base.revision).dump()) +
      ")\nmodel = PeftModel.from_pretrained(model, \"path/of/this/directory\")\n" +
      "```\n\n| | |\n|---|---|\n";
  const auto row = [&](const std::string& key, const std::string& value) {
    text += "| " + cell(key) + " | " + cell(value) + " |\n";
  };
  row("rank", std::to_string(plan.rank));
  row("scale (alpha / rank)", Json(plan.scale).dump());
  row("adapted matrices", std::to_string(plan.pairs.size()));
  for (const auto& [key, value] : lines) row(key, value);
  return text;
}

}  // namespace hearth
