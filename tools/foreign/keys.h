// Translates configuration keys of TRL (and transformers' TrainingArguments), axolotl,
// LLaMA-Factory and unsloth. Mere other names of an option are `aliases` in the option table. For every other
// key, this table maps its values, ignores it, or refuses it with advice.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

/// Treatment of a value that is not in `values`.
enum class OtherValue {
  pass,    // pass it to the option
  column,  // it names the column of a field: pass `advice` and it, such as "text=" and "body"
  ignore,  // no effect; print `advice`, if any, as a note
  refuse,  // an error; `advice` says what to do
};

struct ForeignKey {
  std::string name;    // with hyphens; a trailing * matches any characters
  std::string option;  // the option for the mapped value; empty: none
  /// Pairs: value there (in lower case), value here. An empty value here sets nothing; one that
  /// begins with ! sets nothing, and the rest is a note that is always told.
  std::vector<std::pair<std::string, std::string>> values;
  OtherValue other = OtherValue::refuse;
  std::string advice;
  bool commas = false;                     // one text holds several values, separated by commas
  std::vector<std::string> harmless = {};  // fields of a map without effect here
  bool told = false;                       // `advice` of an ignored value is told without --verbose
};

const std::vector<ForeignKey>& foreign_keys();
/// Finds a key by name, with hyphens or underscores. Prefers an exact name to a pattern. nullptr if
/// there is none.
const ForeignKey* find_foreign_key(std::string_view spelling);

/// The translation of a foreign key.
struct Translation {
  std::string option;              // option to set; empty: none
  std::vector<std::string> texts;  // its values
  std::string note;                // why it has no effect; may be empty
  bool told = false;               // the note is told without --verbose
  std::string problem;             // error; empty: none
};
Translation translate(const ForeignKey& key, const std::vector<std::string>& texts);

}  // namespace hearth
