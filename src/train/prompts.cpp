#include "train/prompts.h"

#include "base/error_format.h"
#include "base/setting.h"
#include "base/utf8.h"
#include "data/json_fields.h"
#include "data/rows/prompt_rows.h"
#include "setup/row_requests.h"

namespace hearth {

namespace {

const std::string& role_of(const Json& message) {
  return member_or_null(message, "role").as_string();
}

void put_system(const std::string& system, const std::string& where, JsonArray& messages) {
  if (system.empty()) return;
  if (role_of(messages[0]) == "system") {
    throw input_error("{}: the chat has a system message of its own; leave {} out", where,
                      spelled(Setting::system));
  }
  messages.insert(messages.begin(), Json(JsonObject{{"role", "system"}, {"content", system}}));
}

}  // namespace

PromptMaker::PromptMaker(const GenerateConfig& config, const Tokenizer& tokenizer)
    : config_(config), tokenizer_(tokenizer), columns_(parse_columns(config.columns)) {}

std::vector<int32_t> PromptMaker::of_text(const std::string& text, const std::string& where) const {
  if (find_invalid_utf8(text) != std::string::npos) {
    throw input_error("{}: not valid UTF-8", where);
  }
  return tokenizer_.encode(text, {.add_special = true}).ids;
}

std::vector<int32_t> PromptMaker::of_chat(Chat chat, const std::string& where) {
  if (role_of(chat.messages.back()) == "assistant") chat.messages.pop_back();
  if (chat.messages.empty()) throw input_error("{}: has no turn to answer", where);
  put_system(config_.system, where, chat.messages);
  if (!template_) template_.emplace(template_options(config_));
  const std::string text = template_->render(chat.messages, chat.tools, true, where).text;
  return tokenizer_.encode(text).ids;
}

std::vector<int32_t> PromptMaker::of_row(const RawRow& row) {
  PromptRow prompt = prompt_of_row(row, columns_, config_.format);
  if (!prompt.ids.empty()) return std::move(prompt.ids);
  if (prompt.chat) {
    return of_placed_row([&] { return of_chat(std::move(*prompt.chat), row.where()); });
  }
  had_text_ = true;
  return of_placed_row([&] { return of_text(prompt.text, row.where()); });
}

}  // namespace hearth
