#include "data/rows/columns.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/error_format.h"
#include "base/setting.h"
#include "data/rows/row_converter.h"

namespace hearth {

namespace {

constexpr std::array<std::string_view, 14> kFields{
    "text",          "messages",  "tools",  "prompt",        "completion",
    "instruction",   "input",     "output", "system",        "history",
    "conversations", "input_ids", "labels", "attention_mask"};

}  // namespace

std::vector<Column> parse_columns(const std::vector<std::string>& texts) {
  std::vector<Column> columns;
  std::set<std::string> fields, members;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      throw usage_error("{} {}: expected FIELD=COLUMN, such as prompt=question",
                        spelled(Setting::columns), quoted(text));
    }
    Column column{text.substr(0, equals), text.substr(equals + 1)};
    if (std::find(kFields.begin(), kFields.end(), column.field) == kFields.end()) {
      std::string all;
      for (const std::string_view field : kFields) {
        all += (all.empty() ? "" : ", ") + std::string(field);
      }
      throw usage_error("{} {}: {} is no field of rows, which are {}", spelled(Setting::columns),
                        quoted(text), quoted(column.field), all);
    }
    if (!fields.insert(column.field).second || !members.insert(column.member).second) {
      throw usage_error("{} {}: given twice", spelled(Setting::columns), quoted(text));
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

void rename_columns(const std::vector<Column>& columns, const std::string& where, Json& row) {
  if (columns.empty() || !row.is_object()) return;
  JsonObject& members = row.as_object();
  const auto named = [&](const std::string& name) {
    return std::find_if(members.begin(), members.end(),
                        [&](const auto& member) { return member.first == name; });
  };
  JsonObject renamed;
  for (const Column& column : columns) {
    const auto found = named(column.member);
    if (found == members.end()) {
      throw BadRow(fmt::format("{}: no member {} ({} {}={})", where, quoted(column.member),
                               spelled(Setting::columns), column.field, column.member));
    }
    renamed.emplace_back(column.field, found->second);
  }
  std::erase_if(members, [&](const auto& member) {
    return std::any_of(columns.begin(), columns.end(), [&](const Column& column) {
      return column.member == member.first || column.field == member.first;
    });
  });
  members.insert(members.end(), std::make_move_iterator(renamed.begin()),
                 std::make_move_iterator(renamed.end()));
}

}  // namespace hearth
