#include "data/rows/prompt_rows.h"

#include "data/json_fields.h"
#include "data/rows/chat_rows.h"
#include "data/rows/row_fields.h"
#include "data/rows/row_object.h"

namespace hearth {

namespace {

Chat alpaca_prompt(Json row, const std::string& where) {
  row["output"] = "";
  Chat chat = read_alpaca_row(row, where);
  chat.messages.pop_back();
  return chat;
}

Chat completion_prompt(const Json& row, const std::string& where) {
  Chat chat;
  chat.messages = read_messages(member_or_null(row, "prompt"), where, "prompt");
  chat.tools = read_tools(member_or_null(row, "tools"), where);
  return chat;
}

}  // namespace

PromptRow prompt_of_row(const RawRow& row, const std::vector<Column>& columns, RowFormat format) {
  const std::string where = row.where();
  PromptRow prompt;
  if (row.document) {
    prompt.text = row.text;
    return prompt;
  }
  const RowObject object = read_row_object(row, columns, format, RowPart::prompt);
  const Json& json = object.json;
  std::vector<int32_t> labels;
  switch (object.format) {
    case RowFormat::text: prompt.text = read_text(json, "text", where); break;
    case RowFormat::completion:
      if (member_or_null(json, "prompt").is_array()) {
        prompt.chat = of_placed_row([&] { return completion_prompt(json, where); });
      } else {
        prompt.text = read_text(json, "prompt", where);
      }
      break;
    case RowFormat::messages:
      prompt.chat = of_placed_row([&] { return read_messages_row(json, where); });
      break;
    case RowFormat::alpaca:
      prompt.chat = of_placed_row([&] { return alpaca_prompt(json, where); });
      break;
    case RowFormat::sharegpt:
      prompt.chat = of_placed_row([&] { return read_sharegpt_row(json, where); });
      break;
    case RowFormat::tokens:
    case RowFormat::automatic: read_tokens(json, 0, where, prompt.ids, labels); break;
  }
  return prompt;
}

}  // namespace hearth
