// The token ids of prompts: texts, chats and rows of data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/chat/chat_template.h"
#include "data/chat/messages.h"
#include "data/rows/columns.h"
#include "data/rows/raw_rows.h"
#include "data/tokenizer/tokenizer.h"
#include "setup/config.h"

namespace hearth {

class PromptMaker {
 public:
  /// `config` and `tokenizer` must outlive this. The chat template is read at the first chat.
  PromptMaker(const GenerateConfig& config, const Tokenizer& tokenizer);

  /// A text that the model continues, encoded with the post-processor's ids. Input error that starts
  /// with `where` for invalid UTF-8.
  std::vector<int32_t> of_text(const std::string& text, const std::string& where) const;

  /// A chat that the model answers, rendered with the generation prompt. Puts --system first. If the
  /// chat ends with a turn of the assistant, this turn is left out, since it is what the model
  /// writes. Input error for no turn to answer, and for --system beside a system message.
  std::vector<int32_t> of_chat(Chat chat, const std::string& where);

  /// A row of data up to its answer: see prompt_of_row. BadRow as RowConverter.
  std::vector<int32_t> of_row(const RawRow& row);

  /// Whether a text was encoded, which no template renders.
  bool had_text() const { return had_text_; }

 private:
  const GenerateConfig& config_;
  const Tokenizer& tokenizer_;
  std::vector<Column> columns_;
  std::optional<ChatTemplate> template_;
  bool had_text_ = false;
};

}  // namespace hearth
