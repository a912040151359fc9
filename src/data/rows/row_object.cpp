#include "data/rows/row_object.h"

#include <algorithm>

#include "base/error_format.h"
#include "base/json_parse.h"
#include "base/setting.h"
#include "data/json_fields.h"
#include "data/rows/row_converter.h"

namespace hearth {

namespace {

bool has_value(const Json& row, std::string_view key) {
  return !member_or_null(row, key).is_null();
}

/// Rows of DPO and its relatives have an answer that must not be learned.
void refuse_preferences(const Json& row, const std::string& where) {
  const bool pair = has_value(row, "chosen") && has_value(row, "rejected");
  const bool judged = member_or_null(row, "label").is_bool() && has_value(row, "completion");
  if (!pair && !judged) return;
  throw BadRow(
      fmt::format("{}: a preference row ({}): Hearth trains on answers, not on preferences as DPO, "
                  "KTO and reward "
                  "models do; to train on the good answers, {}",
                  where, pair ? "chosen and rejected" : "completion with a label",
                  pair ? "name them with " + spelled(Setting::columns, "completion=chosen") +
                             " (messages=chosen if they are whole chats)"
                       : "keep the rows whose label is true, without the label"));
}

void read_listed_texts(const std::string& where, Json& row) {
  for (const char* field : {"messages", "conversations", "input_ids", "labels"}) {
    const Json& value = member_or_null(row, field);
    if (!value.is_string() || !value.as_string().starts_with('[')) continue;
    const std::string text = value.as_string();
    row[field] = of_placed_row([&] { return parse_json(text, where + ": " + field); });
  }
}

/// The format whose keys are all named by --columns; automatic if there is none.
RowFormat format_of_columns(const std::vector<Column>& columns, const std::string& where,
                            RowPart part) {
  Json mapped;
  for (const Column& column : columns) mapped[column.field] = true;
  try {
    return detect_format(mapped, where, part);
  } catch (const BadRow&) {
    return RowFormat::automatic;
  }
}

}  // namespace

RowObject read_row_object(const RawRow& row, const std::vector<Column>& columns, RowFormat format,
                          RowPart part) {
  const std::string where = row.where();
  if (!row.problem.empty()) throw BadRow(where + ": " + row.problem);
  RowObject read;
  read.json = of_placed_row([&] { return parse_json_at(row.text, row.file, row.line); });
  if (read.json.is_object()) {
    rename_columns(columns, where, read.json);
    if (format == RowFormat::automatic) refuse_preferences(read.json, where);
    read_listed_texts(where, read.json);
  }
  read.format = format;
  if (!columns.empty() && read.format == RowFormat::automatic) {
    read.format = format_of_columns(columns, where, part);
  }
  if (read.format == RowFormat::automatic || !read.json.is_object()) {
    read.format = detect_format(read.json, where, part);
  }
  return read;
}

}  // namespace hearth
