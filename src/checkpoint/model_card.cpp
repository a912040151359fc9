#include "checkpoint/model_card.h"

#include "base/error.h"
#include "base/json.h"
#include "base/paths.h"
#include "base/version.h"
#include "checkpoint/model_files.h"

namespace hearth {
namespace {

constexpr const char* kCard = "README.md";
constexpr const char* kTraining = "## Training\n\n| | |\n|---|---|\n";

/// "org/name" of .../models--org--name/snapshots/REVISION; empty for another path.
std::string cached_name(const std::string& directory) {
  const size_t end = directory.find("/snapshots/");
  if (end == std::string::npos) return "";
  const size_t begin = directory.rfind('/', end - 1) + 1;
  std::string folder = directory.substr(begin, end - begin);
  if (!folder.starts_with("models--")) return "";
  folder.erase(0, 8);
  const size_t middle = folder.find("--");
  if (middle == std::string::npos) return "";
  return folder.replace(middle, 2, "/");
}

/// The lines license, license_name and license_link of the YAML at the head of a card.
std::string license_of(const std::string& directory, bool follow_links) {
  std::string text;
  try {
    if (!has_model_file(directory, kCard)) return "";
    text = read_text_file(model_file(directory, kCard, follow_links), kMaxConfigBytes);
  } catch (const Error&) {  // a card is no part of the model
    return "";
  }
  if (!text.starts_with("---\n")) return "";
  std::string found;
  for (size_t at = 4, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string line = text.substr(at, end - at);
    if (line == "---") return found;
    for (const char* key : {"license: ", "license_name: ", "license_link: "}) {
      if (line.starts_with(key)) found += line + "\n";
    }
  }
  return "";
}

}  // namespace

CardBase card_base(const std::string& name, const std::string& revision,
                   const std::string& directory, bool follow_links) {
  CardBase base;
  const std::string path = without_trailing_slashes(directory);
  const bool is_path = name.empty() || without_trailing_slashes(name) == path;
  base.hub_name = is_path ? cached_name(path) : name;
  base.title = base.hub_name.empty() ? path.substr(path.rfind('/') + 1) : base.hub_name;
  base.revision = revision;
  base.license = license_of(directory, follow_links);
  return base;
}

// JSON strings are YAML's, too.
std::string card_head(const CardBase& base, const std::string& library,
                      const std::string& relation) {
  const bool named = !base.hub_name.empty();
  return "---\n" + (named ? "base_model: " + Json(base.hub_name).dump() + "\n" : "") +
         "library_name: " + library + "\n" + base.license +
         "pipeline_tag: text-generation\ntags:\n" + (relation == "adapter" ? "- lora\n" : "") +
         "- hearth\n" +
         (named ? "- " + Json("base_model:" + relation + ":" + base.hub_name).dump() + "\n" : "") +
         "---\n\n";
}

std::string card_cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' || c == '\r' ? ' ' : c;
  }
  return out;
}

std::string training_table(const CardRows& rows) {
  if (rows.empty()) return "";
  std::string text = kTraining;
  for (const auto& [key, value] : rows) {
    text += "| " + card_cell(key) + " | " + card_cell(value) + " |\n";
  }
  return text;
}

std::string training_table_of(const std::string& card) {
  const size_t begin = card.find(kTraining);
  if (begin == std::string::npos) return "";
  const size_t end = card.find("\n\n", begin + std::string(kTraining).size());
  return card.substr(begin, end == std::string::npos ? end : end + 1 - begin);
}

std::string model_card(const CardBase& base, const std::string& how, const std::string& training) {
  return card_head(base, "transformers", "finetune") + "# " + card_cell(base.title) + ", " + how +
         "\n\nMade of `" + card_cell(base.title) + "`" +
         (base.revision.empty() ? "" : " (revision `" + card_cell(base.revision) + "`)") +
         " with Hearth " + build_info().version + ". Load it with transformers:\n\n" +
         "```python\nfrom transformers import AutoModelForCausalLM\n\n" +
         "model = AutoModelForCausalLM.from_pretrained(\"path/of/this/directory\")\n```\n" +
         (training.empty() ? "" : "\n" + training);
}

}  // namespace hearth
