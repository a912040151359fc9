#include "peft/card.h"

#include "base/json.h"

namespace hearth {

// The licence is that of the base's card; what the data's is, this program does not know.
std::string adapter_card(const AdapterPlan& plan, const CardBase& base, const CardRows& rows) {
  const std::string name =
      base.hub_name.empty() ? "\"path/of/the/base\"" : Json(base.hub_name).dump();
  CardRows all{{"rank", std::to_string(plan.rank)},
               {"scale (alpha / rank)", Json(plan.scale).dump()},
               {"adapted matrices", std::to_string(plan.pairs.size())}};
  all.insert(all.end(), rows.begin(), rows.end());
  return card_head(base, "peft", "adapter") + "# LoRA adapter\n\n" + "An adapter of `" +
         card_cell(base.title) + "`, trained with hearth. Load it with PEFT:\n\n" +
         "```python\nfrom peft import PeftModel\nfrom transformers import " +
         "AutoModelForCausalLM\n\nmodel = AutoModelForCausalLM.from_pretrained(" + name +
         (base.revision.empty() ? "" : ", revision=" + Json(base.revision).dump()) +
         ")\nmodel = PeftModel.from_pretrained(model, \"path/of/this/directory\")\n" + "```\n\n" +
         training_table(all);
}

}  // namespace hearth
