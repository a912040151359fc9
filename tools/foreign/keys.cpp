#include "foreign/keys.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "foreign/key_tables.h"
#include "options/option_lookup.h"
#include "options/option_table.h"

namespace hearth {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::vector<std::string> split_at_commas(const std::vector<std::string>& texts) {
  std::vector<std::string> parts;
  for (const std::string& text : texts) {
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      std::string part = text.substr(begin, end - begin);
      part.erase(0, part.find_first_not_of(' '));
      part.erase(part.find_last_not_of(' ') + 1);
      if (!part.empty()) parts.push_back(part);
      begin = end + 1;
    }
  }
  return parts;
}

bool fits(const ForeignKey& key, const std::string& name) {
  if (!key.name.ends_with('*')) return key.name == name;
  return name.starts_with(std::string_view(key.name).substr(0, key.name.size() - 1));
}

}  // namespace

const std::vector<ForeignKey>& foreign_keys() {
  static const std::vector<ForeignKey> table = [] {
    std::vector<ForeignKey> all = foreign_keys_of_data(), more = foreign_keys_of_runs();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return table;
}

const ForeignKey* find_foreign_key(std::string_view spelling) {
  const std::string name = with_hyphens(spelling);
  const ForeignKey* found = nullptr;
  for (const ForeignKey& key : foreign_keys()) {
    if (!fits(key, name)) continue;
    if (key.name == name) return &key;
    found = &key;  // no pattern fits the names of another one
  }
  return found;
}

Translation translate(const ForeignKey& key, const std::vector<std::string>& texts) {
  Translation result;
  const std::vector<std::string> given = key.commas ? split_at_commas(texts) : texts;
  if (given.empty() || (given.size() == 1 && given[0].empty())) return result;  // as unset
  if (given.size() == 1) {
    for (const auto& [there, here] : key.values) {
      if (lower(given[0]) != there) continue;
      if (here.empty()) return result;
      if (here[0] == '!') {
        result.note = here.substr(1);
        result.told = true;
        return result;
      }
      result.option = key.option;
      result.texts = {here};
      return result;
    }
  }
  switch (key.other) {
    case OtherValue::pass:
      result.option = key.option;
      for (const std::string& text : given) {
        const auto mapped = std::find_if(key.values.begin(), key.values.end(), [&](const auto& v) {
          return v.first == text && !v.second.empty();
        });
        result.texts.push_back(mapped == key.values.end() ? text : mapped->second);
      }
      break;
    case OtherValue::column:
      result.option = key.option;
      result.texts = {key.advice + given[0]};
      break;
    case OtherValue::ignore:
      result.note = key.advice;
      result.told = key.told;
      break;
    case OtherValue::refuse:
      result.problem = (given.size() == 1 ? quoted(given[0]) + ": " : std::string()) + key.advice;
      break;
  }
  return result;
}

}  // namespace hearth
