// What the model cards (README.md) of results and of adapters share.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hearth {

/// Names and values of a card's table: what was trained, on what data, how.
using CardRows = std::vector<std::pair<std::string, std::string>>;

/// The model that a result was made of, as its card names it.
struct CardBase {
  std::string hub_name;  // org/name; empty for a local directory, whose path no card holds
  std::string title;     // the hub name, or the last part of the path
  std::string revision;  // on the hub; empty: the newest
  std::string license;   // lines of the base's card about its licence; empty: it has none
};

/// `name`: as the user gave it, without a revision. `directory`: where its files are. A path into a
/// hub cache has the hub's name, too. A card that cannot be read gives no licence.
CardBase card_base(const std::string& name, const std::string& revision,
                   const std::string& directory, bool follow_links = false);

/// The YAML at the head: base_model, library_name, licence, tags. `relation`: "adapter" or
/// "finetune".
std::string card_head(const CardBase& base, const std::string& library,
                      const std::string& relation);

/// "## Training" and the rows as a table; empty without rows.
std::string training_table(const CardRows& rows);
/// That section of a card that this program wrote; empty if there is none.
std::string training_table_of(const std::string& card);

/// The card of a checkpoint. `how`: "fine-tuned", or how else it was made; `training`: that section.
std::string model_card(const CardBase& base, const std::string& how, const std::string& training);

/// One line without what Markdown tables give a meaning.
std::string card_cell(const std::string& text);

}  // namespace hearth
