// Keys of TRL (and transformers' TrainingArguments), axolotl and LLaMA-Factory that are no mere other
// name of an option here (those are `aliases` in the option table): their values are mapped, or they
// ask for what is the case anyway, or they have no counterpart, and then the table says what to do.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

/// What becomes of a value that `values` does not name.
enum class OtherValue {
  pass,    // the option judges it
  ignore,  // no effect; `advice`, if there is one, is told as a note
  refuse,  // a problem; `advice` says what to do
};

struct ForeignKey {
  std::string name;    // with hyphens; a * at the end stands for any characters
  std::string option;  // that takes the mapped value; empty: none
  /// Value there (in lower case), value here. An empty value here sets nothing: it is so anyway.
  std::vector<std::pair<std::string, std::string>> values;
  OtherValue other = OtherValue::refuse;
  std::string advice;
  bool commas = false;                     // one text holds several, separated by commas
  std::vector<std::string> harmless = {};  // fields of a map that change nothing here
};

const std::vector<ForeignKey>& foreign_keys();
/// By name, hyphens or underscores; a whole name before a pattern. nullptr if there is none.
const ForeignKey* find_foreign_key(std::string_view spelling);

/// What a foreign key comes to.
struct Translation {
  std::string option;              // to set; empty: none
  std::vector<std::string> texts;  // its values
  std::string note;                // for people; empty: nothing to say
  std::string problem;             // empty: none
};
Translation translate(const ForeignKey& key, const std::vector<std::string>& texts);

}  // namespace hearth
