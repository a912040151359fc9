#include "commands/same_option.h"

#include <algorithm>

namespace hearth {
namespace {

/// Both count: lists of modules, columns, variables of templates.
bool adds_up(const Given& given) {
  const std::string& name = given.option->name;
  return name == "lora-targets" || name == "columns" || name == "template-args";
}

void add_texts(std::vector<std::string>& to, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    if (std::find(to.begin(), to.end(), text) == to.end()) to.push_back(text);
  }
}

/// Takes `later` into `kept` and returns true, if the trainer allows both.
bool join(Given& kept, const Given& later) {
  if (adds_up(kept)) {
    add_texts(kept.texts, later.texts);
    return true;
  }
  // How often, and in which unit: only `steps` needs the number, and it sets nothing itself.
  if (later.key.ends_with("strategy") != kept.key.ends_with("strategy")) {
    if (later.key.ends_with("strategy")) kept = later;
    return true;
  }
  // LLaMA-Factory's neat packing is packing.
  if (kept.option->name == "packing") {
    const auto is_on = [](const Given& g) { return g.texts[0] == "true" || g.texts[0] == "True"; };
    if (is_on(later)) kept = later;
    return is_on(kept) || kept.texts == later.texts;
  }
  // unsloth has a seed of its adapters beside the trainer's; its examples give both the same one.
  const bool seeds = kept.key == "random-state" || later.key == "random-state";
  return ((kept.foreign && later.foreign) || seeds) && kept.texts == later.texts;
}

}  // namespace

std::vector<Given> joined_keys(std::vector<Given> given) {
  std::vector<Given> joined;
  for (Given& each : given) {
    if (each.option->name == "lora-targets") {  // one text for each module
      std::vector<std::string> texts;
      add_texts(texts, each.texts);
      each.texts = texts;
    }
    const auto same = std::find_if(joined.begin(), joined.end(),
                                   [&](const Given& g) { return g.option == each.option; });
    if (same == joined.end() || !join(*same, each)) joined.push_back(std::move(each));
  }
  return joined;
}

}  // namespace hearth
